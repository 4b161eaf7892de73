#!/bin/sh
# Runs every notebook of notebooks/, by `xlazy run` and by nbclient through the kernel.
#   XLAZY_BIN   the binary, instead of the one cargo builds
#   XLAZY_VENV  where the Python packages live (target/venv)
set -eu
cd "$(dirname "$0")/../.."
venv=${XLAZY_VENV:-target/venv}
if ! [ -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
# A stamp instead of asking pip each time: that alone takes a second.
if ! cmp -s tests/requirements.txt "$venv/requirements.stamp"; then
    "$venv/bin/python" -m pip install --quiet --requirement tests/requirements.txt
    cp tests/requirements.txt "$venv/requirements.stamp"
fi
if [ -z "${XLAZY_BIN:-}" ]; then
    # Where it is built, the binary finds libstd only as `cargo run` would let it; installed, it lies beside it.
    LD_LIBRARY_PATH=$(rustc --print target-libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    cargo build --quiet --release -p xlazy -p xlazy-session -p xlazy-kernel
    XLAZY_BIN=${CARGO_TARGET_DIR:-target}/release/xlazy
fi
XLAZY_BIN=$(realpath "$XLAZY_BIN")
export XLAZY_BIN
exec timeout 900 "$venv/bin/python" -m pytest -p no:cacheprovider -q "$@" tests/notebooks
