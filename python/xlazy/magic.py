"""Cells of Rust in a Python notebook, and tensors that go over."""

import atexit
import json
import os
import re
import tempfile

from IPython.core.completer import Completion
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from .session import CELL, RustError, Session

# What safetensors calls them, and what NumPy does.
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
# What is a name in Python and none in Rust.
KEYWORDS = set(
    """_ abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in let loop
    macro match mod move mut override priv pub ref return self Self static struct super trait true try type typeof unsafe unsized use
    virtual where while yield""".split()
)
# Saves a tensor; of anything else it is told what it is. The value stands on lines of its own, so that a comment may end it, and
# outside of the items, whose names it does not see.
KIND = ".kind"
SAVE = """match &(
%(value)s
) {
    value => {
        struct Given<T>(T);
        impl Given<&::xlazy::Tensor> {
            fn save(self) {
                ::xlazy::nn::save(%(file)s, &[("value".to_string(), self.0.clone())]).unwrap();
            }
        }
        trait Other {
            fn save(self);
        }
        impl<T> Other for Given<&T> {
            fn save(self) {
                ::std::fs::write(%(kind)s, ::std::any::type_name::<T>()).unwrap();
            }
        }
        Given(value).save();
    }
}"""


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
            self.quietly(SAVE % {"value": line, "file": rust_text(file), "kind": rust_text(file + KIND)})
            if os.path.exists(file + KIND):
                with open(file + KIND) as told:
                    kind = re.sub(r"\b(\w+::)+", "", told.read())
                raise TypeError(f"{line.strip()} is of type {kind}: expected a tensor, which becomes an array")
            return read(file)

    def quietly(self, code):
        """Runs what nobody has typed, so no error shows it."""
        try:
            self.session.run(code, record=False)
        except RustError as error:
            raise RustError(error.name, error.message) from None

    @line_magic
    def xlazy_put(self, line):
        """`%xlazy_put x`: a NumPy array, or what NumPy makes one of, as a tensor of that name."""
        name = line.strip()
        if not name.isidentifier() or name not in self.shell.user_ns:
            raise UsageError(f"%xlazy_put NAME: there is no variable {name!r} in this notebook")
        if name in KEYWORDS:
            raise UsageError(f"%xlazy_put {name}: Rust has no variable of that name; give the array another one first")
        with Exchange() as file:
            write(file, self.shell.user_ns[name])
            self.quietly(f"let {name} = ::xlazy::nn::load({rust_text(file)}).unwrap().remove(0).1;")


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

    if numpy.ma.is_masked(value):
        raise TypeError("a masked array has places without a value, and a tensor has none: x.filled(0) gives them one")
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


def inspects(kernel, session):
    """Has a notebook's kernel tell of Rust, too, where a front end asks what stands at the cursor."""
    python = kernel.do_inspect

    def do_inspect(code, cursor_pos, detail_level=0, *more, **options):
        rust = rust_at(code, cursor_pos)
        if rust is None:
            return python(code, cursor_pos, detail_level, *more, **options)
        begin, end = rust
        return session.inspect(code[begin:end], cursor_pos - begin, detail_level)

    kernel.do_inspect = do_inspect


def load(ipython):
    unload(ipython)
    magics = XlazyMagics(ipython)
    ipython.register_magics(magics)
    completes(ipython.Completer, magics.session)
    if kernel := magics.session.kernel():
        inspects(kernel, magics.session)
    # The session ends with the notebook's kernel.
    atexit.register(magics.session.end)


def unload(ipython):
    magics = ipython.magics_manager.registry.pop("XlazyMagics", None)
    if magics is None:
        return
    atexit.unregister(magics.session.end)
    magics.session.end()
    del ipython.Completer.completions
    if kernel := magics.session.kernel():
        del kernel.do_inspect
    for kind, name in (("cell", "xlazy"), ("line", "xlazy_get"), ("line", "xlazy_put")):
        ipython.magics_manager.magics[kind].pop(name, None)
