"""What goes to a session's kernel and comes from it. Cells, hands on widgets and threads of the notebook ask at once, and a socket of
ZeroMQ may be used by one thread only: so one thread has them all."""

import os
import queue
import threading
import traceback
from collections import deque

import zmq
from jupyter_client.session import Session as Messages


class Asked:
    """A message that is answered: what comes of it, in order, until all that it waits for has come, or nothing can any more. Then
    there is something left in `until`."""

    def __init__(self, until):
        self.until, self.reply, self.over = set(until), None, False
        self.came = queue.SimpleQueue()

    def take(self, message):
        kind, content = message["msg_type"], message["content"]
        if kind.endswith("_reply"):
            self.reply = content
            self.until.discard("reply")
        elif kind != "status":
            self.came.put(message)
        elif content["execution_state"] == "idle":
            self.until.discard("idle")
        if not self.until:
            self.end()

    def end(self):
        self.over = True
        self.came.put(None)

    def next(self, timeout=None):
        """None at the end, and where nothing comes in time. An interrupt may swallow what it returns, so the end is also known
        without it."""
        if self.over and self.came.empty():
            return None
        try:
            return self.came.get(timeout=timeout)
        except queue.Empty:
            return None


class Wire:
    def __init__(self, manager, late):
        """`late` gets what nobody waits for, or waits for any more."""
        self.messages = Messages(key=manager.session.key)
        # The kernel asks whoever runs the cell, so shell and stdin have one name.
        name = self.messages.bsession
        # In this order they are read: what a cell has shown stands above what it asks.
        self.sockets = {
            "iopub": manager.connect_iopub(),
            "stdin": manager.connect_stdin(identity=name),
            "shell": manager.connect_shell(identity=name),
            "control": manager.connect_control(identity=name),
        }
        self.manager, self.late, self.now = manager, late, False
        self.lock, self.over, self.asked, self.out = threading.Lock(), False, {}, deque()
        self.woken, self.wakes = os.pipe()
        self.thread = threading.Thread(target=self.run, name="xlazy", daemon=True)
        self.thread.start()

    def ask(self, kind, content, channel="shell", until=("reply", "idle"), subshell=None, buffers=()):
        """Sends a message whose answers are waited for."""
        asked = Asked(until)
        with self.lock:
            message = self.messages.msg(kind, content)
            if subshell:
                message["header"]["subshell_id"] = subshell
            asked.name = message["header"]["msg_id"]
            if self.over:
                asked.end()
            else:
                self.asked[asked.name] = asked
                self.send(channel, message, buffers)
        return asked

    def tell(self, kind, content, channel):
        """Sends a message without waiting for what comes of it."""
        with self.lock:
            if not self.over:
                self.send(channel, self.messages.msg(kind, content), ())

    def send(self, *message):
        self.out.append(message)
        os.write(self.wakes, b"\0")

    def done(self, asked):
        """Nobody waits for it any more; what has come since is late."""
        with self.lock:
            self.asked.pop(asked.name, None)
        while not asked.came.empty():
            message = asked.came.get()
            if message:
                self.late(message)

    def close(self, now=False):
        """Ends the kernel, `now` without asking it."""
        with self.lock:
            if not self.over:
                self.over, self.now = True, now
                os.write(self.wakes, b"\0")
        self.thread.join()

    def run(self):
        poller = zmq.Poller()
        for readable in (self.woken, *self.sockets.values()):
            poller.register(readable, zmq.POLLIN)
        while not self.over:
            ready = dict(poller.poll(1000))
            if self.woken in ready:
                os.read(self.woken, 4096)
            while self.out:
                channel, message, buffers = self.out.popleft()
                self.messages.send(self.sockets[channel], message, buffers=list(buffers))
            for socket in self.sockets.values():
                self.receive(socket)
            if not ready and not self.manager.is_alive():
                break
        with self.lock:
            self.over = True
            for asked in self.asked.values():
                asked.end()
        for socket in self.sockets.values():
            socket.close(linger=0)
        os.close(self.woken)
        os.close(self.wakes)
        # Here, since where the notebook's kernel ends its thread's event loop has ended, in which jupyter_client 7 would do it.
        self.manager.shutdown_kernel(now=self.now)

    def receive(self, socket):
        while True:
            try:
                _, message = self.messages.recv(socket)
                if message is None:
                    return
                with self.lock:
                    asked = self.asked.get(message["parent_header"].get("msg_id"))
                    if asked:
                        asked.take(message)
                if not asked:
                    self.late(message)
            except Exception:
                # One message that cannot be shown ends nothing.
                traceback.print_exc()
