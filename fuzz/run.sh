#!/usr/bin/env bash
# Fuzzes what comes from others: every target runs the corpus that is kept in fuzz/corpus, then what libFuzzer makes of it.
#
#   fuzz/run.sh [SECONDS [TARGET…]]     seconds for each target, 3 unless told
#   fuzz/run.sh keep [TARGET…]          brings what earlier runs have found to reach something new into fuzz/corpus
#
# An input that ends a target lies in target/fuzz/found; the target, called with its name, repeats it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

triple=x86_64-unknown-linux-gnu
export CARGO_TARGET_DIR=$PWD/target/fuzz
# The counters of what is reached are a pass of LLVM's, which the pinned compiler runs where it is named. All else is linked
# dynamically, this is not; with a target named, build scripts are left as they are.
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for counts in inline-8bit-counters pc-table trace-compares; do RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-$counts"; done
export RUSTFLAGS
cargo build --release --locked --target "$triple" --manifest-path fuzz/Cargo.toml

seconds=${1:-3}
targets=("${@:2}")
((${#targets[@]})) || for file in fuzz/targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
mkdir -p "$CARGO_TARGET_DIR/found"
for target in "${targets[@]}"; do
  new=$CARGO_TARGET_DIR/corpus/$target kept=fuzz/corpus/$target
  mkdir -p "$new" "$kept"
  fuzz=("$CARGO_TARGET_DIR/$triple/release/$target" -timeout=10 -rss_limit_mb=1024 -max_len=2048
    -artifact_prefix="$CARGO_TARGET_DIR/found/$target-")
  if [[ $seconds == keep ]]; then
    least=$CARGO_TARGET_DIR/corpus/$target.least
    rm -rf "$least" && mkdir "$least"
    "${fuzz[@]}" -set_cover_merge=1 "$least" "$kept" "$new" >"$new.log" 2>&1
    rm -rf "$kept" && mv "$least" "$kept"
    echo "$target: $(find "$kept" -type f | wc -l) inputs are kept"
  elif "${fuzz[@]}" -max_total_time="$seconds" "$new" "$kept" >"$new.log" 2>&1; then
    echo "$target: $(grep -E '^Done|^#.*INITED' "$new.log" | tr '\t\n' '  ')"
  else
    tail -40 "$new.log" >&2
    echo "fuzz: $target ended; everything that it said is in $new.log" >&2
    exit 1
  fi
done
