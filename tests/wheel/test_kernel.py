"""The native kernel where only Jupyter's list knows it, as Colab starts it: over Unix sockets, by a connection file."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient


def test_the_first_lesson_runs():
    notebook = nbformat.read("lessons/01-first-steps.ipynb", as_version=4)
    NotebookClient(notebook, kernel_name="xlazy", timeout=120).execute()
    nbformat.validate(notebook)
    assert all(c.execution_count for c in notebook.cells if c.cell_type == "code")


# Where these name what is not here, they are Colab's all the same; tcmalloc, which is loaded before all others there, is another.
COLAB = {
    "COLAB_RELEASE_TAG": "release",
    "CLICOLOR": "1",
    "LD_LIBRARY_PATH": "/usr/lib64-nvidia",
    "LD_PRELOAD": "libm.so.6",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYTHONPATH": "/env/python",
}


def test_it_starts_as_colab_starts_kernels(tmp_path):
    listed = subprocess.run(["jupyter", "kernelspec", "list", "--json"], capture_output=True, text=True, check=True)
    folder = json.loads(listed.stdout)["kernelspecs"]["xlazy"]["resource_dir"]
    assert Path(folder).is_relative_to(os.environ["VIRTUAL_ENV"])
    spec = KernelSpecManager().get_kernel_spec("xlazy")
    file, known = write_connection_file(str(tmp_path / "kernel.json"), ip=str(tmp_path / "k"), transport="ipc")
    assert json.loads(Path(file).read_text())["transport"] == "ipc"
    command = [sys.executable if a == "python" else a.replace("{connection_file}", file) for a in spec.argv]
    # Its own folder, an empty home, and what Colab's environment has.
    for folder in ("content", "root"):
        (tmp_path / folder).mkdir()
    surroundings = os.environ | COLAB | {"HOME": str(tmp_path / "root"), "JPY_PARENT_PID": str(os.getpid())}
    kernel = subprocess.Popen(command, cwd=tmp_path / "content", env=surroundings)
    try:
        client = BlockingKernelClient()
        client.load_connection_file(file)
        client.start_channels()
        begun = time.monotonic()
        client.wait_for_ready(timeout=60)
        assert time.monotonic() - begun < 20
        shown = []
        client.execute_interactive(
            "(tensor([2.0, 3.0]) * 2.0).sum().item()",
            timeout=60,
            output_hook=lambda m: shown.append(m["content"].get("data", {}).get("text/plain")),
        )
        assert "10.0" in shown, shown
        client.shutdown()
        assert kernel.wait(timeout=20) == 0
        client.stop_channels()
    finally:
        kernel.kill()
