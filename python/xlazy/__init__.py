"""xlazy: Rust with lazy tensors on XLA, in Jupyter, in the terminal, and in the cells of a Python notebook.

    jupyter lab          a notebook with the kernel "xlazy"
    xlazy repl           the terminal; `python -m xlazy` is the same command
    %load_ext xlazy      in a Python notebook: then cells that begin with %%xlazy are Rust
"""


def load_ipython_extension(ipython):
    """`%load_ext xlazy`: the magics %%xlazy, %xlazy_get and %xlazy_put."""
    from .magic import load

    load(ipython)


def unload_ipython_extension(ipython):
    """`%unload_ext xlazy`: ends the session."""
    from .magic import unload

    unload(ipython)
