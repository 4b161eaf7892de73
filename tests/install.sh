#!/usr/bin/env bash
# install.sh as a new user meets it: an empty home folder, twice, a run of the installed kernel, and away again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

real=$HOME
home=$(mktemp -d "$PWD/target/install-test.XXXXXX")
trap 'rm -rf "$home"' EXIT
# The toolchain and the fetched headers are not what is tested.
export CARGO_HOME=${CARGO_HOME:-$real/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$real/.rustup}
export XLAZY_CACHE=${XLAZY_CACHE:-${XDG_CACHE_HOME:-$real/.cache}/xlazy}
unset XLAZY_HOME XLAZY_PLUGIN_DIR XDG_DATA_HOME JUPYTER_DATA_DIR XDG_CACHE_HOME
export HOME=$home

fail() {
  echo "install test: $*" >&2
  exit 1
}

./install.sh --no-demo
xlazy=$HOME/.local/bin/xlazy
[[ -x $xlazy ]] || fail "no command at $xlazy"
kernelspec=$HOME/.local/share/jupyter/kernels/xlazy/kernel.json
grep -q '"display_name": "xlazy (Rust, lazy tensors on XLA)"' "$kernelspec" || fail "the kernelspec has another name"
[[ -s $(dirname "$kernelspec")/logo-64x64.png ]] || fail "the kernelspec has no logo"

# From elsewhere, so that nothing of the source tree can help.
cd "$home"
[[ $("$xlazy" eval 'tensor([1.0, 2.0]).sum().item()') == 3.0 ]] || fail "the installed xlazy does not compute"
"$xlazy" doctor || fail "the doctor finds fault"
"$xlazy" doctor --json | python3 -c 'import json,sys; assert json.load(sys.stdin)["ok"]'
cd - >/dev/null

SECONDS=0
./install.sh --no-demo
((SECONDS < 30)) || fail "a second run took $SECONDS s"

# A wheel of the wrong hash leaves nothing behind.
cache=$home/wrong-cache
mkdir -p "$cache/wheels"
wheel=$(sed -n 's/^wheel_file=//p' scripts/cpu-plugin.sh)
echo "not a wheel" >"$cache/wheels/$wheel"
if XLAZY_CACHE=$cache scripts/cpu-plugin.sh "$home/wrong/cpu" 2>"$home/message"; then fail "a wrong wheel was taken"; fi
grep -q "wrong SHA-256" "$home/message" || fail "no word about the wrong hash: $(cat "$home/message")"
[[ ! -e $home/wrong/cpu ]] || fail "a wrong wheel left something half-installed"

./install.sh --uninstall
[[ ! -e $xlazy && ! -e $kernelspec && ! -e $home/.local/share/xlazy/bin ]] || fail "something was left behind"
echo "install test: passed"
