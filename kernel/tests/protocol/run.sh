#!/bin/sh
# Runs the protocol suite against the built kernel, or against the mock with `mock` as first argument.
#   XLAZY_BIN   the binary, instead of the one cargo builds
#   XLAZY_VENV  where the Python packages live (target/venv)
set -eu
cd "$(dirname "$0")/../../.."
kind=real
if [ "${1:-}" = mock ]; then
    kind=mock
    shift
fi
venv=${XLAZY_VENV:-target/venv}
if ! [ -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
# A stamp instead of asking pip each time: that alone takes a second.
if ! cmp -s tests/requirements.txt "$venv/requirements.stamp"; then
    "$venv/bin/python" -m pip install --quiet --requirement tests/requirements.txt
    cp tests/requirements.txt "$venv/requirements.stamp"
fi
target=${CARGO_TARGET_DIR:-target}
if [ -z "${XLAZY_BIN:-}" ]; then
    # Where it is built, the binary finds libstd only as `cargo run` would let it; installed, it lies beside it.
    LD_LIBRARY_PATH=$(rustc --print target-libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    if [ "$kind" = mock ]; then
        cargo build --quiet -p xlazy-kernel --example mock_kernel
        XLAZY_BIN=$target/debug/examples/mock_kernel
    else
        cargo build --quiet --release -p xlazy-kernel
        XLAZY_BIN=$target/release/xlazy
    fi
fi
XLAZY_BIN=$(realpath "$XLAZY_BIN")
export XLAZY_BIN XLAZY_KERNEL="$kind"
# Part of the suite waits for a message for ever.
exec timeout 600 "$venv/bin/python" -m pytest -p no:cacheprovider -q "$@" kernel/tests/protocol
