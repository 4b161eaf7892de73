#!/usr/bin/env bash
# Ten minutes of four clients that run cells, interrupt and kill at random, on one kernel: no reply may be missing, and
# nothing may be left behind. Not a part of tests/run.sh.
#
#   tests/soak.sh [SECONDS]      XLAZY_SOAK_SEED repeats a run
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export XLAZY_SOAK_SECONDS=${1:-600} XLAZY_SOAK_SEED=${XLAZY_SOAK_SEED:-$RANDOM$RANDOM$RANDOM}
export XLAZY_PLUGIN_DIR=$PWD/target/home/plugins
scripts/cpu-plugin.sh target/home/plugins/cpu
LD_LIBRARY_PATH=$(rustc --print target-libdir)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
cargo build --release --locked --workspace
cargo test --release --locked -p xlazy-kernel --test soak -- --nocapture --exact \
  four_clients_that_interrupt_and_kill_get_every_reply
