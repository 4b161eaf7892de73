#!/usr/bin/env bash
# What takes longer than a change can wait for: before a release, or when what it is about has changed. An hour and a half.
#
#   tests/long.sh          everything
#   tests/long.sh NAME…    only these parts: sizes conformance ready macros checkpoints fuzz soak unbox sanitizer processors evcxr weights
#
#   XLAZY_ROUNDS   how many times as much the tests of cells, interrupts and kills do: 10
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export XLAZY_ROUNDS=${XLAZY_ROUNDS:-10}
export XLAZY_PLUGIN_DIR=$PWD/target/home/plugins XLAZY_PREBUILT=1 XLAZY_PROGRAM_CACHE=off
LD_LIBRARY_PATH=$(rustc --print target-libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# 5,000 cells, 500 interrupts of cells and 160 of training, 200 cells with kills, 40 workers of pods each killed, stopped, interrupted.
sizes() {
  for test in soak interrupts deaths pods; do
    cargo test --release --locked -p xlazy-kernel --test "$test" -- --nocapture --test-threads 1
  done
}

# The runtime's tests with programs that are optimised as users have them.
conformance() {
  cargo test --release --locked -p xlazy
}

# The runtime's tests over the ready plugin that users have, which has no cost analysis to compare with.
ready() {
  XLAZY_HOME=$PWD/target/ready target/release/xlazy plugins install cpu
  XLAZY_PLUGIN_DIR=$PWD/target/ready/plugins \
    cargo test --release --locked -p xlazy --no-fail-fast -- --skip counted_as_xla_counts_it
}

# 100,000 hostile checkpoints, whose code must have the expected syntax tree.
checkpoints() {
  XLAZY_FUZZ=100000 cargo test --release --locked -p xlazy-kernel --lib checkpoint::code -- --nocapture
}

# 200 macros of published crates, as rustc has them.
macros() {
  XLAZY_LONG=1 cargo test --release --locked -p xlazy-kernel --lib published -- --nocapture
}

# Variables' types, under Miri where a toolchain has it, and AddressSanitizer.
unbox() { tests/unbox.sh; }

# Three minutes, over all targets.
fuzz() {
  local targets=(fuzz/targets/*.rs)
  fuzz/run.sh $((180 / ${#targets[@]}))
}

soak() { tests/soak.sh; }

# The same cells run by evcxr, which takes some minutes to build: docs/evcxr.md says where the two differ.
evcxr() {
  local manifest=engines/evcxr/Cargo.toml of_evcxr
  cargo build --release --locked --manifest-path "$manifest" --target-dir target/evcxr
  of_evcxr='import json, sys; print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "evcxr"))'
  of_evcxr=$(cargo metadata --locked --format-version 1 --manifest-path "$manifest" | python3 -c "$of_evcxr")
  XLAZY_EVCXR=$PWD/target/evcxr/release/xlazy-evcxr XLAZY_EVCXR_TESTS=$(dirname "$of_evcxr")/tests/integration_tests.rs \
    cargo test --release --locked -p xlazy-kernel --test evcxr -- --ignored
}

# Published weights, fetched (115 MB): embeddings are PyTorch's, and a cat is a cat.
weights() {
  python3 scripts/real_weights.py target/minilm
  cargo build --release --locked -p xlazy -p xlazy-session -p xlazy-kernel
  target/release/xlazy run examples/semantic-search.ipynb --weights ../target/minilm
  python3 scripts/real_weights.py target/cat cat
  target/release/xlazy run examples/whats-in-a-picture.ipynb --weights ../target/cat
}

# The tests of what is `unsafe`, with everything checked that the compiler can check: arithmetic, and what the standard
# library asserts of pointers. Sanitizers themselves need an unstable compiler: with one, name it in XLAZY_NIGHTLY.
sanitizer() {
  local flags="-C debug-assertions -C overflow-checks"
  CARGO_TARGET_DIR=target/checked RUSTFLAGS="$flags" cargo test --locked -p xlazy-pjrt -p xlazy-core -p xlazy-mime
  if [[ ${XLAZY_NIGHTLY:-} ]]; then
    CARGO_TARGET_DIR=target/sanitized RUSTFLAGS="-Zsanitizer=address" \
      cargo "+$XLAZY_NIGHTLY" test --target x86_64-unknown-linux-gnu -p xlazy-pjrt -p xlazy-core -p xlazy-mime
  fi
}

# The lessons on processors with fewer instructions than this one: what they train ends where they say.
processors() {
  local isa
  for isa in SSE4_2 AVX2; do
    XLA_FLAGS=--xla_cpu_max_isa=$isa XLAZY_BIN=target/release/xlazy tests/notebooks/run.sh -k command_line
  done
}

scripts/cpu-plugin.sh target/home/plugins/cpu
cargo build --release --locked --workspace
parts=("$@")
((${#parts[@]})) || parts=(sizes conformance ready macros checkpoints fuzz soak unbox sanitizer processors evcxr weights)
for part in "${parts[@]}"; do
  printf '\n\033[1m[%4d s] %s\033[0m\n' "$SECONDS" "$part"
  "$part"
done
