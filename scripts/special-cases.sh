#!/bin/sh
# Counts what explanations are fitted to: `scripts/special-cases.sh` here, `scripts/special-cases.sh COMMIT` at any commit.
# Names that are compared (of ops, attributes, causes), reads of the user's text, thresholds, and returns whose order is the
# meaning, in the files that explain; comments, tests and what is said are left out. With `-v` the lines are listed.
set -eu
list=false
[ "${1:-}" = -v ] && { list=true; shift; }
commit=${1:-}
cd "$(git rev-parse --show-toplevel)"
folders="runtime/src/insight/causes runtime/src/insight/evidence runtime/src/insight/explain"

files() {
    # shellcheck disable=SC2086
    if [ -n "$commit" ]; then git ls-tree -r --name-only "$commit" -- $folders; else git ls-files -- $folders; fi
}

text() {
    if [ -n "$commit" ]; then git show "$commit:$1"; else cat "$1"; fi
}

code() {
    files | grep '\.rs$' | while read -r file; do
        text "$file" | sed -e '/#\[cfg(test)\]/,$d' -e 's|//.*||' | awk -v file="$file" '{ print file ":" NR ": " $0 }'
    done
}

count() {
    found=$(code | grep -E "$2" | { [ -z "$3" ] && cat || grep -vE "$3"; } || true)
    printf '%4d %s\n' "$(printf '%s' "$found" | grep -c . || true)" "$1"
    if $list && [ -n "$found" ]; then printf '%s\n' "$found"; fi
}

count 'names compared' '(==|!=) "|matches!\(.*"|(starts|ends)_with\("|contains\("|contains\(&"|Some\("|^[^"]*"[a-z_.]+"( \| "[a-z_.]+")* =>' ''
count "reads of the user's text" '\<(quote|identity|text_of|line_text|source)\(|\.text\>' ''
count 'thresholds' '(take|>=?|<=?|const [A-Z_]+: [a-z0-9]+ =|\.\.=) ?\(?[0-9]*[3-9]|[^0-9a-z_.][0-9]+\.[0-9]+[^0-9a-z_]*[),;]|take\([0-9]+\)|[^0-9][3-9] \*' '"[^"]*[0-9]+\.[0-9]'
count 'explanations by the order of returns' \
    'return ((Some\()?(say|told|evicted|other_[a-z]+|early_read|roots|environment|call)\(|Some\((claim|Claim)|(why|claim);)' ''
