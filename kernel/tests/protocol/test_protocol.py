"""The kernel as Jupyter's own client sees it: jupyter_kernel_test without a skip, and what that suite leaves out."""

import os
import select
import signal
import subprocess
import sys
import time
from queue import Empty

import jupyter_kernel_test
import nbformat
import pytest
import zmq
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from samples import SAMPLES

SUITE = {name: value for name, value in SAMPLES.items() if hasattr(jupyter_kernel_test.KernelTests, name)}


class TestKernel(jupyter_kernel_test.KernelTests):
    kernel_name = "xlazy-test"
    language_name = "rust"
    file_extension = ".rs"
    supported_history_operations = ("tail", "range", "search")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Something of the user's own to complete and to inspect.
        reply = cls.kc.execute(SAMPLES["prepare"], reply=True, timeout=60)
        assert reply["content"]["status"] == "ok", reply["content"]


class TestWelcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = "xlazy-test"
    support_iopub_welcome = True


for name, value in SUITE.items():
    setattr(TestKernel, name, value)


@pytest.fixture
def kernel():
    manager, client = start_new_kernel(kernel_name="xlazy-test")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def status(client, id):
    while True:
        reply = client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == id:
            return reply["content"]


def wait_for_busy(client, id):
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == id and message["msg_type"] == "execute_input":
            return


def test_time_to_kernel_info():
    """From the start of the process to its first answer; the question waits in a socket that is already there."""
    manager = KernelManager(kernel_name="xlazy-test")
    manager.write_connection_file()
    manager.cache_ports = False
    client = manager.client()
    with zmq.Context() as context, context.socket(zmq.DEALER) as shell:
        shell.linger = 0
        shell.reconnect_ivl = 1
        shell.connect(f"tcp://{manager.ip}:{manager.shell_port}")
        question = client.session.msg("kernel_info_request")
        client.session.send(shell, question)
        environment = {**os.environ, **manager.kernel_spec.env}
        began = time.monotonic()
        process = subprocess.Popen(manager.format_kernel_cmd(), env=environment)
        assert shell.poll(60_000)
        print(f"process start to kernel_info_reply: {(time.monotonic() - began) * 1e3:.1f} ms")
        _, answer = client.session.recv(shell, mode=0)
        assert answer["parent_header"]["msg_id"] == question["header"]["msg_id"]
        process.terminate()
        assert process.wait(timeout=30) == 0
    manager.cleanup_connection_file()


def test_execute_round_trip(kernel):
    _, client = kernel
    times = []
    for _ in range(200):
        began = time.monotonic()
        status(client, client.execute(SAMPLES["good"]))
        times.append(time.monotonic() - began)
    times.sort()
    print(f"execute to reply, client included: median {times[100] * 1e3:.2f} ms, 95 % {times[190] * 1e3:.2f} ms")


def test_sigint_interrupts(kernel):
    manager, client = kernel
    id = client.execute(SAMPLES["loop_forever"])
    wait_for_busy(client, id)
    os.kill(manager.provisioner.pid, signal.SIGINT)
    assert status(client, id)["status"] == "error"
    assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"


def test_the_kernel_ends_with_its_parent():
    starter = (
        "import os, sys; from jupyter_client.manager import start_new_kernel;"
        "manager, _ = start_new_kernel(kernel_name='xlazy-test');"
        "print(manager.provisioner.pid, flush=True); sys.stdin.read(); os._exit(0)"
    )
    parent = subprocess.Popen([sys.executable, "-c", starter], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    orphan = os.pidfd_open(int(parent.stdout.readline()))
    parent.communicate()
    ended, _, _ = select.select([orphan], [], [], 30)
    os.close(orphan)
    assert ended


def test_interrupt_of_a_running_cell(kernel):
    manager, client = kernel
    id = client.execute(SAMPLES["loop_forever"])
    wait_for_busy(client, id)
    manager.interrupt_kernel()
    assert status(client, id)["status"] == "error"
    assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"


def test_shutdown_ends_the_process(kernel):
    manager, client = kernel
    id = client.shutdown()
    reply = client.get_control_msg(timeout=60)
    assert (reply["parent_header"]["msg_id"], reply["content"]["restart"]) == (id, False)
    assert manager.provisioner.process.wait(timeout=10) == 0


def test_restart_starts_afresh(kernel):
    manager, client = kernel
    assert status(client, client.execute(SAMPLES["good"]))["execution_count"] == 1
    manager.restart_kernel()
    client.wait_for_ready(timeout=60)
    assert status(client, client.execute(SAMPLES["good"]))["execution_count"] == 1


def test_what_waits_behind_an_error_is_aborted(kernel):
    _, client = kernel
    ids = [client.execute(code) for code in [SAMPLES["loop_forever"], SAMPLES["good"], SAMPLES["good"]]]
    wait_for_busy(client, ids[0])
    kernel[0].interrupt_kernel()
    replies = {}
    while len(replies) < 3:
        reply = client.get_shell_msg(timeout=60)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]["status"]
    assert [replies[id] for id in ids] == ["error", "aborted", "aborted"]


def test_a_notebook_runs(kernel):
    cells = [nbformat.v4.new_code_cell(SAMPLES[c]) for c in ("code_hello_world", "good")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="xlazy-test", timeout=60).execute()
    assert notebook.cells[0].outputs[0].text == "hello, world\n"
    assert notebook.cells[1].outputs[0].data["text/plain"] == "2"
    notebook.cells[0].source = SAMPLES["code_generate_error"]
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, kernel_name="xlazy-test", timeout=60).execute()


def test_forged_messages_are_ignored(kernel):
    _, client = kernel
    right = client.session.key
    client.session.key = b"a wrong key"
    client.execute(SAMPLES["good"])
    client.session.key = right
    with pytest.raises(Empty):
        client.get_shell_msg(timeout=0.3)
    assert status(client, client.execute(SAMPLES["good"]))["execution_count"] == 1


def test_input_is_asked_for_and_answered(kernel):
    _, client = kernel
    id = client.execute(SAMPLES["ask_for_input"], allow_stdin=True)
    assert client.get_stdin_msg(timeout=60)["content"]["prompt"] == "name?"
    client.input("Ada")
    assert status(client, id)["status"] == "ok"


def test_the_heart_beats(kernel):
    _, client = kernel
    assert client.is_alive()
    assert client.hb_channel.is_beating()
