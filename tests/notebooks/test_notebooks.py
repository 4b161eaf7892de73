"""The notebooks as readers run them: from the command line and through Jupyter. Their own assertions prove what they say."""

import json
import os
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
BINARY = os.environ["XLAZY_BIN"]

LIBTPU = Path(os.environ.get("XLAZY_PLUGIN_DIR", "target/home/plugins")) / "tpu" / "libtpu.so"


def wants_libtpu(path):
    """The lesson on TPUs compiles with libtpu, which is fetched at the user's wish."""
    if path.stem.startswith("05-") and not LIBTPU.exists():
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
    for cell in code_cells(notebook):
        assert not cell.outputs and cell.execution_count is None, "outputs stay out of git"


@every_notebook
def test_it_runs_from_the_command_line(path, tmp_path):
    wants_libtpu(path)
    out = tmp_path / path.name
    done = subprocess.run([BINARY, "run", path, "-o", out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    notebook = nbformat.read(out, as_version=4)
    nbformat.validate(notebook)
    check_outputs(notebook)


@every_notebook
def test_it_runs_in_jupyter(path, tmp_path, monkeypatch):
    wants_libtpu(path)
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
