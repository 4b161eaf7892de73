#!/usr/bin/env bash
# Tests a built CPU plugin: from C against the header it was built with, and from JAX as a foreign client.
#
#   runtime/plugins/cpu/tests/run.sh PLUGIN_DIR [c|jax]
#
# PLUGIN_DIR is what scripts/cpu-plugin.sh made. JAX comes from a virtual environment in XLAZY_CACHE (default: the user's cache
# folder), made on the first run.
set -euo pipefail

jax=(jax==0.10.2 jaxlib==0.10.2)

die() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}
[[ $# == 1 || ($# == 2 && ($2 == c || $2 == jax)) ]] || die "usage: runtime/plugins/cpu/tests/run.sh PLUGIN_DIR [c|jax]"
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
plugin=$(realpath -m "$1")/libpjrt_cpu.so
[[ -e $plugin && -e $1/plugin.json ]] || die "$1 holds no plugin: run scripts/cpu-plugin.sh $1"
which=${2:-c jax}
cache=$(realpath -m "${XLAZY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xlazy}")

# Without these, XLA logs to stderr about its own defaults.
export TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0
failed=0

if [[ " $which " == *" c "* ]]; then
  include=$(sed -n 's/.*"include_dir": "\(.*\)".*/\1/p' "$1/plugin.json")
  [[ -e $include/xla/pjrt/c/pjrt_c_api.h ]] || die "the wheel's headers are gone from $include: run scripts/cpu-plugin.sh $1"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  "${CC:-gcc}" -std=c11 -O1 -Wall -Wextra -Wno-missing-field-initializers -isystem "$include" "$tests"/*.c \
    -o "$work/plugin_test" -ldl -lm
  "$work/plugin_test" "$plugin" || failed=1
fi

if [[ " $which " == *" jax "* ]]; then
  venv=$cache/test-venv/${jax[0]}
  if [[ ! -e $venv/.complete ]]; then
    echo "installing ${jax[*]} to test with" >&2
    rm -rf "$venv"
    python3 -m venv "$venv" || die "python3 has no venv: sudo apt-get install -y python3-venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${jax[@]}" ||
      die "pip could not install ${jax[*]}: check the network and pip's settings; JAX needs Python 3.11 or newer"
    touch "$venv/.complete"
  fi
  PJRT_NAMES_AND_LIBRARY_PATHS=xlazy_cpu:$plugin JAX_PLATFORMS=xlazy_cpu "$venv/bin/python" "$tests/foreign_jax.py" || failed=1
fi

((failed == 0)) && echo "the CPU plugin passes" || echo "the CPU plugin FAILS"
exit $failed
