#!/usr/bin/env bash
# What every change has to pass, with all that it needs: 45 minutes on two cores at the most, 15 when they are idle.
# tests/long.sh has the same in larger sizes, and what takes longer.
#
#   tests/run.sh          everything
#   tests/run.sh NAME…    only these parts: lint rust docs fuzz plugin protocol notebooks install wheel
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Seconds that each part may take, 45 minutes together: more than it takes on two idle cores, since a machine that others use
# takes longer. A part that takes more is told, and so are all of them together; beyond 80 minutes they are a failure.
declare -A budget=([build]=360 [libtpu]=60 [lint]=240 [rust]=1140 [docs]=180 [fuzz]=180 [plugin]=30 [protocol]=90
  [notebooks]=180 [install]=90 [wheel]=150)
all=2700 most=4800

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

# A tool of tests/lint-requirements.txt, fetched ready made by its hash, or nothing where it cannot be had so.
ready_made() {
  local bin=$tools/lint/bin
  if ! cmp -s tests/lint-requirements.txt "$tools/lint/stamp"; then
    python3 -m venv "$tools/lint" && "$bin/pip" install --quiet --require-hashes -r tests/lint-requirements.txt &&
      cp tests/lint-requirements.txt "$tools/lint/stamp"
  fi >&2
  [[ -x $bin/$1 ]] && echo "$bin/$1"
}

# A subcommand of cargo: the machine's, a ready-made one, or one that is built here.
subcommand() {
  local name=$1 version=$2
  if command -v "cargo-$name"; then return; fi
  ready_made "cargo-$name" && return
  [[ -x $tools/bin/cargo-$name ]] || cargo install --quiet --locked --root "$tools" "cargo-$name@$version" >&2
  echo "$tools/bin/cargo-$name"
}

lint() {
  cargo fmt --all --check
  cargo fmt --manifest-path fuzz/Cargo.toml --check
  cargo fmt --manifest-path engines/evcxr/Cargo.toml --check
  cargo clippy --release --locked --workspace --all-targets -- -D warnings
  dependencies
  shell
}

# What deny.toml allows, and nothing that nobody uses.
dependencies() {
  local deny machete
  deny=$(subcommand deny 0.20.2)
  for manifest in Cargo.toml fuzz/Cargo.toml; do
    "$deny" --manifest-path "$manifest" --config deny.toml --locked check bans licenses sources
  done
  if "$deny" fetch db; then
    "$deny" --locked check advisories
  else
    echo "skipped: the database of advisories cannot be reached from here"
  fi
  machete=$(subcommand machete 0.9.2)
  "$machete"
}

# Every shell script there is.
shell() {
  local shellcheck scripts
  shellcheck=$(command -v shellcheck || ready_made shellcheck)
  mapfile -t scripts < <(git ls-files | xargs grep -lPz '\A#![^\n]*[/ ](ba)?sh\n')
  "$shellcheck" "${scripts[@]}"
}

# Half of the time of programs that run once is LLVM's, which makes them faster: where there are thousands of them, they are taken
# as they are. tests/long.sh has them optimised as users do.
rust() {
  local nextest failed=0
  local once='package(xlazy) & (kind(lib) | binary(/^(conformance|models|torch_modules|torch_optim|second|complex|collectives|bucketing|random|control|decompositions)$/))'
  nextest=$(subcommand nextest 0.9.148)
  XLA_FLAGS=--xla_backend_optimization_level=0 \
    "$nextest" nextest run --release --locked --workspace --no-fail-fast -E "$once" || failed=1
  "$nextest" nextest run --release --locked --workspace --no-fail-fast -E "not ($once)" || failed=1
  return $failed
}

docs() {
  cargo test --release --locked --doc --workspace
  RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --no-deps --workspace
}

fuzz() { fuzz/run.sh; }

plugin() { runtime/plugins/cpu/tests/run.sh "$PWD/target/home/plugins/cpu"; }

protocol() { kernel/tests/protocol/run.sh; }

notebooks() { tests/notebooks/run.sh; }

install() { tests/install.sh; }

wheel() { tests/wheel/run.sh; }

# The CPU plugin is built beside it: one compiler of C++, where cargo's last crates leave a core to it.
build() {
  local log=target/cpu-plugin.log
  mkdir -p target
  scripts/cpu-plugin.sh target/home/plugins/cpu >"$log" 2>&1 &
  cargo build --release --locked --workspace
  wait $! || { cat "$log" >&2 && return 1; }
}

# Compiling for a TPU needs no TPU, but Google's library: where it can be fetched the tests that need it fail without it, and
# say that they skipped where it cannot.
libtpu() {
  if XLAZY_HOME=$PWD/target/home "$XLAZY_BIN" plugins install tpu; then
    export XLAZY_NEED_LIBTPU=1
  else
    echo "skipped: libtpu cannot be fetched here"
  fi
}

parts=("$@")
((${#parts[@]})) || parts=(lint rust docs fuzz plugin protocol notebooks install wheel)
for part in "${parts[@]}"; do
  [[ ${budget[$part]:-} ]] || { echo "tests: there is no part called $part, only: ${!budget[*]}" >&2 && exit 1; }
done
started=$SECONDS
took=() over=()
for part in build libtpu "${parts[@]}"; do
  printf '\n\033[1m[%4d s] %s, which has %d s\033[0m\n' $((SECONDS - started)) "$part" "${budget[$part]}"
  begun=$SECONDS
  "$part"
  took+=("$part $((SECONDS - begun)) of ${budget[$part]} s")
  ((SECONDS - begun <= budget[$part])) || over+=("$part")
done
printf '\n\033[1m[%4d s] all passed\033[0m\n' $((SECONDS - started))
printf '  %s\n' "${took[@]}"
# What is large belongs into tests/long.sh. XLAZY_NO_BUDGET is for machines that are known to be slow or busy.
for part in "${over[@]}"; do
  echo "tests: over its budget: $part" >&2
done
if ((SECONDS - started > all)); then
  echo "tests: too slow: $((SECONDS - started)) s of $all s; larger sizes belong into tests/long.sh (XLAZY_NO_BUDGET=1 lets it pass)" >&2
  ((SECONDS - started <= most)) || [[ -n ${XLAZY_NO_BUDGET:-} ]]
fi
