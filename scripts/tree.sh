#!/usr/bin/env bash
# Builds xlazy and lays out what an installation has: bin, lib, and runtime.json, which says what compiles cells.
#
#   scripts/tree.sh DEST [PROFILE]      (default: release; dist takes twice as long to build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# =~ ^[12]$ && -n $1 && $1 != -* ]] || { echo "usage: scripts/tree.sh DEST [PROFILE]" >&2 && exit 1; }
dest=$1 profile=${2:-release}

# Other flags would give another libxlazy.so than the one that cells are told to link to.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
# All of the workspace at once, here and wherever something is built: the choice of packages decides the features of what
# they depend on, and so which libxlazy.so comes out.
build=(cargo build --profile "$profile" --locked --workspace)
"${build[@]}"
target=$(cargo metadata --format-version 1 --no-deps --locked | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')

mkdir -p "$dest"/{bin,lib/deps}
# For `xlazy plugins install cpu-multi`, which builds it where somebody wants it.
mkdir -p "$dest"/lib/cpu-plugin/{scripts,runtime/plugins/cpu}
install -m 755 scripts/cpu-plugin.sh "$dest/lib/cpu-plugin/scripts/"
cp -r runtime/plugins/cpu/{*.cc,*.h,stubs} "$dest/lib/cpu-plugin/runtime/plugins/cpu/"
install -m 755 "$target/$profile/xlazy" "$target/$profile/xlazy-session" "$dest/bin/"
install -m 755 "$target/$profile/libxlazy.so" "$dest/lib/"
install -m 755 "$(rustc --print sysroot)"/lib/rustlib/x86_64-unknown-linux-gnu/lib/libstd-*.so "$dest/lib/"
# A cell is compiled against the metadata of all that libxlazy.so was made from; rustc loads the macros among it.
libraries() { cargo tree --locked -p xlazy -e "$1" --prefix none --format '{lib}' | sort -u | tr '\n' ' '; }
"${build[@]}" --message-format=json 2>/dev/null | python3 -c '
import json, shutil, sys
needed, with_macros = (set(names.split()) for names in sys.argv[2:])
for line in sys.stdin:
    message = json.loads(line)
    target = message.get("target", {})
    name = target.get("name", "").replace("-", "_")
    # Cells link to libxlazy.so itself.
    if name == "xlazy":
        continue
    if name not in needed:
        if name in with_macros and "proc-macro" in target["kind"]:
            for path in message["filenames"]:
                shutil.copy(path, sys.argv[1])
        continue
    for path in message.get("filenames", []):
        if path.endswith((".rmeta", ".rlib")):
            meta = path[:-5] + ".rmeta" if path.endswith(".rlib") else path
            try:
                shutil.copy(meta, sys.argv[1])
            except FileNotFoundError:
                shutil.copy(path, sys.argv[1])
' "$dest/lib/deps" "$(libraries normal,no-proc-macro)" "$(libraries normal)"
RUSTC=$(rustc --print sysroot)/bin/rustc "$dest/bin/xlazy" describe-toolchain >"$dest/runtime.json"
