//! StableHLO text as it comes: shapes that no TPU program may have, the largest values, where each line is from.
use super::report::{Held, Source};
use std::collections::HashMap;
use xlazy_core::ir::{Mark, located};
use xlazy_core::text;

/// The file that locations of our own programs name; the line is then the number of the mark. A program's text so stays the
/// same whichever cell it was written in, and with it its place in the cache.
const OURS: &str = "xlazy";

/// Adds to each line which op of the user's program it is from.
pub(crate) fn with_locations(text: &str, marks: &[Mark]) -> String {
    located(text, marks, |n| format!("\"{}\"(\"{OURS}\":{n}:0)", marks[n].op.name))
}

/// The number of the mark that a location of our own programs names.
pub(super) fn mark(at: &str) -> Option<usize> {
    at.strip_prefix(OURS)?.strip_prefix(':')?.parse().ok()
}

/// Puts locations of our own programs in the user's terms.
pub(super) fn resolve<'a>(sources: impl Iterator<Item = &'a mut Source>, marks: &[Mark]) {
    for source in sources {
        if let Some(mark) = mark(&source.at).and_then(|n| marks.get(n)) {
            *source = Source { op: mark.op.name.to_owned(), at: text::location(mark.at) };
        }
    }
}

/// The text of a program, unless it is MLIR bytecode.
pub(super) fn text(program: &[u8]) -> Option<&str> {
    std::str::from_utf8(program).ok().filter(|t| !t.starts_with("ML\u{ef}R"))
}

/// The first type with a size that is not known, with its line. libtpu aborts at one.
pub(super) fn dynamic_shape(text: &str) -> Option<(usize, &str)> {
    text.lines().enumerate().find_map(|(n, line)| {
        let code = line.split(" // ").next().unwrap_or(line);
        types(code).find(|t| t.contains('?')).map(|t| (n + 1, t))
    })
}

/// Everything between `tensor<` and the `>` that ends it.
pub(crate) fn types(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("tensor<").filter_map(move |(at, word)| {
        let inner = &text[at + word.len()..];
        let mut open = 1;
        let end = inner.find(|c| {
            open += (c == '<') as i32 - (c == '>') as i32;
            open == 0
        })?;
        Some(&inner[..end])
    })
}

/// Bytes of `2x3xf32`, without any padding; `None` for a type that is no array of numbers.
pub(crate) fn bytes(ty: &str) -> Option<u64> {
    let ty = ty.split(',').next()?;
    let mut elements: u64 = 1;
    let mut rest = ty;
    while let Some((dim, tail)) = rest.split_once('x').filter(|(d, _)| d.parse::<u64>().is_ok()) {
        elements = elements.saturating_mul(dim.parse().ok()?);
        rest = tail;
    }
    let (parts, element) = match rest.strip_prefix("complex<") {
        Some(inner) => (2, inner.trim_end_matches('>')),
        None => (1, rest),
    };
    let digits = element.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next()?;
    let bits: u64 = digits.parse::<u64>().ok()?.max(4);
    let bits = if element == "i1" { 8 } else { bits };
    Some(elements.saturating_mul(bits * parts).div_ceil(8))
}

/// What a program's text tells of its memory: bytes of arguments and results of `main`, and the largest values.
#[derive(Default)]
pub(super) struct Sizes {
    pub arguments: u64,
    pub outputs: u64,
    pub largest: Vec<Held>,
}

const LARGEST: usize = 8;

pub(super) fn sizes(text: &str) -> Sizes {
    let locations = Locations::read(text);
    let mut out = Sizes::default();
    let mut held: Vec<Held> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("func.func") && line.contains("@main") {
            let (arguments, results) = line.split_once("->").unwrap_or((line, ""));
            out.outputs = types(results).filter_map(bytes).sum();
            for part in arguments.split('%').skip(1) {
                let name = part.split([':', ' ']).next().unwrap_or_default();
                for ty in types(part) {
                    let bytes = bytes(ty).unwrap_or(0);
                    out.arguments += bytes;
                    let sources = vec![Source { op: "argument".into(), at: String::new() }];
                    held.push(Held { name: format!("%{name}"), shape: ty.to_owned(), bytes, sources });
                }
            }
        } else if let Some((name, right)) = line.split_once(" = ").filter(|(n, _)| n.starts_with('%')) {
            let (code, location) = right.rsplit_once(" loc(").unwrap_or((right, ""));
            let result = code.rsplit_once("->").or(code.rsplit_once(" : ")).map_or("", |(_, ty)| ty);
            let op = right.trim_start_matches('"').split(['"', '(', ' ', '{']).next().unwrap_or_default();
            let mut source = locations.source(location.trim_end_matches(')'), 0);
            if source.op.is_empty() {
                source.op = op.rsplit('.').next().unwrap_or(op).to_owned();
            }
            for ty in types(result) {
                let bytes = bytes(ty).unwrap_or(0);
                held.push(Held { name: name.to_owned(), shape: ty.to_owned(), bytes, sources: vec![source.clone()] });
            }
        }
    }
    held.sort_by_key(|h| std::cmp::Reverse(h.bytes));
    // One op of the user's may stand for many of the program's, all of one size.
    let mut seen = std::collections::HashSet::new();
    held.retain(|h| h.sources[0].at.is_empty() || seen.insert((h.shape.clone(), h.sources[0].clone())));
    held.truncate(LARGEST);
    out.largest = held;
    out
}

/// `#loc3 = loc(…)`: names for locations, which big programs are full of.
struct Locations<'a>(HashMap<&'a str, &'a str>);

impl<'a> Locations<'a> {
    fn read(text: &'a str) -> Locations<'a> {
        let alias = |line: &'a str| {
            let (name, rest) = line.strip_prefix("#loc").map(|_| line)?.split_once(" = loc(")?;
            Some((name, rest.strip_suffix(')')?))
        };
        Locations(text.lines().filter_map(alias).collect())
    }

    /// The inside of a `loc(…)`: `"op"("file":3:0)`, `"file":3:0`, `#loc7`, `callsite(… at …)`.
    fn source(&self, location: &str, depth: usize) -> Source {
        const DEEPEST: usize = 16;
        let location = location.trim();
        if depth > DEEPEST {
            return Source::default();
        }
        if let Some(inner) = location.strip_prefix("callsite(") {
            return self.source(inner.split(" at ").next().unwrap_or(inner), depth + 1);
        }
        if location.starts_with('#') {
            let name = location.split([')', ' ', ',']).next().unwrap_or(location);
            return self.0.get(name).map_or_else(Source::default, |l| self.source(l, depth + 1));
        }
        let Some((text, rest)) = location.strip_prefix('"').and_then(|l| l.split_once('"')) else {
            return Source::default();
        };
        match rest.strip_prefix(':') {
            Some(line) => {
                let line = line.split(':').next().unwrap_or(line);
                Source { op: String::new(), at: format!("{text}:{line}") }
            }
            None => {
                let inner = rest.strip_prefix('(').map_or_else(Source::default, |l| self.source(l, depth + 1));
                Source { op: text.to_owned(), at: inner.at }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn dynamic_sizes_are_found_where_they_are() {
        let text = "func.func @main(%a: tensor<4xf32>) {\n  %1 = f(%a) : (tensor<4xf32>) -> tensor<?x4xf32>\n";
        assert_eq!(dynamic_shape(text), Some((2, "?x4xf32")));
        let bounded = "%1 = f() : tensor<?xf32, #stablehlo.bounds<4>>";
        assert_eq!(dynamic_shape(bounded), Some((1, "?xf32, #stablehlo.bounds<4>")));
        assert_eq!(dynamic_shape("%1 = f() : tensor<4xcomplex<f32>> // tensor<?xf32>"), None);
    }

    #[test]
    fn sizes_follow_from_types() {
        let cases = [("2x3xf32", 24), ("f64", 8), ("4xi1", 4), ("8xui8", 8), ("3xi4", 2), ("2xcomplex<f32>", 16)];
        for (ty, expected) in cases {
            assert_eq!(bytes(ty), Some(expected), "{ty}");
        }
        assert_eq!((bytes("5xbf16"), bytes("4xf8E4M3FN"), bytes("!stablehlo.token")), (Some(10), Some(4), None));
    }

    #[test]
    fn the_largest_values_come_with_their_lines() {
        let text = r##"#loc1 = loc("net.py":7:3)
#loc2 = loc("jit(f)/dot"(#loc1))
module @m {
  func.func public @main(%arg0: tensor<8x8xf32> loc("x"), %arg1: tensor<8x4xf32>) -> (tensor<8x4xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> loc(#loc2)
    %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 1, 2>} : (tensor<8x4xf32>) -> tensor<9x8x4xf32> loc("grow"("cell 3":2:0))
    %2 = stablehlo.tanh %0 : tensor<8x4xf32> loc("a.py":1:1)
    return %2 : tensor<8x4xf32>
  }
}
"##;
        let sizes = sizes(text);
        assert_eq!((sizes.arguments, sizes.outputs), (256 + 128, 128));
        let lines: String =
            sizes.largest.iter().map(|h| format!("{} {} {} {:?}\n", h.bytes, h.name, h.shape, h.sources)).collect();
        expect![[r#"
            1152 %1 9x8x4xf32 [Source { op: "grow", at: "cell 3:2" }]
            256 %arg0 8x8xf32 [Source { op: "argument", at: "" }]
            128 %arg1 8x4xf32 [Source { op: "argument", at: "" }]
            128 %0 8x4xf32 [Source { op: "jit(f)/dot", at: "net.py:7" }]
            128 %2 8x4xf32 [Source { op: "tanh", at: "a.py:1" }]
        "#]]
        .assert_eq(&lines);
    }
}
