"""Widgets as another implementation of their protocol has them: cositos, which builds and reads the same messages."""

import pytest
from cositos.protocol import (
    TARGET_NAME,
    WIDGET_VIEW_MIMETYPE,
    build_comm_open,
    build_update,
    mimebundle,
)
from jupyter_client.manager import start_new_kernel


@pytest.fixture(scope="module")
def client():
    manager, client = start_new_kernel(kernel_name="xlazy-test")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def until_idle(client, msg_id):
    """What comes on iopub of a request, to its end."""
    seen = []
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != msg_id:
            continue
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return seen
        seen.append(message)


def run(client, code):
    seen = until_idle(client, client.execute(code))
    assert not [m for m in seen if m["msg_type"] == "error"], seen
    return seen


def of(seen, kind):
    return [m for m in seen if m["msg_type"] == kind]


def touch(client, comm_id, data, buffers=()):
    message = client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
    client.session.send(client.shell_channel.socket, message, buffers=list(buffers))
    return until_idle(client, message["header"]["msg_id"])


ESM = "export default { render() {} }"


def test_opening_is_what_another_would_send(client):
    code = f'let w = widget!("{ESM}", value = 0, img = xlazy::widget::State::Bytes(b"PNGDATA".to_vec()), shape = [1, 1]); w'
    seen = run(client, code)
    (opened,) = of(seen, "comm_open")
    state = opened["content"]["data"]["state"]
    own = {"_esm": ESM, "value": 0, "img": b"PNGDATA", "shape": [1, 1], "_anywidget_id": state["_anywidget_id"]}
    version = state["_model_module_version"]
    data, buffers, metadata = build_comm_open(own, version)
    assert opened["content"]["target_name"] == TARGET_NAME
    assert opened["content"]["data"] == data
    assert [bytes(b) for b in opened["buffers"]] == [bytes(b) for b in buffers]
    assert opened["metadata"] == metadata
    (shown,) = of(seen, "execute_result")
    view = mimebundle(opened["content"]["comm_id"])[WIDGET_VIEW_MIMETYPE]
    assert shown["content"]["data"][WIDGET_VIEW_MIMETYPE] == view


def test_updates_and_messages_both_ways(client):
    code = (
        f'let w = widget!("{ESM}", value = 0);\n'
        'w.on_change("value", |v: i32| println!("value {v}"));\n'
        'w.on_change("bytes", |v: xlazy::widget::State| println!("{v:?}"));\n'
        'w.on_message(|m| println!("{m:?}"));\nw'
    )
    comm_id = of(run(client, code), "comm_open")[0]["content"]["comm_id"]
    (told,) = of(run(client, 'w.set("value", 42);'), "comm_msg")
    data, _ = build_update({"value": 42})
    assert told["content"] == {"comm_id": comm_id, "data": data}
    data, buffers = build_update({"value": 7, "bytes": b"ab"})
    seen = touch(client, comm_id, data, buffers)
    (echo,) = of(seen, "comm_msg")
    assert echo["content"]["data"] == {**data, "method": "echo_update"}
    assert [bytes(b) for b in echo["buffers"]] == buffers
    said = touch(client, comm_id, {"method": "custom", "content": {"event": "click", "n": 3}})
    assert not of(said, "comm_msg")
    # Kernels to come may say more.
    assert not touch(client, comm_id, {"method": "bogus"})[1:]
    (state,) = of(touch(client, comm_id, {"method": "request_state"}), "comm_msg")
    assert state["content"]["data"]["method"] == "update"
    assert state["content"]["data"]["state"]["value"] == 7
    assert state["content"]["data"]["buffer_paths"] == [["bytes"]]
