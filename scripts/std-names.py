#!/usr/bin/env python3
"""Writes kernel/src/eval/typing/std.txt: the stable public names of Rust's standard library with their signatures, read from
the documentation that the pinned toolchain brings (`rustup component add rust-docs`). Run it when the toolchain changes.

One line each, its first letter says what it is:
  M path              a module; its items follow
  . kind name …       an item of it (kinds as in file names of the documentation), with its signature where it has one
  T kind path         a type or trait; what it has follows: `f field: Type`, `v Variant`, `m fn …`, `c const …`
  I header            an `impl` block's head; its members follow, where they are not the trait's
  = Type              what the type of the `impl Deref` above leads to
  P names             primitive types; the members that follow are theirs
"""
import html
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SYSROOT = subprocess.check_output(["rustc", "--print", "sysroot"], text=True, cwd=ROOT).strip()
STD = Path(SYSROOT) / "share/doc/rust/html/std"
# Hardware, other systems, and what only the compiler calls.
LEFT_OUT = ("arch", "simd", "intrinsics", "os/windows", "os/darwin", "os/macos", "os/wasi", "os/wasip2", "os/android", "autodiff")
NUMBERS = "i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64".split()
# Traits that nobody calls by a method's name: markers, operators, and what the compiler calls.
UNCALLED = set(
    "Copy Eq StructuralPartialEq UseCloned Residual FromResidual Try TrustedLen TrustedStep Unpin UnwindSafe RefUnwindSafe Send "
    "Sync Freeze Drop FusedIterator CoerceUnsized DispatchFromDyn PinCoerceUnsized DerefPure CloneFromCell UnsafeUnpin Step "
    "CloneToUninit Receiver SourceIter InPlaceIterable TrustedRandomAccess TrustedRandomAccessNoCoerce ConstParamTy_ Pattern "
    "UnsizedConstParamTy LegacyReceiver StructuralEq Fn FnMut FnOnce AsyncFn AsyncFnMut AsyncFnOnce BikeshedGuaranteedNoDrop "
    "Add Sub Mul Div Rem Neg Not BitAnd BitOr BitXor Shl Shr AddAssign SubAssign MulAssign DivAssign RemAssign BitAndAssign "
    "BitOrAssign BitXorAssign ShlAssign ShrAssign Index IndexMut PartialEq Debug LowerExp UpperExp LowerHex UpperHex "
    "Octal Binary Pointer IntoAsyncIterator".split()
)
SHAPES = {"slice": "[", "array": "[", "tuple": "(", "unit": "(", "pointer": "*", "reference": "&", "never": "!", "fn": "fn"}


def is_of(kind, name, self_type):
    """Whether an `impl` on a type's page is one of that type."""
    if kind == "primitive" and name in SHAPES:
        return self_type.startswith(SHAPES[name])
    return re.match(rf"{re.escape(name)}\b", self_type) is not None


HEADER = re.compile(
    r'<h(?P<level>[34]) class="code-header">(?P<text>.*?)</h[34]>'
    r'|id="(?P<list>implementations-list|trait-implementations-list|synthetic-implementations-list|blanket-implementations-list'
    r'|deref-methods-[^"]*|implementors-list|implementors|dyn-compatibility|foreign-impls)"'
    r'|<(?P<stab>span|div) class="stab (?:unstable|deprecated)"'
    r'|id="(?P<field>structfield|variant)\.[^"]*"[^>]*class="[^"]*(?:structfield|variant)[^"]*"'
    r'|<code>(?P<code>[a-z_0-9]+: [^\n]*?)</code></span>',
    re.S,
)


def plain(text):
    text = re.sub(r'<span class="since".*?</span>', "", text)
    text = html.unescape(re.sub(r"<[^>]*>", "", text.replace("</div>", " ").replace('<div class="where">', " ")))
    return re.sub(r"\s+", " ", text.replace("ⓘ", "")).strip()


def member(text):
    """`pub const fn push(&mut self)` as `fn push(&mut self)`."""
    text = re.sub(r"^(pub )?(const )?(?:default )?(unsafe )?(?:extern \"[^\"]*\" )?(fn|const|type) ", lambda m: (m[3] or "") + m[4] + " ", text)
    return text.replace(" ,", ",").rstrip(",")


def page(path):
    """What the page of a type or trait says: its own members, and heads of `impl`s with theirs."""
    text = path.read_text(errors="ignore")
    own, impls, blanket, at = [], [], [], "own"
    last = None
    for m in HEADER.finditer(text):
        if m["list"]:
            name = m["list"]
            at = {"implementations-list": "inherent", "trait-implementations-list": "trait",
                  "blanket-implementations-list": "blanket"}.get(name, "other")
            if name == "dyn-compatibility":
                at = "own" if "/trait." in str(path) else at
        elif m["stab"]:
            # Said behind what it is about.
            if last is not None and last[0] == "member":
                last[1].pop()
            elif last is not None:
                # What follows is its, and goes with it.
                last[1][-1] = ("", [], "")
            last = None
        elif m["level"] == "3" and at in ("inherent", "trait", "blanket"):
            head = plain(m["text"])
            group = (head, [], at)
            where = blanket if at == "blanket" else impls
            where.append(group)
            last = ("impl", where)
        elif m["level"] == "3" and at == "own" and "/enum." in str(path):
            own.append(("v", plain(m["text"])))
            last = ("member", own)
        elif m["level"] == "4":
            line = member(plain(m["text"]))
            if at == "own":
                if "/trait." in str(path):
                    own.append(("m" if line.split("fn ")[0] in ("", "unsafe ") and "fn " in line else "c", line))
                    last = ("member", own)
            elif at in ("inherent", "trait", "blanket"):
                where = blanket if at == "blanket" else impls
                if where:
                    where[-1][1].append(line)
                    last = ("member", where[-1][1])
        elif m["code"] and at == "own":
            own.append(("f", plain(m["code"])))
            last = ("member", own)
    stays = lambda groups: [g for g in groups if g[0]]
    return own, stays(impls), stays(blanket), text


def declaration(text):
    found = re.search(r'<pre class="rust item-decl"><code>(.*?)</code></pre>', text, re.S)
    return plain(found[1]) if found else ""


def stable(text):
    head = text.split('id="implementations"')[0].split('class="docblock"')[0][:6000]
    return 'class="stab unstable"' not in head.split("</h1>")[-1][:4000] or "item-info" not in head


def main():
    out = []
    blankets = {}
    shared = defaultdict(list)
    modules = sorted(p for p in STD.rglob("index.html"))
    for index in modules:
        folder = index.parent
        relative = folder.relative_to(STD).as_posix()
        if any(relative == l or relative.startswith(l + "/") for l in LEFT_OUT):
            continue
        module = "std" if relative == "." else "std::" + relative.replace("/", "::")
        if not stable(index.read_text(errors="ignore")):
            continue
        lines, types = [], []
        for child in sorted(folder.iterdir()):
            if child.is_dir() and (child / "index.html").exists():
                inner = child.relative_to(STD).as_posix()
                if inner not in LEFT_OUT and stable((child / "index.html").read_text(errors="ignore")):
                    lines.append(f". mod {child.name}")
                continue
            found = re.fullmatch(r"(struct|enum|union|trait|fn|macro|constant|static|type|primitive)\.(\w+)\.html", child.name)
            if not found or found[1] == "macro" and relative != ".":
                continue
            kind, name = found.groups()
            own, impls, blanket, text = page(child)
            if "http-equiv=\"refresh\"" in text or not stable(text):
                continue
            for head, members, _ in blanket:
                blankets.setdefault(head, members)
            decl = declaration(text)
            if kind == "primitive":
                members = [m for _, ms, at in impls if at == "inherent" for m in ms]
                heads = [(h, ms, at) for h, ms, at in impls]
                if name in NUMBERS:
                    for m in dict.fromkeys(members):
                        shared[re.sub(rf"\b{name}\b", "Self", m)].append(name)
                    heads = [(h, ms, at) for h, ms, at in heads if at == "trait"]
                types.append((kind, name, f"primitive::{name}", own, heads))
                continue
            said = member(decl) if kind == "fn" else decl if kind in ("constant", "static", "type") else ""
            lines.append(f". {kind} {name}" + (f" {said}" if said else ""))
            if kind in ("struct", "enum", "union", "trait"):
                types.append((kind, name, f"{module}::{name}", own, impls))
        out.append(f"M {module}")
        out.extend(lines)
        for kind, name, path, own, impls in types:
            out.append(f"T {kind} {path}")
            out.extend(f"{letter} {line}" for letter, line in own)
            if kind == "trait":
                continue
            seen = set()
            for head, members, at in impls:
                if at == "trait":
                    bare = re.sub(r" where .*", "", head)
                    if "#[" in head or re.match(r"^impl(<.*?>)? !", head):
                        continue
                    found = re.match(r"^(impl(?:<.*>)? )?.*? for (.*)$", bare)
                    trait = re.sub(r"[<(].*", "", re.sub(r"^impl(?:<(?:[^<>]|<[^<>]*>)*>)? (?:const )?", "", bare).split(" for ")[0])
                    key = (trait, re.sub(r"\d+", "N", found[2]) if found else "")
                    if key in seen or trait in UNCALLED or not found or "₁" in head or not is_of(kind, name, found[2]):
                        continue
                    seen.add(key)
                    out.append(f"I {head}")
                    target = next((m for m in members if m.startswith("type Target = ")), None)
                    if trait == "Deref" and target:
                        out.append(f"= {target.removeprefix('type Target = ')}")
                elif members:
                    out.append(f"I {head}")
                    out.extend(("c " if m.startswith("const ") else "m ") + m for m in members if "fn " in m or m.startswith("const "))
    for names, lines in sorted(((tuple(n), m) for m, n in shared.items()), key=lambda x: x[0]):
        out.append(f"P {' '.join(names)}\n" + ("c " if lines.startswith("const ") else "m ") + lines)
    merged, last = [], None
    for line in out:
        if line.startswith("P "):
            head, rest = line.split("\n")
            merged.extend([rest] if head == last else [head, rest])
            last = head
        else:
            merged.append(line)
    # For any type at all, as long as its bounds hold.
    merged.append("M blanket")
    for head in sorted(blankets):
        trait = re.sub(r"<.*", "", re.sub(r"^impl(?:<(?:[^<>]|<[^<>]*>)*>)? ", "", head).split(" for ")[0])
        if trait not in UNCALLED and "FnPtr" not in head and "<!>" not in head and "NonZero" not in head:
            merged.append(f"I {head}")
    text = "\n".join(merged) + "\n"
    (ROOT / "kernel/src/eval/typing/std.txt").write_text(text)
    print(f"{len(merged)} lines, {len(text) // 1024} KiB", file=sys.stderr)


main()
