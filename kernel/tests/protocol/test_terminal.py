"""The REPL as somebody sees it who sits at a terminal."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

PATIENCE = 60


class Terminal:
    """`xlazy repl` on a terminal of its own."""

    def __init__(self, folder):
        self.end, theirs = pty.openpty()
        env = dict(os.environ, TERM="xterm")
        command = [os.environ["XLAZY_BIN"], "repl"]
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder)
        os.close(theirs)
        self.seen = ""

    def type(self, text):
        os.write(self.end, text.encode())

    def until(self, pattern):
        """Reads until the pattern has come; what came before it."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.seen)):
            ready = select.select([self.end], [], [], deadline - time.monotonic())[0]
            assert ready, f"{pattern!r} does not come: {self.seen[-2000:]}"
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(self.end, 65536).decode(errors="replace"))
        before, self.seen = self.seen[: found.start()], self.seen[found.end() :]
        return before

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.end)


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def test_threads_that_outlive_their_cell_are_heard_while_a_line_is_typed(terminal, tmp_path):
    os.mkfifo(tmp_path / "word")
    terminal.until(r"In \[1\]: ")
    # Lines that begin with a blank are in nobody's history.
    terminal.type(' let t = std::thread::spawn(|| println!("said {}", std::fs::read_to_string("word").unwrap()));\r')
    terminal.until(r"In \[2\]: ")
    terminal.type(" let half = 1")
    terminal.until(r"let half = 1")
    (tmp_path / "word").write_text("late")
    terminal.until(r"said late")
    # What was typed is there again, and goes on.
    terminal.until(r"In \[2\]:  let half = 1")
    terminal.type("; half + 1\r")
    terminal.until(r"Out\[2\]: 2")


def test_what_is_typed_while_a_cell_runs_is_read_afterwards(terminal, tmp_path):
    os.mkfifo(tmp_path / "go")
    terminal.until(r"In \[1\]: ")
    terminal.type(' println!("{}", "waits".len()); std::fs::read_to_string("go").unwrap();\r')
    # It runs: the terminal is in the state in which cells find it.
    terminal.until(r"\n5\r?\n")
    terminal.type(" let a = 1;\r if a == 1 {\rprintln!(\"{}\", a + 100);\r}\r a + 1\r")
    (tmp_path / "go").write_text("go")
    terminal.until(r"\n101\r?\n")
    terminal.until(r"Out\[4\]: 2")
