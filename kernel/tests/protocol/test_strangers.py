"""Over TCP, from processes without the key: they keep nobody out, fill no memory, run nothing, and are asked nothing."""

import socket
import time
from pathlib import Path

import pytest
import zmq
from jupyter_client.manager import start_new_kernel

from samples import SAMPLES
from test_protocol import status

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
PORTS = {"shell": b"DEALER", "control": b"DEALER", "stdin": b"DEALER", "hb": b"REQ", "iopub": b"SUB"}


@pytest.fixture
def kernel():
    manager, client = start_new_kernel(kernel_name="xlazy-test")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def stranger(manager, channel):
    peer = socket.create_connection((manager.ip, getattr(manager, f"{channel}_port")))
    kind = PORTS[channel]
    ready = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind
    peer.sendall(GREETING + bytes([4, len(ready)]) + ready)
    return peer


def peak(manager):
    status = Path(f"/proc/{manager.provisioner.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def test_idle_connections_do_not_keep_a_front_end_out(kernel):
    manager, first = kernel
    idle = [stranger(manager, channel) for channel in PORTS for _ in range(140)]
    began = time.monotonic()
    second = manager.client()
    second.start_channels()
    second.wait_for_ready(timeout=60)
    print(f"beside {len(idle)} idle connections a front end was in after {time.monotonic() - began:.2f} s")
    for client in (second, first):
        id = client.execute(SAMPLES["ask_for_input"], allow_stdin=True)
        assert client.get_stdin_msg(timeout=60)["content"]["prompt"] == "name?"
        client.input("Ada")
        assert status(client, id)["status"] == "ok"
        assert client.hb_channel.is_beating()
    second.stop_channels()


def test_unfinished_messages_do_not_fill_the_memory(kernel):
    manager, client = kernel
    before = peak(manager)
    piece = bytes(1 << 20)
    held = []
    for n in range(12):
        peer = stranger(manager, list(PORTS)[n % len(PORTS)])
        held.append(peer)
        try:
            peer.sendall(b"\x02" + (400 << 20).to_bytes(8, "big"))
            for _ in range(330):
                peer.sendall(piece)
        except OSError:
            pass  # hung up on
    assert status(client, client.execute(SAMPLES["good"]))["status"] == "ok"
    grown = peak(manager) - before
    print(f"12 unfinished messages of 330 MB: the kernel's peak + {grown >> 20} MB")
    assert grown < 150 << 20


def test_a_copy_runs_nothing(kernel):
    manager, client = kernel
    message = client.session.msg("execute_request", {"code": SAMPLES["good"], "silent": False})
    frames = client.session.serialize(message)
    with zmq.Context() as context, context.socket(zmq.DEALER) as other:
        other.linger = 0
        other.connect(f"tcp://{manager.ip}:{manager.shell_port}")
        for _ in range(3):
            other.send_multipart(frames)
        client.session.recv(other, mode=0)
        assert not other.poll(200), "one answer to three of the same"
    assert status(client, client.execute(SAMPLES["good"]))["execution_count"] == 2


def test_who_takes_on_a_front_ends_name_is_not_asked_in_its_place(kernel):
    manager, client = kernel
    with zmq.Context() as context, context.socket(zmq.DEALER) as thief:
        thief.linger = 0
        thief.identity = client.session.bsession
        monitor = thief.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        thief.connect(f"tcp://{manager.ip}:{manager.stdin_port}")
        assert monitor.poll(60_000)
        thief.disable_monitor()
        id = client.execute(SAMPLES["ask_in_vain"][1], allow_stdin=True)
        asked = client.get_stdin_msg(timeout=60)["content"]
        assert (asked["prompt"], asked["password"]) == ("secret?", True)
        assert not thief.poll(100)
        client.input("Ada")
        assert status(client, id)["status"] == "ok"
