"""Cells of Rust in a Python notebook, and tensors that go over."""

import atexit
import json
import os
import re
import tempfile

from IPython.core.completer import Completion
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from .session import CELL, Session

# What safetensors calls them, and what NumPy does.
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip


@magics_class
class XlazyMagics(Magics):
    """%%xlazy and its two companions."""

    def __init__(self, shell):
        super().__init__(shell)
        self.session = Session(shell)

    @cell_magic
    def xlazy(self, line, cell):
        """Runs the cell as Rust, in a session that lasts as long as this notebook."""
        if line.strip():
            raise UsageError("%%xlazy takes nothing on its own line; the cell's Rust begins on the next")
        self.session.run(cell)

    @line_magic
    def xlazy_get(self, line):
        """`x = %xlazy_get x`: a tensor, or an expression that is one, as a NumPy array."""
        if not line.strip():
            raise UsageError("%xlazy_get NAME: which tensor?")
        with Exchange() as file:
            one = f'("value".to_string(), ::std::clone::Clone::clone(&({line.strip()})))'
            self.session.run(f"::xlazy::nn::save({rust_text(file)}, &[{one}]).unwrap();", record=False)
            return read(file)

    @line_magic
    def xlazy_put(self, line):
        """`%xlazy_put x`: a NumPy array, or what NumPy makes one of, as a tensor of that name."""
        name = line.strip()
        if not name.isidentifier() or name not in self.shell.user_ns:
            raise UsageError(f"%xlazy_put NAME: there is no variable {name!r} in this notebook")
        with Exchange() as file:
            write(file, self.shell.user_ns[name])
            self.session.run(f"let {name} = ::xlazy::nn::load({rust_text(file)}).unwrap().remove(0).1;", record=False)


class Exchange:
    """A file that only this user can read, for as long as a tensor is handed over."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="xlazy-")
        return os.path.join(self.folder.name, "tensor.safetensors")

    def __exit__(self, *_):
        self.folder.cleanup()


def rust_text(text):
    """As a literal of Rust."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read(file):
    """The one tensor of a safetensors file; bfloat16, which NumPy lacks, as float32."""
    import numpy

    with open(file, "rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        head = json.loads(opened.read(size))
        data = opened.read()
    (entry,) = (v for k, v in head.items() if k != "__metadata__")
    begin, end = entry["data_offsets"]
    data, shape = data[begin:end], entry["shape"]
    if entry["dtype"] == "BF16":
        wide = numpy.frombuffer(data, "<u2").astype("<u4") << 16
        return wide.view("<f4").reshape(shape)
    if entry["dtype"] not in DTYPES:
        raise TypeError(f"NumPy has no {entry['dtype']}: convert it first, as in %xlazy_get x.to(DType::F32)")
    return numpy.frombuffer(data, DTYPES[entry["dtype"]]).reshape(shape).copy()


def write(file, value):
    import numpy

    array = numpy.asarray(value)
    little = array.dtype.newbyteorder("<")
    names = [name for name, known in DTYPES.items() if numpy.dtype(known) == little]
    if not names:
        known = ", ".join(str(numpy.dtype(d)) for d in DTYPES.values())
        raise TypeError(f"a tensor cannot have NumPy's {array.dtype}: expected one of {known}")
    array = numpy.ascontiguousarray(array, little).reshape(array.shape)
    entry = {"dtype": names[0], "shape": list(array.shape), "data_offsets": [0, array.nbytes]}
    head = json.dumps({"value": entry}).encode()
    head += b" " * (-len(head) % 8)
    with open(file, "wb") as opened:
        opened.write(len(head).to_bytes(8, "little") + head + array.tobytes())


# Behind these there is Rust, to the end of the cell or of the line.
CELL_HEAD = re.compile(rf"\s*{CELL}[^\S\n]*\n")
LINE_HEAD = re.compile(r"(?:[^=]*=)?\s*%xlazy_get\s+")


def rust_at(text, offset):
    """Where the Rust begins and ends that a place in a cell is in; None where it is Python."""
    if cell := CELL_HEAD.match(text):
        return (cell.end(), len(text)) if offset >= cell.end() else None
    begin = text.rfind("\n", 0, offset) + 1
    line = LINE_HEAD.match(text[begin:offset])
    return (begin + line.end(), offset + len(text[offset:].partition("\n")[0])) if line else None


def completes(completer, session):
    """Has a notebook's completer answer for Rust, too. It is asked in the one way that all versions of IPython share: what a matcher is,
    and whether there are any, differs between them."""
    python = completer.completions

    def completions(text, offset):
        rust = rust_at(text, offset)
        if rust is None:
            yield from python(text, offset)
            return
        begin, end = rust
        matches, start, stop = session.complete(text[begin:end], offset - begin)
        for match in matches:
            yield Completion(begin + start, begin + stop, match, type="xlazy")

    completer.completions = completions


def load(ipython):
    unload(ipython)
    magics = XlazyMagics(ipython)
    ipython.register_magics(magics)
    completes(ipython.Completer, magics.session)
    # The session ends with the notebook's kernel.
    atexit.register(magics.session.end)


def unload(ipython):
    magics = ipython.magics_manager.registry.pop("XlazyMagics", None)
    if magics is None:
        return
    atexit.unregister(magics.session.end)
    magics.session.end()
    del ipython.Completer.completions
    for kind, name in (("cell", "xlazy"), ("line", "xlazy_get"), ("line", "xlazy_put")):
        ipython.magics_manager.magics[kind].pop(name, None)
