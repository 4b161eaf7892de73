"""The kernel as Jupyter's own client sees it: jupyter_kernel_test without a skip, and what that suite leaves out."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Empty

import jupyter_kernel_test
import nbformat
import numpy as np
import pytest
import zmq
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from samples import REAL, SAMPLES

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
    after = status(client, client.execute(SAMPLES["good"]))
    assert after["status"] == "ok", after


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


def test_python_reads_a_checkpoint_and_writes_what_a_cell_reads(kernel, tmp_path):
    if SAMPLES is not REAL:
        return  # the mock has no variables
    manager, client = kernel
    kept, made = tmp_path / "kept.safetensors", tmp_path / "made.safetensors"
    save_file({"a": np.array([[1.5, -2.0]], dtype=np.float32)}, made)
    cells = [
        "let t = tensor([[1.0, 2.0]]); let half = t.to(F16); let ids = vec![3usize, 4]; let lr = 0.1;",
        f"%checkpoint save {kept}",
        f'assert_eq!(nn::load("{made}")?[0].1.to_vec::<f32>(), [1.5, -2.0]);',
    ]
    for cell in cells:
        reply = client.execute(cell, reply=True, timeout=60)
        assert reply["content"]["status"] == "ok", reply["content"]
    arrays = load_file(kept)
    assert {name: a.dtype.name for name, a in arrays.items()} == {"t": "float32", "half": "float16", "ids": "int64"}
    assert arrays["t"].tolist() == [[1.0, 2.0]] and arrays["ids"].tolist() == [3, 4]
    with safe_open(kept, framework="numpy") as file:
        variables = {v["name"]: v["value"] for v in json.loads(file.metadata()["xlazy.variables"])}
    assert variables["lr"] == 0.1


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


def test_input_is_refused_where_the_front_end_does_not_allow_it(kernel):
    _, client = kernel
    for cell in SAMPLES["ask_in_vain"]:
        reply = status(client, client.execute(cell, allow_stdin=False))
        assert reply["status"] == "error" and "front end" in reply["evalue"], reply
    assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"


def on_subshell(client, id, kind, content):
    """jupyter_client has no words for subshells yet; a header field is all there is to it."""
    message = client.session.msg(kind, content)
    message["header"]["subshell_id"] = id
    client.shell_channel.send(message)
    while True:
        reply = client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
            return reply


def control(client, kind, content):
    message = client.session.msg(kind, content)
    client.control_channel.send(message)
    while True:
        reply = client.get_control_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
            return reply["content"]


def test_a_subshell_answers_while_a_cell_runs(kernel):
    manager, client = kernel
    info = client.kernel_info(reply=True, timeout=60)["content"]
    assert "kernel subshells" in info["supported_features"]
    status(client, client.execute(SAMPLES["prepare"]))
    id = client.execute(SAMPLES["loop_forever"])
    wait_for_busy(client, id)
    subshell = control(client, "create_subshell_request", {})["subshell_id"]
    assert control(client, "list_subshell_request", {})["subshell_id"] == [subshell]
    sample = SAMPLES["completion_samples"][-1 if SAMPLES is REAL else 0]
    asked = {"code": sample["text"], "cursor_pos": len(sample["text"])}
    began = time.monotonic()
    reply = on_subshell(client, subshell, "complete_request", asked)
    assert set(sample["matches"]) <= set(reply["content"]["matches"])
    assert on_subshell(client, subshell, "is_complete_request", {"code": "1"})["content"]["status"] == "complete"
    code = SAMPLES["code_inspect_sample"]
    assert on_subshell(client, subshell, "inspect_request", {"code": code, "cursor_pos": 1})["content"]["found"]
    print(f"three answers on a subshell beside a cell: {(time.monotonic() - began) * 1e3:.1f} ms")
    manager.interrupt_kernel()
    assert status(client, id)["status"] == "error"
    ran = on_subshell(client, subshell, "execute_request", {"code": SAMPLES["good"], "silent": False})
    assert (ran["content"]["status"], ran["content"]["execution_count"]) == ("ok", 1)
    assert control(client, "delete_subshell_request", {"subshell_id": subshell}) == {"status": "ok"}
    assert on_subshell(client, subshell, "execute_request", {"code": SAMPLES["good"]})["content"]["status"] == "error"


def outputs(client, id):
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == id:
            yield message
            if message["content"].get("execution_state") == "idle":
                return


def test_ten_million_lines(kernel):
    manager, client = kernel
    status(client, client.execute(SAMPLES["good"]))
    began = time.monotonic()
    messages = list(outputs(client, client.execute(SAMPLES["flood"])))
    text = "".join(m["content"]["text"] for m in messages if m["content"].get("name") == "stdout")
    note = "".join(m["content"]["text"] for m in messages if m["content"].get("name") == "stderr")
    peak = Path(f"/proc/{manager.provisioner.pid}/status").read_text().split("VmHWM:")[1].split("\n")[0].strip()
    print(f"ten million lines: {time.monotonic() - began:.1f} s, {len(messages)} messages, kernel's peak {peak}")
    assert text.endswith("line 9999999\n") and len(text) < 12 << 20
    file = Path(note.split("it goes on in ")[1].split("]")[0])
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_bytes().endswith(b"line 9999999\n")
    file.unlink()
    assert int(peak.split()[0]) < 150 << 10
    assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"


if "raw_bytes" in SAMPLES:  # the mock has no bytes

    def test_bytes_that_are_no_text_are_shown(kernel):
        _, client = kernel
        messages = list(outputs(client, client.execute(SAMPLES["raw_bytes"])))
        assert "\ufffd\ufffd ok\n" in "".join(m["content"].get("text", "") for m in messages)


def test_over_unix_sockets():
    manager = KernelManager(kernel_name="xlazy-test", transport="ipc")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"
        assert os.stat(manager.connection_file).st_mode & 0o777 == 0o600
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_second_front_end_joins(kernel):
    """Of the same Jupyter session even, so with the same identity on its sockets."""
    manager, first = kernel
    second = manager.client()
    second.start_channels()
    second.wait_for_ready(timeout=60)
    for client in (first, second, first):
        assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"
    second.stop_channels()


def test_the_heart_beats(kernel):
    _, client = kernel
    assert client.is_alive()
    assert client.hb_channel.is_beating()
