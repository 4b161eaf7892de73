"""A kernelspec for the binary under test, in a Jupyter folder that lasts as long as the run; and no skips."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

# There is no terminal front end for the mock, and it has no widgets.
collect_ignore = ["test_terminal.py", "test_widgets.py"] if os.environ.get("XLAZY_KERNEL") == "mock" else []
JUPYTER = Path(tempfile.mkdtemp(prefix="xlazy-protocol-"))


def pytest_configure(config):
    # Before any test module asks for a kernel by name.
    real = os.environ.get("XLAZY_KERNEL", "real") == "real"
    binary = os.environ["XLAZY_BIN"]
    if subprocess.run([binary], capture_output=True).returncode == 127:
        pytest.exit(f"{binary} does not start; is a library missing?", 1)
    spec = {
        "argv": [binary, "kernel", "{connection_file}"] if real else [binary, "{connection_file}"],
        "display_name": "xlazy under test",
        "language": "rust",
        "interrupt_mode": "message",
        "metadata": {"supported_encryption": ["curve"]},
        "env": {} if real else {"MOCK_HISTORY": str(JUPYTER / "history.jsonl")},
    }
    folder = JUPYTER / "kernels" / "xlazy-test"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec))
    os.environ["JUPYTER_DATA_DIR"] = str(JUPYTER)
    os.environ["JUPYTER_RUNTIME_DIR"] = str(JUPYTER / "runtime")


def pytest_unconfigure(config):
    shutil.rmtree(JUPYTER, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    for report in skipped:
        reporter.write_line(f"skipped, which counts as a failure here: {report.nodeid}", red=True)
    if skipped and session.exitstatus == 0:
        session.exitstatus = 1
