#!/usr/bin/env bash
# Installs xlazy for this user: builds it, fetches a CPU plugin, registers the kernel with Jupyter, and
# runs the first notebook as proof. A second run does only what is missing.
#
#   ./install.sh [--no-demo] [--prefix DIR] [--cpu-plugin-from-source] [--uninstall]
#
#   --no-demo     leave out JupyterLab and the notebook run at the end
#   --prefix DIR  put everything under DIR and nothing into the home folder
#   --cpu-plugin-from-source
#                 build the CPU plugin instead of fetching it: it also tells what programs cost, and takes g++ and 274 MB of
#                 TensorFlow
#   --uninstall   remove what an earlier run installed (with the same --prefix)
#
#   XLAZY_HOME    where it goes without --prefix (default: ~/.local/share/xlazy)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

started=$SECONDS
step() { printf '\033[1m[%3d s] %s\033[0m\n' $((SECONDS - started)) "$*"; }
die() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

demo=1 prefix='' uninstall='' from_source=''
while (($#)); do
  case $1 in
    --no-demo) demo='' ;;
    --prefix)
      [[ -n ${2:-} ]] || die "--prefix needs a folder"
      prefix=$(realpath -m "$2")
      shift
      ;;
    --prefix=*) prefix=$(realpath -m "${1#*=}") ;;
    --cpu-plugin-from-source) from_source=1 ;;
    --uninstall) uninstall=1 ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit
      ;;
    *) die "unknown option $1; see ./install.sh --help" ;;
  esac
  shift
done

[[ $(uname -s)-$(uname -m) == Linux-x86_64 ]] ||
  die "xlazy runs on Linux x86_64 so far, and this is $(uname -sm): there is no CPU plugin for it"

home=${prefix:-${XLAZY_HOME:-$HOME/.local/share/xlazy}}
link=$HOME/.local/bin/xlazy
spec=(--user)
if [[ -n $prefix ]]; then
  link=''
  spec=(--prefix "$prefix")
fi

if [[ -n $uninstall ]]; then
  [[ -e $home/runtime.json ]] || die "there is no xlazy in $home"
  "$home/bin/xlazy" uninstall "${spec[@]}" || true
  [[ -z $link || $(readlink "$link" 2>/dev/null) != "$home/bin/xlazy" ]] || rm "$link"
  rm -rf "${home:?}"/{bin,lib,plugins,jupyter,jupyter.log,runtime.json,first-run.ipynb}
  rmdir --ignore-fail-on-non-empty "$home"
  step "removed xlazy from $home (the fetched headers stay in ${XLAZY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xlazy})"
  exit
fi

# ---- What it takes

step "checking the tools"
missing=()
command -v cargo >/dev/null || missing+=("Rust: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh")
[[ -z $from_source ]] || command -v "${CXX:-g++}" >/dev/null || missing+=("a C++ compiler: sudo apt-get install -y g++")
command -v cc >/dev/null || missing+=("a linker: sudo apt-get install -y gcc")
command -v python3 >/dev/null || missing+=("Python: sudo apt-get install -y python3 python3-pip python3-venv")
python3 -m venv --help >/dev/null 2>&1 || missing+=("Python's venv: sudo apt-get install -y python3-venv")
if ((${#missing[@]})); then
  printf 'install: missing\n' >&2
  printf '  %s\n' "${missing[@]}" >&2
  exit 1
fi
wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
have=$(rustc --version | cut -d' ' -f2) || die "rustc $wanted is not installed: rustup toolchain install $wanted"
[[ $(printf '%s\n' "$wanted" "$have" | sort -V | head -n1) == "$wanted" ]] ||
  die "rustc is $have, but $wanted or later is needed: rustup toolchain install $wanted"

# ---- Build

mkdir -p "$home"
# JupyterLab comes while the build goes on. `jupyter-lab` is what says that it is there, and pip writes it last: a broken run is done
# again.
lab=jupyter fetching=''
if [[ -n $demo && ! -x $home/jupyter/bin/jupyter-lab ]] && ! jupyter lab --version >/dev/null 2>&1; then
  step "fetching JupyterLab into $home/jupyter"
  rm -rf "$home/jupyter"
  {
    python3 -m venv "$home/jupyter" &&
      exec "$home/jupyter/bin/pip" install --disable-pip-version-check --progress-bar off \
        --require-hashes --only-binary :all: -r scripts/jupyter-requirements.txt
  } >"$home/jupyter.log" 2>&1 &
  fetching=$!
fi
step "building xlazy with rustc $have"
# Made beside what is there, then exchanged.
stage=$(mktemp -d "$home/.new.XXXXXX")
trap 'rm -rf "$stage"; [[ -z $fetching ]] || kill "$fetching" 2>/dev/null || true' EXIT
scripts/tree.sh "$stage"

step "installing into $home"
for part in bin lib; do
  [[ ! -e $home/$part ]] || mv "$home/$part" "$stage/old-$part"
  mv "$stage/$part" "$home/$part"
done
mv "$stage/runtime.json" "$home/runtime.json"
rm -rf "$stage"

step "the CPU plugin"
if [[ -n $from_source ]]; then
  scripts/cpu-plugin.sh "$home/plugins/cpu"
else
  env -u XLAZY_PLUGIN_DIR XLAZY_HOME="$home" "$home/bin/xlazy" plugins install cpu
fi
if [[ -n $link ]]; then
  mkdir -p "$(dirname "$link")"
  ln -sfn "$home/bin/xlazy" "$link"
fi
XLAZY_HOME=$home "$home/bin/xlazy" install "${spec[@]}"

# ---- Proof

if [[ -n $demo ]]; then
  if [[ -n $fetching ]]; then
    step "waiting for JupyterLab"
    wait "$fetching" || die "JupyterLab could not be installed:
$(tail -n 20 "$home/jupyter.log")"
    fetching=''
    rm "$home/jupyter.log"
  fi
  [[ ! -x $home/jupyter/bin/jupyter-lab ]] || lab=$home/jupyter/bin/jupyter
  # Nobody else's Jupyter is changed: `xlazy doctor` says how that is done.
  [[ $lab != "$home/jupyter/bin/jupyter" ]] || XLAZY_HOME=$home "$home/bin/xlazy" install --ipc --prefix "$home/jupyter"
  step "running notebooks/01-first-steps.ipynb"
  "$home/bin/xlazy" run notebooks/01-first-steps.ipynb -o "$home/first-run.ipynb"
fi

step "xlazy is installed"
command=xlazy
if [[ -z $link || :$PATH: != *:$(dirname "$link"):* ]]; then
  command=$home/bin/xlazy
  [[ -z $link ]] || echo "  $(dirname "$link") is not on your PATH; add it to call xlazy by its name"
fi
cat <<END
  a notebook:   $lab lab notebooks/02-digits.ipynb   (choose the kernel "xlazy")
  the terminal: $command repl
  all well?     $command doctor
END
