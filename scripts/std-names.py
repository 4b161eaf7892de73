#!/usr/bin/env python3
"""Writes kernel/src/eval/typing/std.txt: the stable public names of Rust's standard library with their signatures and what is
said of them, read from the documentation that the pinned toolchain brings (`rustup component add rust-docs`). Run it when the toolchain changes.

One line each, its first letter says what it is (`#`: a comment):
  M path              a module; its items follow
  . kind name …       an item of it (kinds as in file names of the documentation), with its signature where it has one;
                      `use`: an item of another module, with its path
  T kind path         a type or trait; what it has follows: `f field: Type`, `v Variant`, `m fn …`, `c const …`
  ^ Trait Trait       the traits above a trait
  I header            an `impl` block's head; its members follow, where they are not the trait's
  = Type              what the type of the `impl Deref` above leads to
  P names             primitive types; the members that follow are theirs
  K word              a keyword
  d text              a line of documentation of what stands above: the first paragraph, and the first short example
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
    r'|<code>(?P<code>[a-z_0-9]+: [^\n]*?)</code></span>'
    r'|(?P<doc><div class="docblock[^"]*">)',
    re.S,
)


def plain(text):
    text = re.sub(r'<span class="since".*?</span>', "", text)
    text = html.unescape(re.sub(r"<[^>]*>", "", text.replace("</div>", " ").replace('<div class="where">', " ")))
    text = re.sub(r"\s+", " ", text.replace("ⓘ", "")).strip()
    # Arguments on lines of their own, on one.
    return re.sub(r",? ([)\]])", r"\1", re.sub(r"([(\[]) ", r"\1", text))


def member(text):
    """`pub const fn push(&mut self)` as `fn push(&mut self)`."""
    text = re.sub(r"^(pub )?(const )?(?:default )?(unsafe )?(?:extern \"[^\"]*\" )?(fn|const|type) ", lambda m: (m[3] or "") + m[4] + " ", text)
    return text.replace(" ,", ",").rstrip(",")


class Line(str):
    """A line of the table with its documentation."""

    doc = ""


def documented(line, doc):
    line = Line(line)
    line.doc = doc
    return line


LONGEST_EXAMPLE = 14
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
MARKS = {"code": "`", "em": "*", "strong": "**", "i": "*", "b": "**"}


def said(text, start):
    """The first paragraph of the documentation that begins there, as Markdown, and its first short example that runs."""
    depth, end = 0, len(text)
    for m in re.compile(r"<(/?)div\b").finditer(text, start):
        depth += -1 if m[1] else 1
        if depth == 0:
            end = m.start()
            break
    block = text[start:end]
    paragraph = re.search(r"<p>(.*?)</p>", block, re.S)
    if not paragraph:
        return ""
    mark = lambda m: MARKS.get(m[1], "")
    # Powers; what else is written so leads to footnotes.
    raised = lambda m: m[1].translate(RAISED) if m[1].isdigit() else m[1] if m[1] == "th" else f"^{m[1]}"
    words = re.sub(r"<sup>(.*?)</sup>", raised, paragraph[1], flags=re.S)
    words = re.sub(r"<sup .*?</sup>", "", words, flags=re.S)
    words = html.unescape(re.sub(r"</?(\w+)[^>]*>", mark, words))
    out = re.sub(r"\s+", " ", words).strip()
    for example in re.finditer(r'<pre class="rust rust-example-rendered"><code>(.*?)</code></pre>', block, re.S):
        code = html.unescape(re.sub(r"<[^>]*>", "", example[1])).rstrip().replace("\u00a0", " ")
        if len(code.splitlines()) <= LONGEST_EXAMPLE:
            return f"{out}\n\n```rust\n{code}\n```"
    return out


def top(text):
    """What is said of the page's own item."""
    at = text.find('class="toggle top-doc"')
    at = text.find('<div class="docblock', at) if at >= 0 else -1
    return said(text, at) if at >= 0 else ""


def page(path):
    """What the page of a type or trait says: its own members, and heads of `impl`s with theirs."""
    text = path.read_text(errors="ignore")
    own, impls, blanket, at = [], [], [], "own"
    last = None
    for m in HEADER.finditer(text):
        if m["doc"]:
            # What is said of a member stands right behind it.
            if last is not None and last[0] == "member":
                line = last[1][-1]
                doc = said(text, m.start())
                last[1][-1] = documented(line, doc) if isinstance(line, str) else (line[0], documented(line[1], doc))
            last = None
        elif m["list"]:
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


def above(decl):
    """The traits that a trait's declaration names behind its colon, but for markers."""
    found = re.match(r"pub (?:unsafe )?trait \w+(?:<[^{]*?>)?: ([^{]*?) (?:where|\{)", decl)
    names = [re.sub(r"[<(].*", "", name) for name in found[1].split(" + ")] if found else []
    return [name for name in names if name not in UNCALLED and name not in ("Sized", "Sealed") and re.fullmatch(r"\w+", name)]


def stable(text):
    head = text.split('id="implementations"')[0].split('class="docblock"')[0][:6000]
    return 'class="stab unstable"' not in head.split("</h1>")[-1][:4000] or "item-info" not in head


def main():
    out = []
    blankets = {}
    shared = defaultdict(list)
    shared_docs = {}
    aboves = {}
    keywords = []

    def put(line, doc=None):
        out.append(str(line))
        doc = getattr(line, "doc", "") if doc is None else doc
        out.extend(f"d {l}".rstrip() for l in doc.split("\n") if doc)

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
                    lines.append(documented(f". mod {child.name}", top((child / "index.html").read_text(errors="ignore"))))
                continue
            keyword = re.fullmatch(r"keyword\.(\w+)\.html", child.name)
            if keyword:
                keywords.append((keyword[1].replace("SelfTy", "Self"), top(child.read_text(errors="ignore"))))
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
                        # The commonest types' words for all, but where they are of the type's own numbers.
                        general = lambda text: re.sub(rf"(?:\b|(?<=\d)|(?<=\d_)){name}\b", "Self", text)
                        doc = general(getattr(m, "doc", ""))
                        key = (general(m), doc if m.startswith("const ") else "")
                        shared[key].append(name)
                        if name in ("i32", "u32", "f64") or key not in shared_docs:
                            shared_docs[key] = doc
                    heads = [(h, ms, at) for h, ms, at in heads if at == "trait"]
                types.append((kind, name, f"primitive::{name}", own, heads, top(text)))
                continue
            signature = member(decl) if kind == "fn" else decl if kind in ("constant", "static", "type") else ""
            is_type = kind in ("struct", "enum", "union", "trait")
            line = f". {kind} {name}" + (f" {signature}" if signature else "")
            lines.append(documented(line, "" if is_type else top(text)))
            if is_type:
                types.append((kind, name, f"{module}::{name}", own, impls, top(text)))
                aboves[f"{module}::{name}"] = above(decl) if kind == "trait" else []
        # What a module has of another; preludes that everybody has are no module that people go through.
        if not module.startswith(("std::prelude", "std::primitive")):
            reexport = re.compile(r'id="reexport\.\w+".*?title="(?:trait|struct|enum|fn|macro|type) (std::[\w:]+)"')
            there = {line.split()[2] for line in lines}
            for path in reexport.findall(index.read_text(errors="ignore")):
                name = path.rsplit("::", 1)[1]
                if name not in there:
                    there.add(name)
                    lines.append(f". use {name} {path}")
        out.append(f"M {module}")
        for line in lines:
            put(line)
        for kind, name, path, own, impls, doc in types:
            put(f"T {kind} {path}", doc)
            if supertraits := aboves.get(path):
                out.append(f"^ {' '.join(supertraits)}")
            for letter, line in own:
                put(f"{letter} {line}", getattr(line, "doc", ""))
            if kind == "trait":
                continue
            seen = set()
            for head, members, at in impls:
                if at == "trait":
                    bare = re.sub(r" where .*", "", head)
                    if "#[" in head or re.match(r"^impl(<.*?>)? !", head):
                        continue
                    found = re.match(r"^(impl(?:<.*>)? )?.*? for (.*)$", bare)
                    trait = re.sub(r"[<(].*", "", re.sub(r"^impl(?:<(?:->|[^<>]|<[^<>]*>)*>)? (?:const )?", "", bare).split(" for ")[0])
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
                    for m in members:
                        if "fn " in m or m.startswith("const "):
                            put(("c " if m.startswith("const ") else "m ") + m, getattr(m, "doc", ""))
    last = None
    for names, key in sorted(((tuple(n), m) for m, n in shared.items()), key=lambda x: x[0]):
        if names != last:
            out.append(f"P {' '.join(names)}")
        last = names
        put(("c " if key[0].startswith("const ") else "m ") + key[0], shared_docs[key])
    for word, doc in keywords:
        put(f"K {word}", doc)
    # For any type at all, as long as its bounds hold.
    out.append("M blanket")
    for head in sorted(blankets):
        trait = re.sub(r"<.*", "", re.sub(r"^impl(?:<(?:->|[^<>]|<[^<>]*>)*>)? ", "", head).split(" for ")[0])
        if trait not in UNCALLED and "FnPtr" not in head and "<!>" not in head and "NonZero" not in head:
            out.append(f"I {head}")
    version = subprocess.check_output(["rustc", "--version"], text=True, cwd=ROOT).split()[1]
    head = f"# Of the documentation of Rust {version}'s standard library (MIT or Apache-2.0), by scripts/std-names.py"
    text = "\n".join([head, *out]) + "\n"
    (ROOT / "kernel/src/eval/typing/std.txt").write_text(text)
    print(f"{len(out)} lines, {len(text) // 1024} KiB", file=sys.stderr)


main()
