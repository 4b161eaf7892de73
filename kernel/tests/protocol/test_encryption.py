"""CURVE against libzmq: the handshake, what goes through it, and who is kept out."""

import json
import os
import socket
import subprocess
import time

import pytest
import zmq
from jupyter_client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from zmq.utils.monitor import recv_monitor_message

from samples import SAMPLES
from test_protocol import outputs, status

CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
FORGED = dict(zip(("curve_publickey", "curve_secretkey"), zmq.curve_keypair(), strict=True))


@pytest.fixture(scope="module", params=["tcp", "ipc"])
def encrypted(request):
    assert zmq.has("curve")
    manager = KernelManager(kernel_name="xlazy-test", transport=request.param)
    manager.transport_encryption = "required"
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


def connected(manager, **changes):
    client = BlockingKernelClient()
    client.load_connection_info({**manager.get_connection_info(), **changes})
    client.start_channels()
    return client


@pytest.fixture
def client(encrypted):
    client = connected(encrypted)
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()


def url(manager, channel):
    port = getattr(manager, f"{channel}_port")
    return f"tcp://{manager.ip}:{port}" if manager.transport == "tcp" else f"ipc://{manager.ip}-{port}"


def test_a_cell_runs_and_all_of_its_output_comes(client):
    id = client.execute(SAMPLES["code_hello_world"])
    assert any(m["content"].get("text") == "hello, world\n" for m in outputs(client, id))
    assert status(client, id)["status"] == "ok"


def test_the_kernelspec_says_so_and_a_manager_that_may_encrypt_does(encrypted):
    spec = encrypted.kernel_spec
    assert spec.metadata["supported_encryption"] == ["curve"]
    manager = KernelManager(kernel_name="xlazy-test", transport_encryption="auto")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        assert json.loads(open(manager.connection_file).read())["curve_publickey"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_heart_beats_encrypted(client):
    assert client.hb_channel.is_beating()


def test_control_and_stdin_are_encrypted_too(encrypted, client):
    id = client.execute(SAMPLES["ask_for_input"], allow_stdin=True)
    assert client.get_stdin_msg(timeout=60)["content"]["prompt"] == "name?"
    client.input("Ada")
    assert status(client, id)["status"] == "ok"
    id = client.execute(SAMPLES["loop_forever"])
    for message in outputs(client, id):
        if message["msg_type"] == "execute_input":
            encrypted.interrupt_kernel()
    assert status(client, id)["status"] == "error"


def test_a_message_of_many_frames_and_a_large_one(client):
    """More than a frame's short length both ways, and frames behind the content."""
    message = client.session.msg("is_complete_request", {"code": "// " + "x" * 300_000})
    client.session.send(client.shell_channel.socket, message, buffers=[bytes(n) for n in (0, 1, 255, 256, 70_000)])
    assert client.get_shell_msg(timeout=60)["content"]["status"] == "complete"


def test_two_front_ends_are_encrypted_each_with_its_own_key(encrypted, client):
    second = connected(encrypted)
    second.wait_for_ready(timeout=60)
    assert status(second, second.execute(SAMPLES["good"]))["status"] == "ok"
    assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"
    second.stop_channels()


def keyed(socket, server, keys=None):
    socket.curve_publickey, socket.curve_secretkey = keys or zmq.curve_keypair()
    socket.curve_serverkey = server
    return socket


def handshakes(manager, channel, arm):
    """What libzmq itself says of the handshake on a socket."""
    kind = {"iopub": zmq.SUB, "hb": zmq.REQ}.get(channel, zmq.DEALER)
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.linger = 0
        if channel == "iopub":
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        arm(socket)
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        events |= zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        events |= zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        monitor = socket.get_monitor_socket(events)
        socket.connect(url(manager, channel))
        assert monitor.poll(10_000), "neither in nor out"
        event = recv_monitor_message(monitor)["event"]
        socket.disable_monitor()
        return event == zmq.EVENT_HANDSHAKE_SUCCEEDED


@pytest.mark.parametrize("channel", CHANNELS)
def test_any_client_key_will_do_and_the_right_server_key_must(encrypted, channel):
    right = encrypted.curve_publickey
    assert handshakes(encrypted, channel, lambda s: keyed(s, right))
    assert handshakes(encrypted, channel, lambda s: keyed(s, right, (right, encrypted.curve_secretkey)))
    assert not handshakes(encrypted, channel, lambda s: keyed(s, FORGED["curve_publickey"]))
    assert not handshakes(encrypted, channel, lambda s: None), "plain"


def test_a_plain_subscriber_reads_nothing_and_a_plain_request_runs_nothing(encrypted, client):
    with zmq.Context() as context, context.socket(zmq.SUB) as plain, context.socket(zmq.DEALER) as shell:
        plain.linger = shell.linger = 0
        plain.setsockopt(zmq.SUBSCRIBE, b"")
        plain.connect(url(encrypted, "iopub"))
        shell.connect(url(encrypted, "shell"))
        # With the right signature even.
        client.session.send(shell, client.session.msg("kernel_info_request"))
        id = client.execute(SAMPLES["code_hello_world"])
        assert status(client, id)["status"] == "ok"
        assert len(list(outputs(client, id))) > 2
        assert not plain.poll(200) and not shell.poll(0)


def test_nothing_of_a_cell_can_be_read_on_the_wire(encrypted):
    """A front end through a proxy that keeps all bytes."""
    if encrypted.transport != "tcp":
        return  # one transport is enough: the bytes are the same
    seen = bytearray()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        zmq.Context() as context,
        context.socket(zmq.DEALER) as shell,
    ):
        shell.linger = 0
        keyed(shell, encrypted.curve_publickey)
        shell.connect("tcp://127.0.0.1:%d" % server.getsockname()[1])
        near, _ = server.accept()
        far = socket.create_connection((encrypted.ip, encrypted.shell_port))
        session = encrypted.session.clone()
        session.send(shell, session.msg("is_complete_request", {"code": "let secret = 12345;"}))
        poller = zmq.Poller()
        for end in (shell, near.fileno(), far.fileno()):
            poller.register(end, zmq.POLLIN)
        answered = False
        while not answered:
            for ready, _ in poller.poll(60_000) or pytest.fail("no answer through the proxy"):
                if ready == shell:
                    answered = True
                else:
                    source, sink = (near, far) if ready == near.fileno() else (far, near)
                    piece = source.recv(1 << 16)
                    assert piece, "hung up"
                    seen += piece
                    sink.sendall(piece)
        _, reply = session.recv(shell, mode=0)
        assert reply["content"]["status"] == "complete"
        near.close(), far.close()
    assert b"CURVE" in seen and b"MESSAGE" in seen
    for clear in (b"secret", b"is_complete", b"msg_id", encrypted.curve_publickey, b"DEALER"):
        assert clear not in seen, clear


def test_a_connection_file_without_a_key_is_warned_of(tmp_path):
    manager = KernelManager(kernel_name="xlazy-test")
    manager.connection_file = str(tmp_path / "connection.json")
    manager.session.key = b""
    manager.write_connection_file()
    process = subprocess.Popen(
        manager.format_kernel_cmd(), stderr=subprocess.PIPE, text=True, env={**os.environ, **manager.kernel_spec.env}
    )
    lines = iter(process.stderr.readline, "")
    assert any("empty key" in line and "can run code here" in line for line in lines)
    process.terminate()
    process.communicate(timeout=30)


def test_half_a_pair_of_keys_is_an_error_and_not_plain_text(tmp_path):
    manager = KernelManager(kernel_name="xlazy-test", transport_encryption="required")
    manager.connection_file = str(tmp_path / "connection.json")
    manager.write_connection_file()
    good = json.loads((tmp_path / "connection.json").read_text())
    public, secret = (key.decode() for key in zmq.curve_keypair())
    other = zmq.curve_keypair()[0].decode()
    environment = {**os.environ, **manager.kernel_spec.env}
    for keys in (
        {"curve_publickey": public},
        {"curve_secretkey": secret},
        {"curve_publickey": public[:-1], "curve_secretkey": secret},
        {"curve_publickey": other, "curve_secretkey": secret},
    ):
        (tmp_path / "connection.json").write_text(json.dumps({**good, **keys}))
        command = manager.format_kernel_cmd()
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert ended.returncode != 0 and "curve_" in ended.stderr, ended
        assert secret not in ended.stderr


def test_what_encryption_costs(client):
    times = []
    for _ in range(100):
        began = time.monotonic()
        status(client, client.execute(SAMPLES["good"]))
        times.append(time.monotonic() - began)
    times.sort()
    print(f"encrypted execute to reply, client included: median {times[50] * 1e3:.2f} ms")
