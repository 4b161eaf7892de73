"""Cells of Rust in a Python notebook: a session of xlazy's own kernel beside it, reached as any front end does."""

import atexit
import json
import os
import sys
import tempfile
from getpass import getpass

import zmq
from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import clear_output
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

CELL = "%%xlazy"
# What safetensors calls them, and what NumPy does.
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip


class RustError(Exception):
    """A cell of Rust that failed, shown as its own kernel shows it."""

    def __init__(self, name, message, traceback):
        super().__init__(f"{name}: {message}")
        self.name, self.message, self.traceback = name, message, traceback

    def _render_traceback_(self):
        return self.traceback or [str(self)]


class Session:
    """One kernel for one notebook, started by its first cell."""

    def __init__(self, shell):
        self.shell, self.manager, self.client = shell, None, None
        self.widgets = Widgets(self)

    def start(self):
        if self.manager is not None and self.manager.is_alive():
            return
        self.end()
        # Unix sockets: nobody else on the machine can read what goes over them.
        manager = KernelManager(transport="ipc")
        # This package's own, whatever kernelspecs Jupyter finds.
        command = [sys.executable, "-m", "xlazy", "kernel", "{connection_file}"]
        manager._kernel_spec = KernelSpec(
            argv=command, display_name="xlazy", language="rust", interrupt_mode="message"
        )
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
        except BaseException:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            raise
        self.manager, self.client = manager, client

    def end(self):
        if self.client is not None:
            self.client.stop_channels()
        if self.manager is not None:
            self.manager.shutdown_kernel()
        self.manager = self.client = None

    def run(self, code, silent=False):
        """Runs a cell and shows what it shows, as it comes. A KeyboardInterrupt is passed on, and the session lives."""
        self.start()
        self.follow(self.client.execute(code, store_history=not silent, allow_stdin=True))

    def follow(self, asked, answered=True):
        """Shows what comes of a message, to its end; one that is `answered` has a reply, too."""
        client = self.client
        failed, idle, reply, interrupted = None, False, None, None
        while not (idle and (reply or not answered)):
            try:
                sockets = {c.socket: c for c in (client.iopub_channel, client.stdin_channel, client.shell_channel)}
                poller = zmq.Poller()
                for socket in sockets:
                    poller.register(socket, zmq.POLLIN)
                if not poller.poll(1000) and not self.manager.is_alive():
                    raise RustError("KernelDied", "xlazy's kernel has ended; the next cell starts another", [])
                while client.iopub_channel.msg_ready():
                    message = client.get_iopub_msg(timeout=1)
                    ours = message["parent_header"].get("msg_id") == asked
                    if ours and message["msg_type"] == "error":
                        failed = message["content"]
                    elif ours and message["msg_type"] == "status":
                        idle = message["content"]["execution_state"] == "idle"
                    elif not self.widgets.heard(message):
                        self.show(message["msg_type"], message["content"])
                while client.stdin_channel.msg_ready():
                    question = client.get_stdin_msg(timeout=1)["content"]
                    sys.stdout.flush()
                    client.input((getpass if question["password"] else input)(question["prompt"]))
                while client.shell_channel.msg_ready():
                    message = client.get_shell_msg(timeout=1)
                    reply = message if message["parent_header"].get("msg_id") == asked else reply
            except KeyboardInterrupt as interrupt:
                interrupted = interrupt
                self.manager.interrupt_kernel()
        content = failed or (reply["content"] if reply and reply["content"]["status"] == "error" else None)
        if content and content.get("ename"):
            raise RustError(content["ename"], content["evalue"], content["traceback"]) from interrupted

    def show(self, kind, content):
        publish = self.shell.display_pub.publish
        if kind == "stream":
            stream = sys.stderr if content["name"] == "stderr" else sys.stdout
            stream.write(content["text"])
            stream.flush()
        elif kind in ("display_data", "execute_result", "update_display_data"):
            sys.stdout.flush()
            sys.stderr.flush()
            publish(
                data=content["data"],
                metadata=content["metadata"],
                transient=content.get("transient", {}),
                update=kind == "update_display_data",
            )
        elif kind == "clear_output":
            clear_output(wait=content["wait"])

    def complete(self, code, position):
        """What may stand at a place, and where what it replaces begins. Nothing while there is no session, or none in time."""
        if self.client is None or not self.manager.is_alive():
            return [], position
        try:
            content = self.client.complete(code, position, reply=True, timeout=5)["content"]
        except (TimeoutError, RuntimeError):
            return [], position
        return content["matches"], content["cursor_start"]


class Widgets:
    """Widgets of the session, each with a comm of this notebook's kernel for its own."""

    def __init__(self, session):
        self.session, self.comms = session, {}

    def heard(self, message):
        """Passes on what a widget tells its front ends; False for messages of other kinds."""
        content, kind = message["content"], message["msg_type"]
        if kind not in ("comm_open", "comm_msg", "comm_close"):
            return False
        told = {"data": content["data"], "metadata": message["metadata"], "buffers": message["buffers"]}
        name = content["comm_id"]
        if kind == "comm_open":
            from comm import create_comm

            cell = self.session.shell.get_parent() if hasattr(self.session.shell, "get_parent") else None
            comm = create_comm(target_name=content["target_name"], comm_id=name, **told)
            comm.on_msg(lambda said: self.touched(name, said, cell))
            self.comms[name] = comm
        elif name in self.comms and kind == "comm_msg":
            self.comms[name].send(**told)
        elif name in self.comms:
            self.comms.pop(name).close(**told)
        return True

    def touched(self, name, said, cell):
        """A hand has changed a widget: what comes of it stands below the cell that made it."""
        session, shell = self.session, self.session.shell
        client = session.client
        if client is None or not session.manager.is_alive():
            return
        content = {"comm_id": name, "data": said["content"]["data"]}
        message = client.session.msg("comm_msg", content)
        before = shell.get_parent() if cell else None
        try:
            if cell:
                shell.set_parent(cell)
            client.session.send(client.shell_channel.socket, message, buffers=said["buffers"])
            session.follow(message["header"]["msg_id"], answered=False)
        except RustError:
            shell.showtraceback()
        finally:
            if cell:
                shell.set_parent(before)


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
            self.session.run(f"::xlazy::nn::save({rust_text(file)}, &[{one}]).unwrap();", silent=True)
            return read(file)

    @line_magic
    def xlazy_put(self, line):
        """`%xlazy_put x`: a NumPy array, or what NumPy makes one of, as a tensor of that name."""
        name = line.strip()
        if not name.isidentifier() or name not in self.shell.user_ns:
            raise UsageError(f"%xlazy_put NAME: there is no variable {name!r} in this notebook")
        with Exchange() as file:
            write(file, self.shell.user_ns[name])
            self.session.run(f"let {name} = ::xlazy::nn::load({rust_text(file)}).unwrap().remove(0).1;", silent=True)


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


def matcher_of(session):
    @context_matcher()
    def xlazy_matcher(context):
        text = context.full_text
        first, _, code = text.partition("\n")
        if first.split()[:1] != [CELL] or context.cursor_line == 0:
            return {"completions": []}
        lines = code.split("\n")[: context.cursor_line - 1]
        position = sum(len(line) + 1 for line in lines) + context.cursor_position
        matches, start = session.complete(code, position)
        found = [SimpleCompletion(text=match, type="xlazy") for match in matches]
        return {"completions": found, "matched_fragment": code[start:position], "suppress": True}

    return xlazy_matcher


def load(ipython):
    unload(ipython)
    magics = XlazyMagics(ipython)
    magics.matcher = matcher_of(magics.session)
    ipython.register_magics(magics)
    ipython.Completer.custom_matchers.append(magics.matcher)
    # The session ends with the notebook's kernel.
    atexit.register(magics.session.end)


def unload(ipython):
    magics = ipython.magics_manager.registry.pop("XlazyMagics", None)
    if magics is None:
        return
    atexit.unregister(magics.session.end)
    magics.session.end()
    ipython.Completer.custom_matchers.remove(magics.matcher)
    for kind, name in (("cell", "xlazy"), ("line", "xlazy_get"), ("line", "xlazy_put")):
        ipython.magics_manager.magics[kind].pop(name, None)
