"""The notebooks as readers run them: from the command line and through Jupyter. Their own assertions prove what they say.

They are committed with their outputs, which GitHub's readers see; here they are shown to be current, times and sizes aside.
With XLAZY_BLESS=1 they are written anew.
"""

import json
import math
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
BINARY = os.environ["XLAZY_BIN"]

LIBTPU = Path(os.environ.get("XLAZY_PLUGIN_DIR", "target/home/plugins")) / "tpu" / "libtpu.so"


def wants_libtpu(path):
    """The lessons on TPUs compile with libtpu, which is fetched at the user's wish."""
    if path.stem.startswith(("05-", "06-", "07-")) and not LIBTPU.exists():
        assert "XLAZY_NEED_LIBTPU" not in os.environ, "libtpu was fetched, and is not found"
        pytest.skip("libtpu is not here: xlazy plugins install tpu")


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def code_cells(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


def check_outputs(notebook):
    """Every cell ran, none failed, and everything shown has a plain-text twin."""
    for cell in code_cells(notebook):
        assert cell.execution_count, cell.source
        for output in cell.outputs:
            assert output.output_type != "error", "\n".join(output.get("traceback", []))
            # Where the line stood while something took long, before other output came below it.
            if output.output_type in ("display_data", "execute_result") and output.data != {"text/plain": ""}:
                assert output.data.get("text/plain"), cell.source


# What another run, or another machine, has otherwise: times, sizes, rates, what a chart of times looks like.
MEASURED = re.compile(
    r"""(?x) [\d.,]+\s?(?:ns|µs|us|ms|s|min|B|kB|KB|MB|GB)\b (?:[\d.]+(?:ms|us|ns))*  # 1.2 ms, 003ms123.456us
    | ·\sdevice\smemory\s[+−][^·\n]* | [▁▂▃▄▅▆▇█]+.* | ^.*(?:Rate|Percentiles):.*$
    | (?<=as\ long\ as\s)[\d,]+ | \d+(?=\ times\ faster)""",
    re.MULTILINE,
)
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def said(output, measures=False):
    """An output's plain text: its words, and the numbers in it that are computed; none of what does nothing but measure."""
    text = output.get("text") or output.get("data", {}).get("text/plain") or ""
    if measures:
        text = re.sub(r"\d[\d.,]*\w*", "~", text)
    # Which is said where it took long.
    text = re.sub(r" · waited [^·\n]* for the loader", "", text)
    text = MEASURED.sub("~", text)
    # What stands in columns is as wide as what was measured.
    words = re.sub(r"[\s─-]+", " ", NUMBER.sub("#", text)).strip()
    # One measure more or less, or one written in two parts, is no other text.
    words = re.sub(r"~(?:[ .]*~)*", "~", words)
    return words, [float(n) for n in NUMBER.findall(text)]


def alike(is_so, was):
    """Another processor rounds otherwise, and what is trained on it ends somewhere else."""
    close = (math.isclose(a, b, rel_tol=0.1, abs_tol=0.01) for a, b in zip(is_so[1], was[1]))
    return is_so[0] == was[0] and len(is_so[1]) == len(was[1]) and all(close)


def check_current(notebook, committed):
    """What a run shows is what is committed."""
    for cell, was in zip(code_cells(notebook), code_cells(committed), strict=True):
        assert [kinds(o) for o in cell.outputs] == [kinds(o) for o in was.outputs], cell.source
        for now, before in zip(cell.outputs, was.outputs):
            measures = cell.source.lstrip().startswith(("%compiles", "%metrics"))
            now, before = said(now, measures), said(before, measures)
            assert alike(now, before), f"{cell.source}\nis {now}\nwas {before}\nXLAZY_BLESS=1 writes it anew"


def kinds(output):
    return output.output_type, sorted(output.get("data", {}))


def mime_types(notebook):
    return {mime for c in code_cells(notebook) for o in c.outputs for mime in o.get("data", {})}


def test_there_are_notebooks():
    assert NOTEBOOKS


@every_notebook
def test_the_file_is_clean(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "xlazy"
    check_outputs(notebook)


@pytest.fixture(scope="session")
def days(tmp_path_factory):
    """What one notebook leaves for its next run: an environment for each."""
    folder = tmp_path_factory.mktemp("caches")

    def day(path):
        kept = {name: value for name, value in os.environ.items() if name != "XLAZY_PROGRAM_CACHE"}
        # Every program is kept, as if XLA had taken long for it.
        return kept | {"XLAZY_CACHE": str(folder / path.stem), "XLAZY_PROGRAM_CACHE_MIN_MS": "1"}

    return day


@every_notebook
def test_it_runs_from_the_command_line(path, tmp_path, days):
    wants_libtpu(path)
    out = tmp_path / path.name
    # As on the first day: nothing was compiled before.
    env = days(path)
    done = subprocess.run([BINARY, "run", path, "-o", out], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    notebook = nbformat.read(out, as_version=4)
    nbformat.validate(notebook)
    check_outputs(notebook)
    if os.environ.get("XLAZY_BLESS"):
        path.write_bytes(out.read_bytes())
    check_current(notebook, nbformat.read(path, as_version=4))


def test_what_is_not_current_is_told():
    """Whatever else the comparison lets pass: a changed word or count, a missing output, a number that is far off."""
    committed = nbformat.read(NOTEBOOKS[0], as_version=4)

    def changed(change):
        notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
        cell = next(c for c in code_cells(notebook) if any("compiled 1 in" in said(o)[0] for o in c.outputs))
        change(cell)
        with pytest.raises((AssertionError, ValueError)):
            check_current(notebook, committed)

    def text(old, new):
        def change(cell):
            output = next(o for o in cell.outputs if "compiled 1 in" in said(o)[0])
            output.data["text/plain"] = output.data["text/plain"].replace(old, new)

        return change

    check_current(committed, committed)
    changed(text("compiled 1 in", "compiled 2 in"))
    changed(text("ran", "run"))
    changed(lambda cell: cell.outputs.pop())
    assert not alike(("#", [1.0]), ("#", [2.0])) and alike(("#", [1.01]), ("#", [1.0]))


def luminance(colour):
    """Of #rrggbb, as WCAG has it: black is 0 and white 1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear))


class Stripped(HTMLParser):
    """What is left of a page where it is not trusted: GitHub, VS Code and JupyterLab run no scripts then, and fetch nothing."""

    def __init__(self, html):
        super().__init__()
        self.inside, self.text, self.pictures, self.wrong = [], "", [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("script", "style"):
            self.inside.append(tag)
        # Inline drawings fall apart there, and what is fetched is missing.
        if tag in ("svg", "canvas", "iframe", "link", "object", "style"):
            self.wrong.append(tag)
        elsewhere = (attributes.get(a) or "data:" for a in ("src", "href", "srcset", "action"))
        self.wrong += [url for url in elsewhere if not url.startswith(("data:", "#"))]
        if tag == "img":
            self.pictures.append(attributes["alt"])
        # Text reads in the page's own colour, on a ground that it brings along, or in one that is neither light nor dark.
        style = {name.strip(): value for name, _, value in (p.partition(":") for p in (attributes.get("style") or "").split(";"))}
        colour, ground = style.get("color", "inherit"), style.keys() & {"background", "background-color"}
        if not ground and not re.match(r"inherit|currentcolor|var\(", colour) and not 0.15 < luminance(colour) < 0.5:
            self.wrong.append(attributes["style"])

    def handle_endtag(self, tag):
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data):
        self.text += "" if self.inside else data.strip()


@every_notebook
def test_what_is_shown_reads_where_nothing_runs(path):
    """On GitHub, and wherever a notebook is not trusted, in light and dark."""
    for cell in code_cells(nbformat.read(path, as_version=4)):
        for output in cell.outputs:
            data = output.get("data", {})
            if "text/html" not in data:
                # A front end that knows no HTML shows the text.
                assert not data or set(data) <= {"text/plain"}, sorted(data)
                continue
            left = Stripped(data["text/html"])
            assert not left.wrong, (cell.source, left.wrong)
            assert left.text or left.pictures, cell.source
            if any(mime.startswith("image/") for mime in data):
                assert left.pictures, f"{cell.source}\nis a picture, and no image is left of it"


EXAMPLE = FOLDER.parent / "examples" / "imagenet.ipynb"


def test_an_example_takes_arguments(tmp_path):
    """Trained, saved, and gone on from the checkpoint."""
    small = "--model resnet18 --image-size 32 --num-classes 4 --train-size 8 --batch-size 4 --test-batch-size 4"

    def run(epochs):
        out = tmp_path / "out.ipynb"
        options = f"--fake-data {small} --log-steps 1 --workers 1 --logdir {tmp_path} --num-epochs {epochs}"
        done = subprocess.run(
            [BINARY, "run", EXAMPLE, "-o", out, *options.split()], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        text = "".join(o.get("text", "") for c in code_cells(nbformat.read(out, as_version=4)) for o in c.outputs)
        assert done.stdout == text, "what is printed is shown as well"
        return re.findall(r"epoch (\d+) (step|accuracy)", text)

    assert run(1) == [("1", "step"), ("1", "step"), ("1", "accuracy")]
    assert run(2) == [("2", "step"), ("2", "step"), ("2", "accuracy")]


def test_arguments_that_nobody_asks_for_are_a_mistake():
    done = subprocess.run([BINARY, "run", NOTEBOOKS[0], "--ouptut", "x"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "--ouptut is no option" in done.stderr
    done = subprocess.run([BINARY, "run", EXAMPLE, "--bogus"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--bogus is none of these" in done.stderr


@every_notebook
def test_it_runs_in_jupyter(path, tmp_path, monkeypatch, days):
    """On the second day: its cells and its programs were compiled by the run before."""
    wants_libtpu(path)
    monkeypatch.delenv("XLAZY_PROGRAM_CACHE", raising=False)
    for name in ("XLAZY_CACHE", "XLAZY_PROGRAM_CACHE_MIN_MS"):
        monkeypatch.setenv(name, days(path)[name])
    kernel = tmp_path / "kernels" / "xlazy"
    kernel.mkdir(parents=True)
    spec = {"argv": [BINARY, "kernel", "{connection_file}"], "display_name": "xlazy", "language": "rust"}
    kernel.joinpath("kernel.json").write_text(json.dumps(spec | {"interrupt_mode": "message"}))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    check_outputs(notebook)
    if path.stem == "02-digits":
        assert {"image/svg+xml", "image/png"} <= mime_types(notebook), "the loss curve and the digits"
