#!/usr/bin/env bash
# The wheels as a new user meets them: built, installed into a fresh environment by somebody who has an empty home, no Rust and no
# C compiler, used, and away again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD

fail() {
  echo "wheel test: $*" >&2
  exit 1
}
started=$SECONDS
step() { printf '[%3d s] %s\n' $((SECONDS - started)) "$*"; }

venv=$root/target/wheel-venv colab=$root/target/colab-venv
# environment FOLDER FILE…: a Python environment that has what the first of the files asks for, which the others are a part of.
environment() {
  local folder=$1
  shift
  if ! cat "$@" | cmp -s - "$folder/requirements.stamp"; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$1"
    cat "$@" >"$folder/requirements.stamp"
  fi
}
environment "$venv" tests/wheel/requirements.txt tests/requirements.txt
environment "$colab" tests/wheel/colab-requirements.txt

step "building the wheels"
wheels=$root/target/wheels
# What the other parts have built; how hard rustc tries changes nothing of what is tried here.
XLAZY_WHEEL_LEVEL=${XLAZY_WHEEL_LEVEL:-1} XLAZY_WHEEL_PROFILE=release scripts/wheel.sh "$wheels"
for wheel in "$wheels"/xlazy*.whl; do
  tag=$(sed -n 's/.*-\(manylinux_[0-9_]*_x86_64\)\.whl/\1/p' <<<"$wheel")
  listed=$(python3 -m zipfile -l "$wheel")
  grep 'dist-info/licenses/[LT]' <<<"$listed" >/dev/null || fail "$wheel names no licences"
  # The same files make the same wheel.
  clock=$(sed 1d <<<"$listed" | grep -v ' 2020-01-01 00:00:00 ' | head -1) || true
  [[ -z $clock ]] || fail "$wheel has the time at which it was made: $clock"
  # The README says which glibc the newest of them asks for.
  glibc=$(tr _ . <<<"${tag#manylinux_}" | cut -d. -f1,2)
  promised=$(sed -n 's/.*glibc \([0-9.]*\) or later.*/\1/p' README.md)
  [[ $(printf '%s\n' "$glibc" "$promised" | sort -V | tail -1) == "$promised" ]] || fail "$wheel wants glibc $glibc, the README says $promised"
  # What is found out here is what others find out; it takes half a minute, and a file that was asked about before is the same.
  sum=$(sha256sum <"$wheel")
  if ! grep -sx "$sum" "$root/target/wheels-audited" >/dev/null; then
    said=$("$venv/bin/auditwheel" show "$wheel" 2>&1) || fail "auditwheel: $said"
    tr '\n' ' ' <<<"$said" | grep "constrains the platform tag to \"$tag\"" >/dev/null || fail "auditwheel does not call it $tag: $said"
    echo "$sum" >>"$root/target/wheels-audited"
  fi
  if [[ $wheel == */xlazy-[0-9]* ]]; then
    # The texts of its crates' licences, not only their names.
    texts=$(python3 -c 'import sys, zipfile; w = zipfile.ZipFile(sys.argv[1]); [print(w.read(n).decode()) for n in w.namelist() if n.endswith("/THIRD-PARTY.txt")]' "$wheel")
    for text in '^==== .*serde_json' 'Permission is hereby granted'; do
      grep "$text" <<<"$texts" >/dev/null || fail "$wheel has no texts of its crates' licences: no $text"
    done
  fi
done

# ---- Into a machine with nothing

home=$(mktemp -d "$root/target/wheel-test.XXXXXX")
new=$home/venv
trap 'rm -rf "$home"' EXIT
step "installing"
mkdir -p "$home/user/work"
cp -a "$venv" "$new"
find "$new/bin" -maxdepth 1 -type f -exec grep -lIFZ "$venv" {} + | xargs -0 sed -i "s|$venv|$new|g"
# No cargo, rustc, cc or gcc can be found. What cargo has fetched before is not what is tested.
bare() {
  env -i PATH="$new/bin" HOME="$home/user" LANG=C.UTF-8 VIRTUAL_ENV="$new" PYTHONDONTWRITEBYTECODE=1 \
    ${SSL_CERT_FILE:+SSL_CERT_FILE="$SSL_CERT_FILE"} CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" "$@"
}
for tool in cargo rustc cc gcc ld; do
  if bare "$new/bin/python" -c 'import shutil,sys; sys.exit(not shutil.which(sys.argv[1]))' $tool; then fail "there is $tool"; fi
done
# quick WHAT MS SINCE: told, and a failure beyond a limit that is a multiple of what a busy machine takes.
quick() {
  local took=$((($(date +%s%N) - $3) / 1000000))
  echo "        $1 took $took ms"
  ((took < $2)) || fail "$1 took $took ms, and has $2"
}
before=$(date +%s%N)
bare "$new/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$wheels" xlazy
quick "pip, where all is fetched," 120000 "$before"
cd "$home/user/work"
step "the first tensor"
before=$(date +%s%N)
[[ $(bare "$new/bin/xlazy" eval 'tensor([1.0, 2.0]).sum().item()') == 3.0 ]] || fail "the installed xlazy does not compute"
quick "the first tensor" 10000 "$before"
before=$(date +%s%N)
[[ $(bare "$new/bin/python" -m xlazy eval 'tensor([1.0, 4.0]).sum().item()') == 5.0 ]] || fail "python -m xlazy does not compute"
quick "another one" 10000 "$before"
bare "$new/bin/xlazy" doctor || fail "the doctor finds fault"
bare "$new/bin/jupyter" kernelspec list | grep "xlazy *$new/share/jupyter/kernels/xlazy" >/dev/null || fail "Jupyter does not list the kernel"
[[ $(bare "$new/bin/xlazy" eval ':dep itoa = "1"' 'itoa::Buffer::new().format(42u8).len()' 2>/dev/null) == 2 ]] || fail ":dep fails"
[[ $(bare "$new/bin/xlazy" eval ':dep serde_json = "1"' 'serde_json::json!([1, 2]).to_string().len()' 2>/dev/null) == 5 ]] ||
  fail ":dep serde_json, which has build scripts, fails"
# Where a C compiler is, as on Colab, it links what cargo makes.
[[ $(bare PATH="$new/bin:/usr/bin:/bin" XLAZY_CACHE="$home/with-cc" "$new/bin/xlazy" eval ':dep serde_json = "1"' \
  'serde_json::json!([1, 2]).to_string().len()' 2>/dev/null) == 5 ]] || fail ":dep serde_json fails beside a C compiler"

step "uvx, which installs nothing"
mkdir "$home/uv"
# The launcher that uv writes asks the shell where it lies.
said=$(bare PATH="$new/bin:/usr/bin:/bin" HOME="$home/uv" UV_OFFLINE=1 "$new/bin/uvx" --quiet --python "$new/bin/python" \
  --no-index --find-links "$wheels" xlazy repl <<<'tensor([1.0, 2.0]).sum().item()') || fail "uvx xlazy repl fails: $said"
[[ $said == *3.0* ]] || fail "uvx xlazy repl does not compute: $said"
rm -rf "$home/uv"

step "lessons and Python notebooks"
bare "$new/bin/xlazy" lessons lessons >/dev/null
[[ -s lessons/02-digits.ipynb && -s lessons/data/digits.csv.gz ]] || fail "lessons are missing"
bare "$new/bin/python" -m pytest -p no:cacheprovider -q "$root/tests/wheel"

step "Python notebooks with Colab's versions of Jupyter's packages"
mkdir "$home/packages"
ln -s "$new"/lib/python3*/site-packages/{xlazy,xlazy_rust,fastatomstruct_xla_cpu} "$home/packages"
# What is asked of these packages, and not what of Rust.
bare PATH="$colab/bin" VIRTUAL_ENV="$colab" PYTHONPATH="$home/packages" "$colab/bin/python" -m pytest -p no:cacheprovider -q \
  -k 'not arrays and not sentence and not comment and not pages and not told_once' "$root/tests/wheel/test_magic.py"

# ---- And away again

step "uninstalling"
# Half of it is gone first, which is told with what pip's users do then.
rustc=$(echo "$new"/lib/python3*/site-packages/xlazy_rust/bin/rustc)
mv "$rustc" "$home/rustc"
said=$(bare "$new/bin/xlazy" eval '1 + 1' 2>&1) && fail "without a compiler it computes: $said"
[[ $said == *"pip install --force-reinstall xlazy xlazy-rust"* && $said != *install.sh* ]] || fail "without a compiler it says: $said"
mv "$home/rustc" "$rustc"
bare "$new/bin/xlazy" uninstall --cache >/dev/null
bare "$new/bin/python" -m pip uninstall --quiet --yes xlazy xlazy-rust xlazy-rust-llvm xlazy-rust-driver fastatomstruct-xla-cpu
left=$(find "$new" -iname '*xlazy*' -o -iname 'libpjrt*' -o -name 'libstd-*')
[[ -z $left ]] || fail "left behind in the environment: $left"
# What somebody has typed is theirs, as a shell's history is.
left=$(cd "$home/user" && find . -ipath '*xlazy*' -type f ! -path './.local/share/xlazy/state/history.*')
[[ -z $left ]] || fail "left behind at home: $left"

# ---- The same without Python: an archive, unpacked, and called through a link

step "the archive"
XLAZY_WHEEL_LEVEL=0 "$root/scripts/archive.py" "$wheels"
mkdir "$home/unpacked" "$home/other"
tar -xzf "$wheels"/xlazy-*.tar.gz -C "$home/unpacked"
rm "$wheels"/xlazy-*.tar.gz
ln -s "$home"/unpacked/xlazy-*/bin/xlazy "$home/other/xlazy"
alone() { env -i PATH=/nowhere HOME="$home/other" LANG=C.UTF-8 "$home/other/xlazy" "$@"; }
[[ $(alone eval 'tensor([1.0, 2.0]).sum().item()') == 3.0 ]] || fail "the archive's xlazy does not compute"
alone doctor || fail "the doctor finds fault with the archive"
[[ $(alone plugins list) == "cpu "*"plugins/cpu/libpjrt_cpu.so"* ]] || fail "no plugin in the archive"
# This plugin has no collectives between processes: a mesh over two is refused, and ends neither.
said=$(alone eval '%pod start --workers 2' 'mark_sharding(&Tensor::ones([4]), &Mesh::new(&[("data", 2)]), &[Some("data")]).sum()' 2>&1) &&
  fail "a mesh over two processes computes: $said"
[[ $said == *"has no collectives between processes"*"xlazy plugins install cpu-multi"* ]] || fail "a mesh over two processes is not refused: $said"
# What it names builds one that has them, of sources that came along; what was fetched and compiled for it before is taken.
env -i PATH="$PATH" HOME="$home/other" XLAZY_CACHE="${XLAZY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xlazy}" "$home/other/xlazy" plugins install cpu-multi
[[ $(alone plugins list) == *"cpu-multi "*"plugins/cpu-multi/libpjrt_cpu.so"* ]] || fail "no plugin for pods"
[[ $(alone eval '%pod start --workers 2' 'mark_sharding(&Tensor::ones([4]), &Mesh::new(&[("data", 2)]), &[Some("data")]).sum().item()') == *4.0 ]] ||
  fail "a mesh over two processes does not compute"
alone install --prefix "$home/other" >/dev/null
grep -q "$home/unpacked" "$home/other/share/jupyter/kernels/xlazy/kernel.json" || fail "the kernelspec does not name the archive's xlazy"

# ---- And in a container

if docker info >/dev/null 2>&1; then
  step "the image"
  mkdir "$home/context"
  cp -al "$wheels" "$home/context/dist"
  cp "$root/.dockerignore" "$home/context"
  DOCKER_BUILDKIT=1 docker build --quiet --file "$root/Dockerfile" --tag xlazy-wheel-test "$home/context" >/dev/null || fail "no image"
  [[ $(docker run --rm xlazy-wheel-test xlazy eval 'tensor([1.0, 2.0]).sum().item()') == 3.0 ]] || fail "the image's xlazy does not compute"
  docker image rm xlazy-wheel-test >/dev/null
else
  step "skipped: no container engine answers here, so the Dockerfile is not built"
fi
step "passed"
