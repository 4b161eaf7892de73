//! The parts of a cell: Rust, magic lines, and commands.
use crate::eval::text::scan::{Kind, tokens};
use std::ops::Range;

/// Part of a cell, in the order they stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    Code(Range<usize>),
    Magic {
        line: Range<usize>,
        body: Option<Range<usize>>,
    },
    /// `:dep …` and its siblings, as evcxr has them.
    Command(Range<usize>),
}

/// Finds magic lines: `%name` or `!command` where a statement could begin, `%%name` for the whole cell.
/// `!x` is Rust when `x` is known as a name.
pub fn segments(code: &str, known: &dyn Fn(&str) -> bool) -> Vec<Segment> {
    let indent = code.len() - code.trim_start().len();
    if code[indent..].starts_with("%%") {
        let end = code[indent..].find('\n').map_or(code.len(), |i| indent + i);
        return vec![Segment::Magic { line: indent..end, body: Some((end + 1).min(code.len())..code.len()) }];
    }
    let mut out = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while at < code.len() {
        let end = code[at..].find('\n').map_or(code.len(), |i| at + i + 1);
        let command = looks_like_command(&code[at..end]);
        if (command || looks_like_magic(&code[at..end], known)) && statement_could_begin(&code[from..at]) {
            if !code[from..at].trim().is_empty() {
                out.push(Segment::Code(from..at));
            }
            let line = at..code[..end].trim_end_matches('\n').len();
            out.push(if command { Segment::Command(line) } else { Segment::Magic { line, body: None } });
            from = end;
        }
        at = end;
    }
    if !code[from..].trim().is_empty() {
        out.push(Segment::Code(from..code.len()));
    }
    out
}

fn looks_like_command(line: &str) -> bool {
    line.trim_start().strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn looks_like_magic(line: &str, known: &dyn Fn(&str) -> bool) -> bool {
    if let Some(rest) = line.strip_prefix('%') {
        return rest.starts_with(|c: char| c.is_alphabetic()) || rest.trim().is_empty();
    }
    let Some(rest) = line.strip_prefix('!') else { return false };
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    !(name == "matches" || rest.starts_with(['(', '{', '!']) || known(&name))
}

fn statement_could_begin(before: &str) -> bool {
    let tokens = tokens(before);
    if tokens.last().is_some_and(|t| t.open_ended) {
        return false;
    }
    let mut depth = 0;
    for t in &tokens {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            _ => {}
        }
    }
    let last = tokens.iter().rev().find(|t| t.kind != Kind::Comment);
    depth <= 0 && last.is_none_or(|t| matches!(t.kind, Kind::Punct(';') | Kind::Close('}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(code: &str) -> Vec<String> {
        let show = |s: Segment| match s {
            Segment::Code(r) => format!("code {}", code[r].trim()),
            Segment::Command(r) => format!("command {}", &code[r]),
            Segment::Magic { line, body } => format!("magic {} / {}", &code[line], body.map_or("", |b| &code[b])),
        };
        segments(code, &|name| name == "flag").into_iter().map(show).collect()
    }

    #[test]
    fn magics_stand_where_statements_begin() {
        assert_eq!(parts("let a = 1;\n%time a\na"), ["code let a = 1;", "magic %time a / ", "code a"]);
        assert_eq!(parts("%%time 3\na\nb"), ["magic %%time 3 / a\nb"]);
        assert_eq!(parts(":dep a = \"1\"\nuse a::b;"), ["command :dep a = \"1\"", "code use a::b;"]);
        assert_eq!(parts("!ls | wc\n!flag"), ["magic !ls | wc / ", "code !flag"]);
        assert_eq!(parts("let x = a\n% b;"), ["code let x = a\n% b;"]);
        assert_eq!(parts("let s = \"\n%time\n\";"), ["code let s = \"\n%time\n\";"]);
        assert_eq!(parts("f(\n!flag_2,\n)"), ["code f(\n!flag_2,\n)"]);
    }
}
