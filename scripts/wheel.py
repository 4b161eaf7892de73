"""Writes the wheels: scripts/wheel.sh calls it with a laid-out installation and says what they are.

    wheel.py WORK SYSROOT DEST
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEVEL = int(os.environ.get("XLAZY_WHEEL_LEVEL", "9"))
# A tenth below what package indexes take.
MOST = 90_000_000
TARGET = "lib/rustlib/x86_64-unknown-linux-gnu"
LICENCE = "Apache-2.0 OR MIT"


class Wheel:
    """A wheel being written. Times are fixed: the same files make the same wheel."""

    def __init__(self, dest, name, version, summary, requires=(), scripts=()):
        self.stem = f"{name.replace('-', '_')}-{version}"
        self.path = dest / f".{self.stem}.part"
        self.zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self.record, self.glibc, self.dest = [], (2, 17), dest
        self.metadata = [
            "Metadata-Version: 2.4",
            f"Name: {name}",
            f"Version: {version}",
            f"Summary: {summary}",
            f"License-Expression: {LICENCE}",
            "Requires-Python: >=3.9",
            *(f"Requires-Dist: {r}" for r in requires),
        ]
        self.scripts = scripts

    def add(self, inside, data, executable=False):
        info = zipfile.ZipInfo(inside, (2020, 1, 1, 0, 0, 0))
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data, compresslevel=LEVEL)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{inside},sha256={digest},{len(data)}")

    def file(self, inside, path):
        data = path.read_bytes()
        if data[:4] == b"\x7fELF":
            self.glibc = max(self.glibc, glibc_of(path))
        self.add(inside, data, os.access(path, os.X_OK))

    def folder(self, inside, path):
        for file in sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            self.file(f"{inside}/{file.relative_to(path)}", file)

    def licence(self, name, text):
        self.add(f"{self.stem}.dist-info/licenses/{name}", text.encode())
        self.metadata.append(f"License-File: {name}")

    def done(self):
        tag = "py3-none-manylinux_{}_{}_x86_64".format(*self.glibc)
        info = f"{self.stem}.dist-info"
        if self.scripts:
            self.add(f"{info}/entry_points.txt", "\n".join(["[console_scripts]", *self.scripts, ""]).encode())
        self.metadata.sort(key=lambda line: line.startswith("License-File"))
        self.add(f"{info}/METADATA", "\n".join([*self.metadata, ""]).encode())
        wheel = f"Wheel-Version: 1.0\nGenerator: xlazy\nRoot-Is-Purelib: false\nTag: {tag}\n"
        self.add(f"{info}/WHEEL", wheel.encode())
        record = "\n".join([*self.record, f"{info}/RECORD,,", ""])
        self.add(f"{info}/RECORD", record.encode())
        self.zip.close()
        size = self.path.stat().st_size
        if size > MOST:
            sys.exit(f"wheel: {self.stem} has {size / 1e6:.0f} MB, and package indexes take 100")
        path = self.dest / f"{self.stem}-{tag}.whl"
        self.path.rename(path)
        print(f"{size / 1e6:6.1f} MB  {path.name}", flush=True)


def glibc_of(path):
    """The newest glibc that a program or library asks for."""
    table = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", table.partition("Version References")[2])
    return max([(int(a), int(b)) for a, b in versions], default=(2, 17))


def crates_of(metadata):
    """The crates of others that are in the programs, in order."""
    packages = {p["id"]: p for p in metadata["packages"]}
    nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
    seen, following = set(), list(metadata["workspace_members"])
    while following:
        node = following.pop()
        if node not in seen:
            seen.add(node)
            normal = [d for d in nodes[node]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
            following += [d["pkg"] for d in normal]
    others = (packages[i] for i in seen if packages[i]["source"])
    return sorted(others, key=lambda p: (p["name"], p["version"]))


# What the licences and the notices of a crate are called, in its folder or one below that has nothing else.
NOTICES = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense|authors)", re.I)


def notices_of(package, sysroot):
    """The texts that whoever passes a crate on has to pass on; for one that has none with it those of its licences."""
    folder = Path(package["manifest_path"]).parent
    places = [folder, *(p for p in folder.iterdir() if p.is_dir() and re.fullmatch(r"licen[cs]es?", p.name, re.I))]
    files = sorted(f for place in places for f in place.iterdir() if f.is_file() and (place != folder or NOTICES.match(f.name)))
    named = folder / (package["license_file"] or "")
    if named.is_file() and named not in files:
        files.append(named)
    texts = [f.read_text(errors="replace").strip() for f in files if f.suffix != ".rs"]
    if texts:
        return texts
    names = re.findall(r"[\w.-]*[A-Z][\w.-]*", re.sub(r"\b(OR|AND|WITH)\b", "", package["license"] or ""))
    ours = {name: ROOT / f"scripts/licences/{name}.txt" for name in names}
    texts = [ours[name].read_text() if ours[name].is_file() else document(sysroot, f"rust/licenses/{name}.txt") for name in names]
    return [f"Copyright (c) the authors of {package['name']}\n\n{text.strip()}" for text in texts]


def licences_of_crates(metadata, sysroot):
    """A line for each crate that is in the programs, with its licence; then every text once, below the crates that it is of."""
    lines, texts = [], {}
    for package in crates_of(metadata):
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or package["license_file"] or sys.exit(f"wheel: {name} has no licence")
        authors = ", ".join(re.sub(r"\s*<.*>", "", a) for a in package["authors"])
        lines.append("  ".join(part for part in (name, licence, package["repository"], authors) if part))
        notices = notices_of(package, sysroot) or sys.exit(f"wheel: {name} has no text of its licence")
        # Lines are broken elsewhere in some copies of one text.
        for words, text in {" ".join(text.split()): text for text in notices}.items():
            texts.setdefault(words, (text, []))[1].append(name)
    bodies = "".join(f"\n==== {', '.join(of)}\n\n{text}\n" for text, of in texts.values())
    return "\n".join(lines) + "\n" + bodies


def main():
    work, sysroot, dest = (Path(a) for a in sys.argv[1:])
    metadata = json.loads((work / "metadata.json").read_text())
    version = next(p["version"] for p in metadata["packages"] if p["name"] == "xlazy-kernel")
    tree = work / "tree"
    described = json.loads((tree / "runtime.json").read_text())
    rust = described["rustc"]
    for old in dest.glob("xlazy*.whl"):
        old.unlink()

    # The compiler is named as seen from here: it lies beside this package.
    described["toolchain"] = {"sysroot": "../../xlazy_rust", "rustc": "../../xlazy_rust/bin/rustc", "lld": None}
    (tree / "runtime.json").write_text(json.dumps(described, indent=2) + "\n")
    plugin = re.search(r"^fastatomstruct\S+", (ROOT / "scripts/wheel-requirements.txt").read_text(), re.M).group()
    requires = [f"xlazy-rust=={rust}", plugin]
    summary = "Lazy tensors on XLA from Rust: a Jupyter kernel, a terminal, and cells in Python notebooks"
    wheel = Wheel(dest, "xlazy", version, summary, requires, ["xlazy = xlazy.__main__:main"])
    # What shows widgets in a front end; cells run without it.
    wheel.metadata += ["Provides-Extra: widgets", "Requires-Dist: anywidget>=0.9; extra == 'widgets'"]
    wheel.folder("xlazy", ROOT / "python/xlazy")
    wheel.folder("xlazy/tree", tree)
    spec = work / "spec/share/jupyter/kernels/xlazy"
    kernel = json.loads((spec / "kernel.json").read_text())
    # `python` becomes the one that this is installed for.
    kernel["argv"] = ["python", "-m", "xlazy", "kernel", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps(kernel, indent=2) + "\n")
    wheel.folder(f"{wheel.stem}.data/data/share/jupyter/kernels/xlazy", spec)
    for name in ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT"):
        wheel.licence(name, (ROOT / name).read_text())
    about = f"xlazy {version}: {LICENCE}.\nRust's standard library {rust}: {LICENCE}.\nCrates that are part of it:\n\n"
    wheel.licence("THIRD-PARTY.txt", about + licences_of_crates(metadata, sysroot))
    # It lies beside the programs, too.
    wheel.licence("RUST-LIBRARY.html", document(sysroot, "rust/COPYRIGHT-library.html"))
    wheel.done()

    # What a cell, and cargo for `:dep`, take of Rust. The sanitizers' and the profiler's run-times are for nobody here.
    library = sorted(p for p in (sysroot / TARGET / "lib").iterdir() if p.is_file())
    standard = [p for p in library if not re.match(r"librustc-.*_rt|libprofiler_builtins", p.name)]
    whole = sorted(p for p in (sysroot / "lib").iterdir() if p.is_file())
    # By the second name a C compiler calls the linker, where there is one.
    programs = [sysroot / name for name in ("bin/rustc", "bin/cargo", f"{TARGET}/bin/rust-lld", f"{TARGET}/bin/gcc-ld/ld.lld")]
    parts = {
        "xlazy-rust-llvm": [p for p in whole if "LLVM" in p.name],
        "xlazy-rust-driver": [p for p in whole if "LLVM" not in p.name],
        "xlazy-rust": [*programs, *standard],
    }
    others = [f"{name}=={rust}" for name in parts if name != "xlazy-rust"]
    for name, files in parts.items():
        summary = f"What a cell of xlazy needs of Rust {rust}: a part of it"
        wheel = Wheel(dest, name, rust, summary, others if name == "xlazy-rust" else ())
        for file in files:
            wheel.file(f"xlazy_rust/{file.relative_to(sysroot)}", file)
        # Of the parts, whichever pip removes last takes the folder along, because it has a file there itself.
        wheel.add(f"xlazy_rust/{name}.txt", f"{summary}, for xlazy's cells. Its licences are beside its metadata.\n".encode())
        wheel.licence("LICENCES.txt", licences_of_rust(sysroot, rust, name))
        wheel.done()


def licences_of_rust(sysroot, rust, name):
    about = f"Rust {rust}, https://www.rust-lang.org: {LICENCE}. LLVM, a part of it: Apache-2.0 WITH LLVM-exception.\n"
    about += f"{name} has files of Rust's own distribution, as they are. The licences of all that is in them:\n\n"
    whose = {
        "xlazy-rust-driver": ["rust/COPYRIGHT.html"],
        "xlazy-rust": ["rust/COPYRIGHT-library.html", "cargo/LICENSE-THIRD-PARTY"],
    }
    documents = sysroot / "share/doc"
    names = whose.get(name, []) + sorted(str(t.relative_to(documents)) for t in (documents / "rust/licenses").glob("*"))
    return about + "".join(f"==== {Path(n).name}\n\n{document(sysroot, n)}\n" for n in names)


def document(sysroot, name):
    path = sysroot / "share/doc" / name
    if not path.is_file():
        sys.exit(f"wheel: licences have to come along, and {path} is not there")
    return path.read_text()


if __name__ == "__main__":
    main()
