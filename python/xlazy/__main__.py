"""The command `xlazy`: becomes the program that came with this package."""

import os
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent / "tree"


def environment():
    """What the program is told: where the ready CPU plugin lies, and where plugins go that it fetches."""
    given = dict(os.environ)
    # What is fetched outlives this package's next version, and does not belong into its folder.
    home = Path(given.get("XLAZY_HOME") or Path.home() / ".local/share/xlazy")
    given.setdefault("XLAZY_PLUGIN_DIR", str(home / "plugins"))
    ready = TREE.parent.parent / "fastatomstruct_xla_cpu" / "libpjrt_cpu.so"
    own = Path(given["XLAZY_PLUGIN_DIR"]) / "cpu" / "libpjrt_cpu.so"
    if ready.is_file() and not own.is_file():
        given.setdefault("XLAZY_CPU_PLUGIN", str(ready))
    return given


def main():
    program = TREE / "bin" / "xlazy"
    try:
        os.execve(program, ["xlazy", *sys.argv[1:]], environment())
    except OSError as error:
        sys.exit(f"xlazy: {program} does not start: {error}. Install it again: pip install --force-reinstall xlazy")


if __name__ == "__main__":
    main()
