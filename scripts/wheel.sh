#!/usr/bin/env bash
# Builds the wheels that `pip install xlazy` takes, into a folder, with the one that brings the CPU plugin.
#
#   scripts/wheel.sh [DEST]      (default: dist)
#
# xlazy is the program, its runtime and the Python side. xlazy-rust, in three parts because package indexes take no more than
# 100 MB at once, is what a cell needs of the Rust that built it. The wheels go by what the programs in them ask of the machine:
# `auditwheel show` says the same, and of two of Rust's parts that their LLVM is not in them: it is in the third.
#
#   XLAZY_WHEEL_LEVEL    how hard zlib tries, 1 to 9 (default: 9)
#   XLAZY_WHEEL_PROFILE  how hard rustc tries (default: dist; release is what the tests have built)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dest=$(realpath -m "${1:-dist}")
[[ $dest != -* ]] || { echo "usage: scripts/wheel.sh [DEST]" >&2 && exit 1; }
mkdir -p "$dest"
work=$(mktemp -d "$dest/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT

scripts/tree.sh "$work/tree" "${XLAZY_WHEEL_PROFILE:-dist}"
strip "$work/tree/bin/xlazy" "$work/tree/bin/xlazy-session"
"$work/tree/bin/xlazy" install --prefix "$work/spec" >/dev/null
cargo metadata --format-version 1 --locked --filter-platform x86_64-unknown-linux-gnu >"$work/metadata.json"
python3 scripts/wheel.py "$work" "$(rustc --print sysroot)" "$dest"
# A wheel of its own kind: the CPU plugin as its maintainer publishes it, pinned by its hash.
python3 -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary=:all: \
  --dest "$dest" -r scripts/wheel-requirements.txt
ls -l "$dest"
