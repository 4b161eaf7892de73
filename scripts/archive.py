#!/usr/bin/env python3
"""Writes the wheels' files as an archive, for machines and tools that unpack a release and know nothing of Python.

    scripts/wheel.sh && scripts/archive.py [DIST]      (default: dist)

`xlazy-VERSION-x86_64-unknown-linux-gnu.tar.gz` has one folder: bin/xlazy, its runtime, the part of Rust that cells need and the
CPU plugin. It runs from wherever it is unpacked, through a link, too; `xlazy install` tells Jupyter of it.

    XLAZY_WHEEL_LEVEL  how hard zlib tries, 1 to 9 (default: 9)
"""

import io
import json
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

LEVEL = int(os.environ.get("XLAZY_WHEEL_LEVEL", "9"))
TARGET = "x86_64-unknown-linux-gnu"
# Where a wheel's files go. What else is in the wheels is for Python: its side, and a kernelspec that names it.
PLACES = [
    (r"xlazy/tree/(.+)", r"\1"),
    (r"xlazy_rust/((?:bin|lib)/.+)", r"rust/\1"),
    (r"fastatomstruct_xla_cpu/(libpjrt_cpu\.so)", r"plugins/cpu/\1"),
    (r"(\w+)-[^/]+\.dist-info/licenses/(.+)", r"licences/\1/\2"),
]


def place(name):
    return next((re.sub(of, to, name) for of, to in PLACES if re.fullmatch(of, name)), None)


def described(text):
    """runtime.json as seen from here: Rust lies below it, not in a package beside."""
    description = json.loads(text)
    toolchain = {"sysroot": "rust", "rustc": "rust/bin/rustc", "lld": None}
    return json.dumps({**description, "toolchain": toolchain}, indent=2).encode()


def main():
    dist = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    wheels = sorted(p for p in dist.glob("*.whl") if re.match(r"(xlazy(_rust\w*)?|fastatomstruct_xla_cpu)-", p.name))
    ours = [re.match(r"xlazy-([^-]+)-", p.name) for p in wheels]
    version = next((m[1] for m in ours if m), None) or sys.exit(f"archive: no wheels in {dist}: scripts/wheel.sh makes them")
    folder = f"xlazy-{version}-{TARGET}"
    made = dist / f"{folder}.tar.gz"
    part = made.with_suffix(".part")
    with tarfile.open(part, "w:gz", compresslevel=LEVEL) as archive:

        def add(inside, data, mode):
            info = tarfile.TarInfo(f"{folder}/{inside}")
            # As in the wheels, times are fixed.
            info.size, info.mode, info.mtime = len(data), mode, 1577836800
            archive.addfile(info, io.BytesIO(data))

        for path in wheels:
            with zipfile.ZipFile(path) as wheel:
                for member in wheel.infolist():
                    inside = place(member.filename)
                    if inside is None:
                        continue
                    data = wheel.read(member)
                    data = described(data) if inside == "runtime.json" else data
                    add(inside, data, 0o755 if member.external_attr >> 16 & 0o100 else 0o644)
            if path.name.startswith("fastatomstruct"):
                package, number = path.name.split("-")[:2]
                note = {"name": "cpu", "package": package.replace("_", "-"), "version": number, "licence": "Apache-2.0"}
                add("plugins/cpu/plugin.json", f"{json.dumps(note, indent=2)}\n".encode(), 0o644)
    part.rename(made)
    print(f"{made.stat().st_size / 1e6:6.1f} MB  {made.name}")


if __name__ == "__main__":
    main()
