#!/usr/bin/env bash
# The tests of how a stored value becomes the type that a cell knows it by (runtime/core/src/sys/stored.rs), where a wrong
# read shows: under Miri if a toolchain has it, and under AddressSanitizer of the pinned one.
#
#   tests/unbox.sh      RUSTUP_TOOLCHAIN or MIRI_TOOLCHAIN says which toolchain has Miri
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/target/unbox
mkdir -p "$out/src"
cp runtime/core/src/sys/stored.rs "$out/src/lib.rs"
printf '[package]\nname = "stored"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n' > "$out/Cargo.toml"

echo "AddressSanitizer"
RUSTC_BOOTSTRAP=1 rustc --edition=2024 --test -g -Zsanitizer=address "$out/src/lib.rs" -o "$out/sanitized"
"$out/sanitized" --quiet

miri=${MIRI_TOOLCHAIN:-$(rustup toolchain list 2>/dev/null | cut -d' ' -f1 | while read -r toolchain; do
  cargo "+$toolchain" miri --version > /dev/null 2>&1 && echo "$toolchain" && break
done || true)}
if [ -z "$miri" ]; then
  echo "no toolchain here has Miri: the sanitizer alone"
  exit
fi
echo "Miri of $miri"
(cd "$out" && cargo "+$miri" miri test --quiet)
