//! What is in scope, for completion and inspection, and whether a cell is complete.
use crate::engine::{Candidate, Completeness, Completions};
use crate::eval::generate::definitions::Definitions;
use crate::eval::text::scan::{Kind, tokens};
use crate::eval::text::types::short;
use crate::magics;
use xlazy_mime::{Bundle, Var};

/// A copy of what cells can name, to be read while one runs.
#[derive(Clone, Debug, Default)]
pub struct InScope {
    vars: Vec<Var>,
    items: Vec<Named>,
}

#[derive(Clone, Debug)]
struct Named {
    name: String,
    kind: &'static str,
    /// The first line of its definition.
    signature: String,
    source: String,
    origin: String,
}

const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "dyn", "else", "enum", "extern", "false", "fn", "for", "if",
    "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "static", "struct",
    "trait", "true", "type", "unsafe", "use", "where", "while",
];

const MACROS: &[&str] = &[
    "println!",
    "print!",
    "eprintln!",
    "eprint!",
    "dbg!",
    "format!",
    "vec!",
    "assert!",
    "assert_eq!",
    "panic!",
    "todo!",
];

impl InScope {
    pub fn of(vars: &[Var], defs: &Definitions) -> InScope {
        let mut items = Vec::new();
        for (_, item) in defs.items() {
            for name in &item.names {
                let source = item.text().to_owned();
                let signature = source.split(['{', ';', '\n']).next().unwrap_or("").trim().to_owned();
                let kind = kind_of(&source);
                items.push(Named { name: name.clone(), kind, signature, source, origin: item.source.label() });
            }
        }
        for m in &defs.macros {
            let (source, signature) = (m.text.clone(), format!("macro_rules! {}", m.name));
            items.push(Named { name: format!("{}!", m.name), kind: "macro", signature, source, origin: String::new() });
        }
        for u in defs.uses.iter().filter(|u| !u.binds.contains(':')) {
            let (source, signature) = (u.text.clone(), u.text.clone());
            items.push(Named { name: u.binds.clone(), kind: "import", signature, source, origin: String::new() });
        }
        InScope { vars: vars.to_vec(), items }
    }

    pub fn vars(&self) -> &[Var] {
        &self.vars
    }

    pub fn knows(&self, name: &str) -> bool {
        self.vars.iter().any(|v| v.name == name) || self.items.iter().any(|i| i.name.trim_end_matches('!') == name)
    }
}

fn kind_of(source: &str) -> &'static str {
    let words = ["fn", "struct", "enum", "trait", "const", "static", "mod", "type", "union"];
    let kinds = ["function", "struct", "enum", "trait", "constant", "static", "module", "type", "union"];
    let found = tokens(source).into_iter().filter(|t| t.kind == Kind::Ident).find_map(|t| {
        let word = &source[t.range];
        words.iter().position(|w| *w == word)
    });
    found.map_or("item", |i| kinds[i])
}

/// Candidates for the word before the cursor. `runtime` is the runtime's own list, one `name kind detail` a line.
pub fn complete(names: &InScope, runtime: Option<&Bundle>, code: &str, cursor: usize) -> Completions {
    let line_start = code[..cursor].rfind('\n').map_or(0, |i| i + 1);
    let line = &code[line_start..cursor];
    let start = cursor - line.len()
        + line
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |i| i + line[i..].chars().next().map_or(1, char::len_utf8));
    let word = &code[start..cursor];
    let mut matches = Vec::new();
    let mut offer = |text: &str, kind: &str, detail: &str| {
        if text.starts_with(word) && !matches.iter().any(|c: &Candidate| c.text == text) {
            matches.push(Candidate { text: text.into(), kind: kind.into(), detail: detail.into() });
        }
    };
    let percent = line.trim_start();
    if percent.starts_with('%')
        && let Some(words) = magics::candidates(percent)
    {
        let kind = if percent.contains(char::is_whitespace) { "argument" } else { "magic" };
        words.iter().for_each(|word| offer(word, kind, ""));
        return Completions { start, end: cursor, matches };
    }
    let before = code[..start].trim_end();
    let after_dot = before.ends_with('.') && !before.ends_with("..");
    let lines = runtime.map(Bundle::plain).unwrap_or("").lines();
    let runtime = lines.filter_map(|l| {
        let mut parts = l.splitn(3, [' ', '\t']);
        Some((parts.next()?, parts.next().unwrap_or("function"), parts.next().unwrap_or("")))
    });
    if after_dot {
        let receiver = name_at(code, before.len().saturating_sub(1));
        let of = receiver.and_then(|r| names.vars.iter().find(|v| v.name == r));
        of.map(|v| methods_of(&v.type_name)).unwrap_or_default().iter().for_each(|m| offer(m, "method", ""));
        runtime.filter(|(_, kind, _)| *kind == "method").for_each(|(n, k, d)| offer(n, k, d));
    } else {
        names.vars.iter().for_each(|v| offer(&v.name, "variable", &short(&v.type_name)));
        names.items.iter().for_each(|i| offer(&i.name, i.kind, &i.signature));
        runtime.filter(|(_, kind, _)| *kind != "method").for_each(|(n, k, d)| offer(n, k, d));
        MACROS.iter().for_each(|m| offer(m, "macro", ""));
        KEYWORDS.iter().for_each(|k| offer(k, "keyword", ""));
    }
    Completions { start, end: cursor, matches }
}

/// The methods people reach for on common types of the standard library.
fn methods_of(type_name: &str) -> &'static [&'static str] {
    let of = |prefix: &str| type_name.starts_with(prefix);
    if of("alloc::vec::Vec<") {
        &[
            "len",
            "push",
            "pop",
            "iter",
            "iter_mut",
            "into_iter",
            "is_empty",
            "clear",
            "contains",
            "extend",
            "first",
            "get",
            "insert",
            "last",
            "remove",
            "reverse",
            "sort",
            "sort_by",
            "truncate",
            "clone",
        ]
    } else if of("alloc::string::String") || of("&str") {
        &[
            "len",
            "chars",
            "bytes",
            "lines",
            "split",
            "trim",
            "contains",
            "starts_with",
            "ends_with",
            "find",
            "replace",
            "parse",
            "to_string",
            "to_uppercase",
            "to_lowercase",
            "is_empty",
            "push",
            "push_str",
            "clone",
            "as_str",
        ]
    } else if of("std::collections::hash::map::HashMap<") || of("alloc::collections::btree::map::BTreeMap<") {
        &[
            "len",
            "get",
            "get_mut",
            "insert",
            "remove",
            "entry",
            "contains_key",
            "iter",
            "keys",
            "values",
            "is_empty",
            "clear",
            "clone",
        ]
    } else if of("core::option::Option<") {
        &[
            "is_some",
            "is_none",
            "unwrap",
            "expect",
            "unwrap_or",
            "unwrap_or_default",
            "map",
            "and_then",
            "ok_or",
            "as_ref",
            "as_mut",
            "take",
            "clone",
        ]
    } else if of("f32") || of("f64") {
        &[
            "abs", "sqrt", "powi", "powf", "exp", "ln", "sin", "cos", "tan", "tanh", "floor", "ceil", "round", "min",
            "max", "clamp", "is_nan",
        ]
    } else {
        &[]
    }
}

/// The name that the cursor is in or right behind.
pub fn name_at(code: &str, cursor: usize) -> Option<String> {
    let touches = |t: &std::ops::Range<usize>| t.start <= cursor && cursor <= t.end;
    tokens(code).into_iter().find(|t| t.kind == Kind::Ident && touches(&t.range)).map(|t| code[t.range].to_owned())
}

pub fn inspect(names: &InScope, name: &str, detail: u8) -> Option<Bundle> {
    if let Some(v) = names.vars.iter().find(|v| v.name == name) {
        let summary = if v.summary.is_empty() { String::new() } else { format!(" = {}", v.summary) };
        let kind = if v.handle { "a cell works on a copy" } else { "a cell takes it and puts it back" };
        let text = format!("{}: {}{summary}\nfrom cell {}; {kind}", v.name, short(&v.type_name), v.cell);
        return Some(Bundle::text(text));
    }
    let item = names.items.iter().find(|i| i.name.trim_end_matches('!') == name)?;
    let origin = if item.origin.is_empty() { String::new() } else { format!("\nfrom {}", item.origin) };
    let docs: Vec<&str> =
        item.source.lines().filter_map(|l| l.trim_start().strip_prefix("///")).map(str::trim).collect();
    let text = match detail {
        0 => format!(
            "{} {}{}{}{origin}",
            item.kind,
            signature(item),
            if docs.is_empty() { "" } else { "\n\n" },
            docs.join("\n")
        ),
        _ => format!("{}{origin}", item.source),
    };
    Some(Bundle::text(text))
}

/// The signature, behind doc comments and attributes.
fn signature(item: &Named) -> String {
    let code = item.source.lines().find(|l| !l.trim_start().starts_with("//") && !l.trim_start().starts_with("#["));
    code.map_or(item.signature.as_str(), |l| l.split('{').next().unwrap_or(l).trim()).to_owned()
}

pub fn is_complete(code: &str) -> Completeness {
    let trimmed = code.trim_start();
    let is_command = trimmed.starts_with(':') && !trimmed.contains('\n');
    if is_command || trimmed.starts_with(['%', '!']) && !trimmed.starts_with("%%") {
        return Completeness::Complete;
    }
    let all = tokens(code);
    let mut open = Vec::new();
    for t in &all {
        match t.kind {
            Kind::Open(c) => open.push(c),
            Kind::Close(c) => {
                let matching = matches!((open.pop(), c), (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                if !matching {
                    return Completeness::Invalid;
                }
            }
            _ => {}
        }
    }
    /// Nobody sees more of a line.
    const FURTHEST: usize = 20;
    let indent = "    ".repeat(open.len().min(FURTHEST));
    if all.last().is_some_and(|t| t.open_ended) {
        return Completeness::Incomplete(String::new());
    }
    if !open.is_empty() {
        return Completeness::Incomplete(indent);
    }
    let code_tokens: Vec<_> = all.iter().filter(|t| t.kind != Kind::Comment).collect();
    let Some(last) = code_tokens.last() else { return Completeness::Complete };
    let text = &code[last.range.clone()];
    let goes_on = match last.kind {
        Kind::Punct(c) => "=+-*/%^&|<>.,:".contains(c) && !is_end_of_expression(code, &code_tokens),
        Kind::Ident => matches!(
            text,
            "let"
                | "fn"
                | "struct"
                | "enum"
                | "impl"
                | "use"
                | "mod"
                | "trait"
                | "else"
                | "for"
                | "while"
                | "if"
                | "match"
                | "mut"
                | "return_"
        ),
        _ => false,
    };
    if goes_on { Completeness::Incomplete("    ".into()) } else { Completeness::Complete }
}

/// `a..` and a generic's `>` may end an expression or item; `a.` may not.
fn is_end_of_expression(code: &str, tokens: &[&crate::eval::text::scan::Token]) -> bool {
    let end = tokens.last().map_or("", |t| &code[..t.range.end]);
    end.ends_with("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completeness() {
        let incomplete = |s: &str| Completeness::Incomplete(s.into());
        assert_eq!(is_complete("let x = 1;"), Completeness::Complete);
        assert_eq!(is_complete("x"), Completeness::Complete);
        assert_eq!(is_complete("fn f() {"), incomplete("    "));
        assert_eq!(is_complete("let s = \"abc"), incomplete(""));
        assert_eq!(is_complete("/* abc"), incomplete(""));
        assert_eq!(is_complete("let x ="), incomplete("    "));
        assert_eq!(is_complete("x."), incomplete("    "));
        assert_eq!(is_complete("1.."), Completeness::Complete);
        assert_eq!(is_complete("f(]"), Completeness::Invalid);
        assert_eq!(is_complete("%metrics"), Completeness::Complete);
        assert_eq!(is_complete(":dep regex = \"1\""), Completeness::Complete);
        assert_eq!(is_complete("'a'; let c = '{';"), Completeness::Complete);
    }

    #[test]
    fn completion_knows_variables_keywords_and_magics() {
        let var = Var { name: "total".into(), type_name: "alloc::vec::Vec<i32>".into(), ..Var::default() };
        let names = InScope { vars: vec![var], items: Vec::new() };
        let texts = |code: &str| {
            let c = complete(&names, None, code, code.len());
            (c.start, c.matches.into_iter().map(|m| m.text).collect::<Vec<_>>())
        };
        assert_eq!(texts("let y = to"), (8, vec!["total".into(), "todo!".into()]));
        assert_eq!(texts("total.pu"), (6, vec!["push".into()]));
        assert!(texts("%met").1.contains(&"metrics".to_owned()));
    }
}
