"""%%xlazy in a Python kernel, by nbclient and by a front end that asks, interrupts and completes."""

import contextlib
import os
import queue
import time
from importlib.metadata import version

import nbformat
import numpy
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook


def run(*cells):
    """The outputs of each cell of a Python notebook."""
    notebook = new_notebook(cells=[new_code_cell(c) for c in ("%load_ext xlazy", *cells)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, timeout=120).execute()
    nbformat.validate(notebook)
    return [c.outputs for c in notebook.cells[1:]]


def text(outputs, kind="stream"):
    return "".join(o["text"] if kind == "stream" else o["data"]["text/plain"] for o in outputs if o.output_type == kind)


def test_a_session_lasts_across_cells_and_shows_every_kind():
    outputs = run(
        "%%xlazy\nlet x = Tensor::randn([4, 3]).requires_grad_(true);\nprintln!(\"made\");",
        "python = 1",
        "%%xlazy\n(&x * &x).sum().backward();\nx.grad().unwrap()",
        "%%xlazy\neprintln!(\"aside\");\nx.shape()",
    )
    assert "made" in text(outputs[0])
    shown = [o for o in outputs[2] if o.output_type == "display_data" and "text/html" in o.data]
    assert shown and "f32[4,3]" in shown[0].data["text/plain"]
    assert any(o.get("name") == "stderr" and "aside" in o["text"] for o in outputs[3])
    assert "[4,3]" in text(outputs[3], "display_data")


def test_pages_are_shown():
    outputs = run("%%xlazy\n%help", "%%xlazy\n?Tensor::matmul", "%%xlazy\nlet x = 3;\n", "%%xlazy\nx?")
    help, matmul, _, x = (text(o, "display_data") for o in outputs)
    assert "%metrics" in help and "matmul" in matmul and "i32" in x, (help, matmul, x)


def test_displays_change_in_place():
    outputs = run("%%xlazy\nfor i in progress(0..50) { std::thread::sleep(std::time::Duration::from_millis(10)); let _ = i; }")
    bars = [o for o in outputs[0] if o.output_type == "display_data" and "50/50" in o.data["text/plain"]]
    assert len(bars) == 1, outputs


def test_an_error_ends_the_cell_and_not_the_session():
    with pytest.raises(CellExecutionError) as caught:
        run("%%xlazy\nlet y: i32 = \"one\";")
    assert "mismatched types" in str(caught.value)
    outputs = run(
        "%%xlazy\nlet y = 4;",
        "try:\n    get_ipython().run_cell_magic('xlazy', '', 'panic!(\"no\")')\nexcept Exception as e:\n    print(type(e).__name__, e)",
        "%%xlazy\ny + 1",
    )
    assert "RustError" in text(outputs[1]) and "no" in text(outputs[1])
    assert "5" in text(outputs[2], "display_data")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_arrays_go_over_and_come_back(dtype):
    outputs = run(
        f"import numpy\nx = numpy.arange(6).reshape(2, 3).astype({dtype!r})\n%xlazy_put x\nback = %xlazy_get x\n"
        "print(back.dtype, back.shape, (back == x).all())",
        "y = 2.5\n%xlazy_put y\nz = %xlazy_get &y * 2.0\nprint(z, z.shape)",
    )
    assert text(outputs[0]) == f"{dtype} (2, 3) True\n"
    assert text(outputs[1]) == "5.0 ()\n"


def test_what_cannot_go_over_is_refused_in_a_sentence():
    tried = "def tried(magic, line):\n    try:\n        get_ipython().run_line_magic(magic, line)\n    except Exception as e:\n"
    tried += "        print(*getattr(e, '_render_traceback_', lambda: [e])())"
    get, put = "tried('xlazy_get', {!r})".format, "tried('xlazy_put', {!r})".format
    outputs = run(
        "%%xlazy\nlet n = 3;\nlet words = vec![String::new()];",
        tried,
        get("nothing"),
        get("n // a number"),
        get("&words"),
        get("tensor([1.0]) + tensor([1.0, 2.0, 3.0]) * tensor([1.0, 2.0])"),
        "x = 'text'\n" + put("x"),
        "import numpy\nx = numpy.ma.array([1.0, 2.0], mask=[0, 1])\n" + put("x"),
        "match = _ = 1.0\n" + put("match") + "\n" + put("_"),
    )
    told = [text(o) for o in outputs[2:]]
    expected = ["cannot find value `nothing`", "of type i32: expected a tensor", "of type &Vec<String>: ", "mul(f32[3], f32[2])"]
    expected += ["a tensor cannot have NumPy's <U4", "x.filled(0)", "Rust has no variable of that name"]
    for said, part in zip(told, expected):
        assert part in said and "::xlazy" not in said and "xlazy-" not in said, (said, part)
    assert [len(said.splitlines()) for said in told] == [1, 1, 1, 1, 1, 1, 2], told


def test_an_expression_may_end_in_a_comment_and_name_what_the_magic_names():
    outputs = run(
        "%%xlazy\nstruct Given;\nimpl Given { fn two(&self) -> Tensor { tensor([2.0]) } }",
        "x = %xlazy_get Given.two() // two",
        "print(x)",
    )
    assert text(outputs[2]) == "[2.]\n", outputs


@contextlib.contextmanager
def kernel(*cells, **where):
    """A Python kernel that has run these cells, and its front end."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(**where)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    for cell in cells:
        assert client.execute(cell, reply=True, timeout=120)["content"]["status"] == "ok", cell
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel()


@pytest.fixture(scope="module")
def front():
    with kernel("%load_ext xlazy\n", "%%xlazy\nlet weights = tensor([1.0, 2.0]);") as both:
        yield both


def outputs_until_idle(client, asked):
    while True:
        try:
            message = client.get_iopub_msg(timeout=60)
        except queue.Empty:
            raise AssertionError("the kernel is silent") from None
        if message["parent_header"].get("msg_id") == asked:
            yield message
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return


def test_output_streams_as_it_comes(front):
    _, client = front
    code = "%%xlazy\nfor i in 0..4 { println!(\"{i}\"); std::thread::sleep(std::time::Duration::from_millis(400)); }"
    times = [time.monotonic() for m in outputs_until_idle(client, client.execute(code)) if m["msg_type"] == "stream"]
    assert len(times) >= 3 and times[-1] - times[0] > 0.7, "it came all at once"


def test_questions_are_asked_in_the_notebook(front):
    _, client = front
    asked = client.execute("%%xlazy\nlet mut line = String::new();\nstd::io::stdin().read_line(&mut line).unwrap();\nline.trim().len()")
    question = client.get_stdin_msg(timeout=60)
    assert question["msg_type"] == "input_request"
    client.input("seven77")
    shown = [m["content"]["data"]["text/plain"] for m in outputs_until_idle(client, asked) if m["msg_type"] == "display_data"]
    assert shown[:1] == ["7"], shown


READS = "%%xlazy\nlet mut line = String::new();\nstd::io::stdin().read_line(&mut line)?;\nline.len()"


def errors(messages):
    return [m["content"] for m in messages if m["msg_type"] == "error"]


def test_what_cannot_be_asked_ends_the_cell_and_not_the_session(front):
    _, client = front
    refused = list(outputs_until_idle(client, client.execute(READS, allow_stdin=False)))
    assert errors(refused) and "no way to ask the user" in "".join(m["content"].get("text", "") for m in refused)
    # The front end can be asked, and what asks it here fails.
    code = f"import builtins\nbuiltins.input = lambda prompt: 1 / 0\nget_ipython().run_cell_magic('xlazy', '', {READS[8:]!r})"
    (failed,) = errors(outputs_until_idle(client, client.execute(code)))
    assert failed["ename"] == "ZeroDivisionError"
    shown = [m for m in outputs_until_idle(client, client.execute("%%xlazy\nweights.sum().item()")) if m["msg_type"] == "display_data"]
    assert shown[0]["content"]["data"]["text/plain"] == "3.0"


def test_an_interrupt_stops_the_cell_and_the_session_lives(front):
    manager, client = front
    asked = client.execute("%%xlazy\nprintln!(\"on\");\nloop { std::thread::sleep(std::time::Duration::from_millis(10)); }")
    for message in outputs_until_idle(client, asked):
        if message["msg_type"] == "stream" and "on" in message["content"]["text"]:
            begun = time.monotonic()
            manager.interrupt_kernel()
        if message["msg_type"] == "error":
            assert "Interrupt" in message["content"]["ename"] + "".join(message["content"]["traceback"])
    assert time.monotonic() - begun < 10
    asked = client.execute("%%xlazy\nweights.sum().item()")
    shown = [m["content"]["data"]["text/plain"] for m in outputs_until_idle(client, asked) if m["msg_type"] == "display_data"]
    assert shown[:1] == ["3.0"], shown


beside_cells = pytest.mark.skipif(int(version("ipykernel").split(".")[0]) < 7, reason="this ipykernel hears nothing while a cell runs")


def subshell(client):
    """Of the Python kernel: what a front end sends it is heard while a cell runs."""
    client.session.send(client.control_channel.socket, client.session.msg("create_subshell_request", {}))
    return client.get_control_msg(timeout=60)["content"]["subshell_id"]


def move(client, widget, value, beside=None):
    data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
    message = client.session.msg("comm_msg", {"comm_id": widget, "data": data})
    if beside:
        message["header"]["subshell_id"] = beside
    client.session.send(client.shell_channel.socket, message)
    return message["header"]["msg_id"]


def test_a_widget_is_moved_and_what_comes_of_it_stands_below_its_cell(front):
    _, client = front
    shows = client.execute(
        "%%xlazy\nlet rate = Slider::new(\"rate\", 0..=10).at(3);\nrate.on_change(|v| println!(\"moved to {v}\"));\nrate"
    )
    seen = list(outputs_until_idle(client, shows))
    (opened,) = [m["content"] for m in seen if m["msg_type"] == "comm_open"]
    (shown,) = [m["content"]["data"] for m in seen if m["msg_type"] == "display_data"]
    assert (opened["target_name"], shown["text/plain"]) == ("jupyter.widget", "rate: 3 (0 to 10)")
    assert shown["application/vnd.jupyter.widget-view+json"]["model_id"] == opened["comm_id"]
    moves = move(client, opened["comm_id"], 7)
    printed, idle = [], False
    while not idle:
        message = client.get_iopub_msg(timeout=60)
        of = message["parent_header"].get("msg_id")
        if message["msg_type"] == "stream":
            printed.append((of, message["content"]["text"]))
        idle = of == moves and message["content"].get("execution_state") == "idle"
    assert printed == [(shows, "moved to 7\n")]
    seen = outputs_until_idle(client, client.execute("%%xlazy\nrate.value()"))
    assert [m["content"]["data"]["text/plain"] for m in seen if m["msg_type"] == "display_data"] == ["7"]


@beside_cells
def test_a_widget_that_is_moved_while_a_cell_runs_is_seen_by_it(front):
    _, client = front
    beside = subshell(client)
    shows = client.execute("%%xlazy\nlet level = Slider::new(\"level\", 0..=100);\nlevel")
    (widget,) = [m["content"]["comm_id"] for m in outputs_until_idle(client, shows) if m["msg_type"] == "comm_open"]
    waits = "%%xlazy\nprintln!(\"waits\");\nwhile level.value() < 7 { std::thread::sleep(std::time::Duration::from_millis(5)); }\nlevel.value()"
    seen = []
    for message in outputs_until_idle(client, client.execute(waits)):
        seen.append(message)
        if message["msg_type"] == "stream" and "waits" in message["content"]["text"]:
            move(client, widget, 7, beside)
    assert [m["content"]["data"]["text/plain"] for m in seen if m["msg_type"] == "display_data"][:1] == ["7"]


@beside_cells
def test_widgets_are_moved_and_cells_run_at_once(front):
    _, client = front
    beside = subshell(client)
    shows = client.execute("%%xlazy\nlet pace = Slider::new(\"pace\", 0..=100);\npace.on_change(|v| println!(\"at {v}\"));\npace")
    (widget,) = [m["content"]["comm_id"] for m in outputs_until_idle(client, shows) if m["msg_type"] == "comm_open"]
    # The next of each when the one before it is over, as front ends do.
    cells = iter([f"%%xlazy\nfor i in 0..5 {{ println!(\"{n}: {{}}\", pace.value()); }}" for n in range(12)])
    values = iter(range(1, 61))
    cell, moved, shown = client.execute(next(cells)), move(client, widget, next(values), beside), {}
    while cell or moved:
        message = client.get_iopub_msg(timeout=60)
        of = message["parent_header"].get("msg_id")
        if message["msg_type"] == "stream":
            shown[of] = shown.get(of, "") + message["content"]["text"]
        if message["content"].get("execution_state") == "idle" and of == cell:
            code = next(cells, None)
            cell = code and client.execute(code)
        if message["content"].get("execution_state") == "idle" and of == moved:
            value = next(values, None)
            moved = value and move(client, widget, value, beside)
    assert shown.pop(shows).splitlines()[-1] == "at 60"
    assert [len(lines.splitlines()) for lines in shown.values()] == [5] * 12


def test_what_fails_when_a_widget_is_moved_is_told_below_its_cell(front):
    _, client = front
    code = "let risk = Slider::new(\"risk\", 0..=10);\nrisk.on_change(|v| panic!(\"no {v}\"));\nrisk"
    shows = client.execute(f"%%xlazy\n{code}")
    (widget,) = [m["content"]["comm_id"] for m in outputs_until_idle(client, shows) if m["msg_type"] == "comm_open"]
    moved, told, idle = move(client, widget, 4), [], False
    while not idle:
        message = client.get_iopub_msg(timeout=60)
        of = message["parent_header"].get("msg_id")
        told += [(of, error["evalue"]) for error in errors([message])]
        idle = of == moved and message["content"].get("execution_state") == "idle"
    assert [of for of, _ in told] == [shows] and "no 4" in told[0][1]


def test_what_a_thread_writes_stands_below_the_cell_that_started_it(front, tmp_path):
    _, client = front
    waits = f"while !std::path::Path::new(\"{tmp_path}/go\").exists() {{ std::thread::sleep(std::time::Duration::from_millis(5)); }}"
    starts = client.execute(f"%%xlazy\nstd::thread::spawn(|| {{ {waits} println!(\"from the thread\"); }});")
    list(outputs_until_idle(client, starts))
    (tmp_path / "go").touch()
    message = client.get_iopub_msg(timeout=60)
    assert (message["parent_header"]["msg_id"], message["content"].get("text")) == (starts, "from the thread\n")


# What Colab has, as far as widgets go: its manager is off until somebody enables it.
COLAB = """import sys, types
colab = types.ModuleType("google.colab.output")
colab._widgets, times = types.SimpleNamespace(_installed_url=None), []
def enable():
    times.append(1)
    colab._widgets._installed_url = "https://manager"
colab.enable_custom_widget_manager = enable
sys.modules["google.colab.output"] = colab"""
VIEW = "application/vnd.jupyter.widget-view+json"


def test_colab_is_told_which_manager_shows_a_widget(tmp_path):
    waits = f"while !std::path::Path::new(\"{tmp_path}/go\").exists() {{ std::thread::sleep(std::time::Duration::from_millis(5)); }}"
    told = {"colab": {"custom_widget_manager": {"url": "https://manager"}}}
    with kernel("%load_ext xlazy", COLAB) as (_, client):

        def shown(code):
            asked = client.execute(code)
            return asked, [m["content"] for m in outputs_until_idle(client, asked) if m["msg_type"] == "display_data"]

        assert VIEW not in shown("%%xlazy\ntensor([1.0])")[1][0]["metadata"]
        assert shown("print(times)\ndisplay(len(times))")[1][0]["data"]["text/plain"] == "0"
        _, (slider,) = shown("%%xlazy\nlet rate = Slider::new(\"rate\", 0..=10);\nrate.clone()")
        # From a thread, by another way.
        starts, (again,) = shown(f"%%xlazy\nlet other = rate.clone();\nstd::thread::spawn(move || {{ {waits} display(&other); }});\nrate.clone()")
        assert slider["metadata"][VIEW] == again["metadata"][VIEW] == told, (slider, again)
        (tmp_path / "go").touch()
        late = client.get_iopub_msg(timeout=60)
        assert late["parent_header"]["msg_id"] == starts and late["content"]["metadata"][VIEW] == told, late
        assert shown("display(len(times))")[1][0]["data"]["text/plain"] == "1", "the user may turn it off again"


@pytest.mark.parametrize("before", ["%%xlazy\nlet other = 1;\n", "\n \n%%xlazy\n", "x = 1\ny = %xlazy_get ", "%xlazy_get &"])
def test_rust_is_completed(front, before):
    _, client = front
    cell = before + "weights.requires_g"
    content = client.complete(cell, len(cell), reply=True, timeout=60)["content"]
    assert any(m.startswith("requires_grad") for m in content["matches"]), content
    assert cell[content["cursor_start"] : content["cursor_end"]] == "requires_g"


@pytest.mark.parametrize("before", ["%%xlazy\nlet other = 1;\n", "\n \n%%xlazy\n", "x = 1\ny = %xlazy_get "])
def test_rust_is_told_of(front, before):
    _, client = front
    cell = before + "weights.matmul"
    content = client.inspect(cell, len(cell), reply=True, timeout=60)["content"]
    assert content["found"] and "matmul" in content["data"]["text/plain"], content


def test_python_is_told_of_beside_it(front):
    _, client = front
    cell = "print"
    content = client.inspect(cell, len(cell), reply=True, timeout=60)["content"]
    assert content["found"] and "stream" in content["data"]["text/plain"], content
    cell = "%%xlazy\nnowhere_at_all"
    assert not client.inspect(cell, len(cell), reply=True, timeout=60)["content"]["found"]


def test_python_is_completed_beside_it(front):
    _, client = front
    cell = "import numpy\nnumpy.ara"
    assert any("arange" in m for m in client.complete(cell, len(cell), reply=True, timeout=60)["content"]["matches"])


def test_the_end_of_a_session_is_told_once():
    rust = "%%xlazy\nlet kept = 1;"
    ends = "session = get_ipython().magics_manager.registry['XlazyMagics'].session\n"
    ends += "session.manager.signal_kernel(9)\nwhile session.manager.is_alive(): pass"
    told = [text(o) for o in run(rust, rust, ends, rust, rust)]
    assert ["variables are gone" in said for said in told] == [False, False, False, True, False], told


def test_a_session_that_ends_under_a_cell_is_told_in_it():
    # The kernel is what has started the process that runs cells.
    kill = 'let kernel = std::os::unix::process::parent_id();\n'
    kill += 'std::process::Command::new("/bin/sh").args(["-c", &format!("kill -9 {kernel}")]).status().unwrap();\n'
    kill += "std::thread::park();"
    outputs = run(
        "%%xlazy\nlet kept = 1;",
        f"try:\n    get_ipython().run_cell_magic('xlazy', '', {kill!r})\nexcept Exception as e:\n    print(e)",
    )
    assert "KernelDied: xlazy's kernel has ended" in text(outputs[1]), outputs
