"""The command `xlazy`: becomes the program that came with this package."""

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "tree" / "bin" / "xlazy"


def main():
    try:
        os.execv(PROGRAM, ["xlazy", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"xlazy: {PROGRAM} does not start: {error}. Install it again: pip install --force-reinstall xlazy")


if __name__ == "__main__":
    main()
