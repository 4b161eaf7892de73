"""A session of xlazy's own kernel beside a Python notebook, reached as any front end does."""

import getpass
import sys
import threading

from IPython.display import clear_output
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from . import colab
from .folder import Folder
from .wire import Wire

CELL = "%%xlazy"
# So long a kernel may take to start.
START_S = 60


class RustError(Exception):
    """A cell of Rust that failed, shown as its own kernel shows it."""

    def __init__(self, name, message, traceback=()):
        super().__init__(f"{name}: {message}")
        self.name, self.message, self.traceback = name, message, list(traceback)

    def _render_traceback_(self):
        return self.traceback or [str(self)]


class Session:
    """One kernel for one notebook, started by its first cell."""

    def __init__(self, shell):
        self.shell, self.folder, self.manager, self.wire, self.subshell = shell, None, None, None, None
        self.starting, self.welcome = threading.RLock(), threading.Event()
        # The headers of the notebook's messages, by the ids of those that they cause here.
        self.asking = {}
        self.widgets = Widgets(self)

    def start(self):
        with self.starting:
            if self.alive():
                return
            if self.manager is not None:
                print("The session has ended: its variables are gone, and this cell begins another one.", file=sys.stderr)
            self.end()
            # Unix sockets: nobody else on the machine can read what goes over them.
            self.folder = folder = Folder()
            manager = KernelManager(transport="ipc", ip=folder / "socket", connection_file=folder / "kernel.json")
            # This package's own, whatever kernelspecs Jupyter finds.
            command = [sys.executable, "-m", "xlazy", "kernel", "{connection_file}"]
            manager._kernel_spec = KernelSpec(
                argv=command, display_name="xlazy", language="rust", interrupt_mode="message"
            )
            manager.start_kernel()
            self.welcome.clear()
            self.manager, self.wire = manager, Wire(manager, self.late)
            try:
                # What is shown before this front end is heard of goes nowhere.
                if not self.answer("kernel_info_request", timeout=START_S) or not self.welcome.wait(START_S):
                    raise RustError("KernelDied", f"xlazy's kernel does not start, or takes more than {START_S} s")
            except BaseException:
                self.end(now=True)
                raise
            # What a hand does to a widget passes the running cell by.
            made = self.answer("create_subshell_request", channel="control", timeout=START_S)
            self.subshell = made and made.get("subshell_id")

    def alive(self):
        return self.manager is not None and self.manager.is_alive()

    def end(self, now=False):
        with self.starting:
            if self.wire is not None:
                self.wire.close(now)
            if self.folder is not None:
                self.folder.end()
            self.folder = self.manager = self.wire = self.subshell = None

    def answer(self, kind, content=None, channel="shell", timeout=None):
        """What the kernel replies to a question; None where it does not in time."""
        asked = self.wire.ask(kind, content or {}, channel, until=("reply",))
        try:
            asked.next(timeout)
            return asked.reply
        finally:
            self.wire.done(asked)

    def run(self, code, record=True):
        """Runs a cell and shows what it shows, as it comes. A KeyboardInterrupt is passed on, and the session lives."""
        self.start()
        content = {
            "code": code,
            "silent": False,
            "store_history": record,
            "user_expressions": {},
            # A terminal can be asked, a front end says whether it can.
            "allow_stdin": self.kernel() is None or self.request().get("content", {}).get("allow_stdin", False),
            # Which cells are not run after this one is up to the notebook.
            "stop_on_error": False,
        }
        asked = self.wire.ask("execute_request", content)
        self.asking[asked.name] = self.request().get("header")
        for told in self.follow(asked).get("payload", ()):
            if told["source"] == "page":
                # As every front end shows it, and a page of theirs some do not.
                self.shell.display_pub.publish(data=told["data"], metadata={})
            elif told["source"] == "set_next_input":
                self.shell.set_next_input(f"{CELL}\n{told['text']}")

    def request(self):
        """The message that the notebook's cell runs for; in a terminal there is none."""
        return self.shell.get_parent() if hasattr(self.shell, "get_parent") else {}

    def follow(self, asked):
        """Shows what comes of a cell, to its end, and returns the reply."""
        wire, failed, errors = self.wire, None, []
        try:
            while not (asked.over and asked.came.empty()):
                try:
                    message = asked.next()
                    if message and message["msg_type"] == "error":
                        errors.append(message)
                    elif message and message["msg_type"] == "input_request":
                        question = message["content"]
                        sys.stdout.flush()
                        value = (getpass.getpass if question["password"] else input)(question["prompt"])
                        wire.tell("input_reply", {"value": value}, "stdin")
                    elif message and not self.widgets.heard(message):
                        self.show(message["msg_type"], message["content"])
                except KeyboardInterrupt as interrupt:
                    failed = failed or interrupt
                    self.interrupt()
                except BaseException as error:
                    # Here nothing is shown or answered any more, and the cell must not wait for it: it ends, and then this does.
                    if failed is None or isinstance(failed, KeyboardInterrupt):
                        self.interrupt()
                        failed = error
        finally:
            wire.done(asked)
        if asked.until:
            raise RustError("KernelDied", "xlazy's kernel has ended; the next cell starts another") from failed
        if failed and not isinstance(failed, KeyboardInterrupt):
            raise failed
        reply = asked.reply
        error = {part: reply[part] for part in ("ename", "evalue", "traceback")} if reply["status"] == "error" else None
        for message in errors:
            # Another's than the cell's own is of a widget that it shows.
            if message["content"] != error:
                self.late(message)
        if error:
            raise RustError(*error.values()) from failed
        return reply

    def interrupt(self):
        """Ends what runs; a KernelManager would use a socket that is another thread's."""
        wire = self.wire
        if wire is not None:
            wire.tell("interrupt_request", {}, "control")

    def late(self, message):
        """Shows what comes of a cell that is over, from its threads and for its widgets: it stands below that cell all the same."""
        kind = message["msg_type"]
        if kind == "iopub_welcome":
            self.welcome.set()
        elif not self.widgets.heard(message) and kind in SHOWN:
            if self.kernel() is not None and self.asker(message):
                # Not by way of stdout and the display hook: they are the running cell's.
                self.publish(message)
            else:
                self.show(kind, message["content"])

    def kernel(self):
        """The notebook's own, which is ipykernel's or one made of it; None in a terminal."""
        kernel = getattr(self.shell, "kernel", None)
        return kernel if hasattr(kernel, "iopub_socket") else None

    def asker(self, message):
        """The header of the notebook's message that a message of the session is due to."""
        return self.asking.get(message["parent_header"].get("msg_id"))

    def publish(self, message):
        """Passes a message on."""
        kernel, kind, content = self.kernel(), message["msg_type"], message["content"]
        if "metadata" in content:
            content = {**content, "metadata": colab.metadata(content)}
        more = {"parent": self.asker(message), "metadata": message["metadata"], "buffers": message["buffers"]}
        kernel.session.send(kernel.iopub_socket, kind, content, ident=kind.encode(), **more)

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
                metadata=colab.metadata(content),
                transient=content.get("transient", {}),
                update=kind == "update_display_data",
            )
        elif kind == "clear_output":
            clear_output(wait=content["wait"])
        elif kind == "error":
            print(*content["traceback"], sep="\n", file=sys.stderr)

    def complete(self, code, position):
        """What may stand at a place, and from where to where it is put. Nothing while there is no session, or none in time."""
        asked = {"code": code, "cursor_pos": position}
        content = self.answer("complete_request", asked, timeout=5) if self.alive() else None
        return (content["matches"], content["cursor_start"], content["cursor_end"]) if content else ([], position, position)

    def inspect(self, code, position, detail):
        """What a front end shows of what stands at a place; that nothing was found where there is no session, or no answer in time."""
        asked = {"code": code, "cursor_pos": position, "detail_level": detail}
        content = self.answer("inspect_request", asked, timeout=5) if self.alive() else None
        return content or {"status": "ok", "found": False, "data": {}, "metadata": {}}


# What a front end shows of a cell that is over.
SHOWN = ("stream", "display_data", "update_display_data", "clear_output", "error")


class Widgets:
    """Widgets of the session. What they and the front ends tell each other passes through this notebook's kernel."""

    def __init__(self, session):
        self.session = session

    def heard(self, message):
        """Passes on what a widget tells its front ends; False for messages of other kinds."""
        content, kind = message["content"], message["msg_type"]
        if kind not in ("comm_open", "comm_msg", "comm_close"):
            return False
        kernel = self.session.kernel()
        # Without one there is nobody who could move it; a terminal shows its text.
        if kernel is not None:
            self.session.publish(message)
            if kind == "comm_open":
                kernel.comm_manager.register_comm(Comm(self, content))
            elif kind == "comm_close":
                kernel.comm_manager.comms.pop(content["comm_id"], None)
        return True

    def touched(self, name, said):
        """A hand has changed a widget. The front end sends no more of it until this returns, which is when all has come of it."""
        session = self.session
        wire = session.wire
        if wire is None:
            return
        content = {"comm_id": name, "data": said["content"]["data"]}
        asked = wire.ask("comm_msg", content, until=("idle",), subshell=session.subshell, buffers=said["buffers"])
        session.asking[asked.name] = said["header"]
        try:
            while message := asked.next():
                session.late(message)
        except KeyboardInterrupt:
            session.interrupt()
        finally:
            wire.done(asked)
            del session.asking[asked.name]


class Comm:
    """What ipykernel has to know of a comm. Not its own kind, which every version makes in another way, and which answers in the
    shell where it was made: while a cell runs there, no hand would be seen."""

    def __init__(self, widgets, opened):
        self.widgets, self.comm_id, self.target_name = widgets, opened["comm_id"], opened["target_name"]

    def handle_msg(self, said):
        self.widgets.touched(self.comm_id, said)

    def handle_close(self, said):
        pass
