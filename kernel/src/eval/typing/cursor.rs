//! What stands at the cursor, read from tokens: the code is still being typed.
use super::before::{angle_before, before_is, enclosing, path_before};
use super::lets;
use super::place::{self, Arm, Body};
use super::words::{ATTRIBUTES, CONDITIONS, FRAGMENTS, KEYWORDS, LAYOUTS, LINTS};
use crate::eval::text::scan::{Kind, Token, tokens};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// In a comment, a string, a number, behind a word that begins a new name.
    Nothing,
    /// Behind a dot.
    Member,
    /// Behind `a::b::`.
    Path(Vec<String>),
    /// A field's name between the braces of this path.
    Field(Vec<String>, Vec<String>),
    /// A trait to derive.
    Derive,
    /// One of the words that the language has there, and what they are: attributes, lints.
    OneOf(&'static [&'static str], &'static str),
    /// Where a type stands.
    Type,
    /// A name in an expression.
    Name,
    /// A name in the braces of a format string.
    Formatted,
    /// A file's, in a literal whose text begins there.
    File(usize),
    /// A lifetime.
    Lifetime,
    /// A loop's, behind `break` or `continue`.
    Label,
    /// A name in the pattern of a `let` or a loop: a new one, or what can be matched.
    Pattern,
    /// The same of an arm of a `match`.
    Arm(Arm),
    /// An item in the braces of a module, a trait, or an `impl`.
    Item(Body),
    /// What of a trait's an `impl` of it defines: the trait, the word in front (`fn`, `const`, `type`), what is there already.
    Defined(Vec<String>, String, Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    /// The word before the cursor.
    pub word: Range<usize>,
    pub what: What,
    /// It stands in a `use`.
    pub import: bool,
}

/// Words behind which a new name stands.
const NAMES: &[&str] = &["fn", "struct", "enum", "union", "trait", "mod", "type", "const", "static", "macro_rules"];

pub fn read(code: &str, cursor: usize) -> Cursor {
    let before = &code[..cursor];
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_alphanumeric() || *c == '_')
        .last()
        .map_or(cursor, |(i, _)| i);
    let word = start..cursor;
    let all = tokens(before);
    // What stands before the word.
    let known: Vec<&Token> = all.iter().filter(|t| t.range.end <= start && t.kind != Kind::Comment).collect();
    let nothing = |what| Cursor { word: word.clone(), what, import: false };
    if let Some(inside) = all.iter().find(|t| t.range.start < cursor && t.range.end >= cursor) {
        let number = inside.kind == Kind::Number && !before_is(code, &known, ".") && !is_dot(code, &known);
        match inside.kind {
            Kind::Comment if inside.open_ended || !before[inside.range.clone()].starts_with("/*") => {
                return nothing(What::Nothing);
            }
            Kind::Literal if inside.open_ended => {
                let text = &before[inside.range.clone()];
                let open =
                    text.rfind('{').filter(|i| text[i + 1..] == before[word.clone()] && !text[..*i].ends_with('{'));
                let within = || {
                    text.find('"').map(|i| inside.range.start + i + 1).filter(|at| is_path(code, &known, *at, cursor))
                };
                return nothing(match open {
                    Some(_) => What::Formatted,
                    None => within().map_or(What::Nothing, What::File),
                });
            }
            Kind::Lifetime => {
                let jumps = before_is(code, &known, "break") || before_is(code, &known, "continue");
                let what = if jumps { What::Label } else { What::Lifetime };
                return Cursor { word: inside.range.clone(), what, import: false };
            }
            // `x.0.` is a field's name and a dot to whoever reads on.
            Kind::Number if number => return nothing(What::Nothing),
            _ => {}
        }
    }
    let text = |t: &Token| &code[t.range.clone()];
    let import = in_use(code, &known);
    let what = match known.last() {
        _ if import => What::Path(use_path(code, &known)),
        Some(t) if is_dot(code, &known) && text(t).ends_with('.') => What::Member,
        Some(t) if text(t) == ":" && before_is(code, &known[..known.len() - 1], ":") => {
            match path_before(code, &known[..known.len() - 2]) {
                path if path.is_empty() => What::Nothing,
                path => What::Path(path),
            }
        }
        Some(_) if let Some(arm) = lets::refutable(code, &known, cursor) => {
            fields(code, &known).unwrap_or(What::Arm(arm))
        }
        Some(t) if t.kind == Kind::Ident && NAMES.contains(&text(t)) => {
            defined(code, &known[..known.len() - 1], text(t)).unwrap_or(What::Nothing)
        }
        Some(t) if text(t) == "mut" && before_is(code, &known[..known.len() - 1], "let") => What::Nothing,
        Some(t) if text(t) == "let" && word.is_empty() => What::Nothing,
        Some(_) if names_a_field(code, &known) || place::names_a_parameter(code, &known) => What::Nothing,
        Some(_) if in_pattern(code, &known) || place::begins_parameter(code, &known) => {
            fields(code, &known).unwrap_or(What::Pattern)
        }
        _ if in_attribute(code, &known, "derive") => What::Derive,
        _ if ["allow", "warn", "deny", "expect"].iter().any(|a| in_attribute(code, &known, a)) => {
            What::OneOf(LINTS, "lint")
        }
        _ if in_attribute(code, &known, "cfg") => What::OneOf(CONDITIONS, "condition"),
        _ if in_attribute(code, &known, "repr") => What::OneOf(LAYOUTS, "layout"),
        Some(t) if text(t) == ":" && known.len() > 2 && before_is(code, &known[..known.len() - 2], "$") => {
            What::OneOf(FRAGMENTS, "fragment")
        }
        Some(t) if text(t) == "[" && before_is(code, without_bang(code, &known[..known.len() - 1]), "#") => {
            What::OneOf(ATTRIBUTES, "attribute")
        }
        Some(_) if place::takes_type(code, &known) => What::Type,
        _ => {
            let defined = || place::takes_item(code, &known).map(|body| item(code, &known, body));
            let arm = || place::arm(code, &known).map(What::Arm);
            fields(code, &known).or_else(defined).or_else(arm).unwrap_or(What::Name)
        }
    };
    // A number that is being typed.
    let digits = code[word.clone()].starts_with(|c: char| c.is_ascii_digit());
    let what = if digits && what != What::Member { What::Nothing } else { what };
    Cursor { word, what, import }
}

/// Whether a literal names a file: it has a folder in it, or is given to what opens files.
fn is_path(code: &str, known: &[&Token], from: usize, cursor: usize) -> bool {
    let opens = || {
        let called = known.split_last().filter(|(t, _)| t.kind == Kind::Open('('));
        let path = called.map(|(_, before)| path_before(code, before)).unwrap_or_default();
        path.iter().any(|p| matches!(&**p, "File" | "Path" | "PathBuf" | "fs" | "include_str" | "include_bytes"))
    };
    let text = &code[from..cursor];
    !text.contains(char::is_whitespace) && (text.contains('/') && !text.contains("//") || opens())
}

/// Behind one dot: that of a range is no other, and `x.0.` ends like a number.
fn is_dot(code: &str, known: &[&Token]) -> bool {
    let [.., last] = known else { return false };
    match last.kind {
        Kind::Number => code[last.range.clone()].ends_with('.') && before_is(code, &known[..known.len() - 1], "."),
        Kind::Punct('.') => {
            let two = known.len() > 1 && known[known.len() - 2].range.end == last.range.start;
            !(two && before_is(code, &known[..known.len() - 1], "."))
        }
        _ => false,
    }
}

fn in_use(code: &str, known: &[&Token]) -> bool {
    let mut open = 0;
    for t in known.iter().rev() {
        match (t.kind, &code[t.range.clone()]) {
            (Kind::Close('}'), _) => open += 1,
            (Kind::Open('{'), _) => open -= 1,
            (Kind::Ident, "use") => return open <= 0,
            (Kind::Ident, _) | (Kind::Punct(':' | ',' | '*'), _) => {}
            _ => return false,
        }
    }
    false
}

/// The path that the word at the cursor continues in a `use`, groups included.
fn use_path(code: &str, known: &[&Token]) -> Vec<String> {
    let from = known.iter().rposition(|t| &code[t.range.clone()] == "use").map_or(0, |i| i + 1);
    let (mut path, mut groups): (Vec<String>, Vec<Vec<String>>) = Default::default();
    for t in &known[from..] {
        match t.kind {
            Kind::Ident => path.push(code[t.range.clone()].to_owned()),
            Kind::Open('{') => groups.push(path.clone()),
            Kind::Punct(',') => path = groups.last().cloned().unwrap_or_default(),
            Kind::Close('}') => {
                groups.pop();
            }
            _ => {}
        }
    }
    path
}

/// Between the parentheses of the attribute of that name.
fn in_attribute(code: &str, known: &[&Token], name: &str) -> bool {
    let open = enclosing(known).filter(|i| known[*i].kind == Kind::Open('('));
    open.is_some_and(|i| before_is(code, &known[..i], name) && i > 1 && before_is(code, &known[..i - 1], "["))
}

/// `#![` is as `#[`.
fn without_bang<'a, 'b>(code: &str, known: &'a [&'b Token]) -> &'a [&'b Token] {
    if before_is(code, known, "!") { &known[..known.len() - 1] } else { known }
}

/// A field's name in a struct's literal or pattern, with those that are there already.
fn fields(code: &str, known: &[&Token]) -> Option<What> {
    let (path, open) = place::literal(code, known)?;
    let mut depth = 0;
    let mut there = Vec::new();
    for (i, t) in known.iter().enumerate().skip(open + 1) {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            Kind::Ident if depth == 0 && matches!(known[i - 1].kind, Kind::Open('{') | Kind::Punct(',')) => {
                there.push(code[t.range.clone()].to_owned());
            }
            _ => {}
        }
    }
    Some(What::Field(path, there))
}

/// An item that may begin there: in an `impl` of a trait one of the trait's.
fn item(code: &str, known: &[&Token], body: Body) -> What {
    defined(code, known, "").filter(|_| body == Body::Impl).unwrap_or(What::Item(body))
}

/// Behind a `fn` in an `impl` of a trait.
fn defined(code: &str, known: &[&Token], word: &str) -> Option<What> {
    let text = |i: usize| &code[known[i].range.clone()];
    let open = enclosing(known).filter(|i| known[*i].kind == Kind::Open('{'))?;
    let start = place::head_of(known, open);
    let of = (start..open).rev().find(|i| text(*i) == "for" && text(i + 1) != "<")?;
    let path = path_before(code, &known[start..of]);
    (text(start) == "impl" || text(start) == "unsafe").then_some(())?;
    let named = |i: usize| matches!(text(i), "fn" | "const" | "type") && known[i + 1].kind == Kind::Ident;
    let there = (open + 1..known.len().saturating_sub(1)).filter(|i| named(*i)).map(|i| text(i + 1).to_owned());
    Some(What::Defined(path, word.to_owned(), there.collect())).filter(|_| matches!(word, "" | "fn" | "const" | "type"))
}

/// Where a field or a variant of a type that is being defined is named.
fn names_a_field(code: &str, known: &[&Token]) -> bool {
    let text = |i: usize| &code[known[i].range.clone()];
    let Some(open) = enclosing(known).filter(|i| known[*i].kind == Kind::Open('{')) else { return false };
    let word = |i: usize| matches!(text(i), "struct" | "enum" | "union") && known[i + 1].kind == Kind::Ident;
    let defines = (place::head_of(known, open)..open).any(word) || place::defines_a_variant(code, known, open);
    // Commas in a type's arguments part no fields.
    let angles = |t: &&&Token| t.kind == Kind::Punct('<');
    let closes = |t: &&&Token| t.kind == Kind::Punct('>');
    let inside = &known[open + 1..];
    let even = inside.iter().filter(angles).count() == inside.iter().filter(closes).count();
    defines && even && matches!(text(known.len() - 1), "{" | "," | "pub")
}

/// Between a `let`, a `for` or a closure's `|` and what follows its pattern.
fn in_pattern(code: &str, known: &[&Token]) -> bool {
    let mut bars = 0;
    for (i, t) in known.iter().enumerate().rev() {
        match (t.kind, &code[t.range.clone()]) {
            (Kind::Ident, "let") => return true,
            // Not that of `impl A for B`.
            (Kind::Ident, "for") => return place::heads(code, known, i) != Some("impl"),
            (Kind::Ident, "mut" | "ref") | (Kind::Open('(' | '[') | Kind::Close(_), _) => {}
            (Kind::Ident, word) if KEYWORDS.contains(&word) => return false,
            (Kind::Punct('|'), _) if place::begins_closures_parameters(code, known, i) => return bars == 0,
            (Kind::Punct('|'), _) => bars += 1,
            (Kind::Ident, _) | (Kind::Punct(',' | '&' | '@'), _) => {}
            _ => return false,
        }
    }
    false
}

/// What is called by a macro that the cursor is inside of, with its name and its mark.
pub fn macro_around(code: &str, cursor: usize) -> Option<Range<usize>> {
    let all = tokens(&code[..cursor]);
    let mut known: Vec<&Token> = all.iter().filter(|t| t.kind != Kind::Comment).collect();
    while let Some(open) = enclosing(&known) {
        if open > 1 && before_is(code, &known[..open], "!") && known[open - 2].kind == Kind::Ident {
            return (known[open].kind == Kind::Open('(')).then(|| known[open - 2].range.start..known[open].range.start);
        }
        known.truncate(open);
    }
    None
}

/// A call that the cursor is inside of.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The last word of what is called.
    pub name: Range<usize>,
    /// Behind a dot.
    pub method: bool,
    /// The path of a function.
    pub path: Vec<String>,
    /// A macro.
    pub bang: bool,
    /// Which argument the cursor is at.
    pub argument: usize,
}

/// The innermost call around the cursor.
pub fn call(code: &str, cursor: usize) -> Option<Call> {
    let all = tokens(&code[..cursor]);
    let known: Vec<&Token> = all.iter().filter(|t| t.kind != Kind::Comment).collect();
    let mut inside = &known[..];
    loop {
        let open = enclosing(inside)?;
        let before = &inside[..open];
        // A macro may take brackets or braces.
        if (inside[open].kind == Kind::Open('(') || before_is(code, before, "!"))
            && let Some(found) = called(code, before)
        {
            return Some(Call { argument: commas(&known[open + 1..]), ..found });
        }
        if inside[open].kind == Kind::Open('{') {
            return None;
        }
        inside = before;
    }
}

fn called(code: &str, before: &[&Token]) -> Option<Call> {
    let bang = before_is(code, before, "!");
    let mut name = if bang { before.len() - 1 } else { before.len() };
    if before.last()?.kind == Kind::Punct('>') {
        name = angle_before(before, before.len() - 1)?.checked_sub(2)?;
    }
    let word = before.get(name.checked_sub(1)?)?;
    let text = &code[word.range.clone()];
    let keyword =
        matches!(text, "if" | "while" | "match" | "for" | "in" | "return" | "fn" | "let" | "else" | "move" | "loop");
    let defined = name > 1 && before_is(code, &before[..name - 1], "fn");
    if word.kind != Kind::Ident || keyword || defined {
        return None;
    }
    let method = !bang && is_dot(code, &before[..name - 1]);
    let path = if method { Vec::new() } else { path_before(code, &before[..name]) };
    Some(Call { name: word.range.clone(), method, path, bang, argument: 0 })
}

/// Commas that part arguments: not those inside of brackets or of a closure's parameters.
fn commas(inside: &[&Token]) -> usize {
    let (mut depth, mut count, mut parameters) = (0, 0, false);
    for (i, t) in inside.iter().enumerate() {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            Kind::Punct('|') if depth == 0 => {
                let first = i == 0
                    || matches!(inside[i - 1].kind, Kind::Punct(','))
                    || parameters
                    || inside[i - 1].kind == Kind::Ident;
                parameters = first && !parameters;
            }
            Kind::Punct(',') if depth == 0 && !parameters => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(marked: &str) -> (What, String) {
        let cursor = marked.find('¦').unwrap();
        let code = marked.replacen('¦', "", 1);
        let found = read(&code, cursor);
        (found.what, code[found.word].to_owned())
    }

    #[test]
    fn what_stands_at_the_cursor() {
        let words = |list: &[&str]| list.iter().map(|w| w.to_string()).collect::<Vec<_>>();
        let path = |list: &[&str]| What::Path(words(list));
        for (code, want, word) in [
            ("x.le¦", What::Member, "le"),
            ("x.0.¦", What::Member, ""),
            ("x\n  .¦", What::Member, ""),
            ("0..¦", What::Name, ""),
            ("1.¦", What::Nothing, ""),
            ("3¦", What::Nothing, "3"),
            ("nn::¦", path(&["nn"]), ""),
            ("std::collections::Ha¦", path(&["std", "collections"]), "Ha"),
            ("Vec::<i32>::wi¦", path(&["Vec"]), "wi"),
            ("<Vec<u8>>::wi¦", path(&["Vec"]), "wi"),
            ("<Vec<u8> as std::io::Read>::re¦", path(&["std", "io", "Read"]), "re"),
            ("let x: Option<std::sync::¦", path(&["std", "sync"]), ""),
            ("use std::collections::{HashMap, hash_map::¦", path(&["std", "collections", "hash_map"]), ""),
            ("use std::{fs, io¦", path(&["std"]), "io"),
            ("use s¦", path(&[]), "s"),
            ("let p = Point { x: 1, ¦", What::Field(words(&["Point"]), words(&["x"])), ""),
            ("let p = nn::Opt { s¦", What::Field(words(&["nn", "Opt"]), vec![]), "s"),
            ("struct Point { ¦", What::Nothing, ""),
            ("enum Shape { Point { x: f64, ¦", What::Nothing, ""),
            ("struct Point { x: i32, y¦", What::Nothing, "y"),
            ("struct Point { x: HashMap<i32, S¦", What::Type, "S"),
            ("let (a, So¦", What::Pattern, "So"),
            ("let a = So¦", What::Name, "So"),
            ("for a¦", What::Pattern, "a"),
            ("for a in So¦", What::Name, "So"),
            ("impl A for So¦", What::Type, "So"),
            ("v.iter().map(|So¦", What::Pattern, "So"),
            ("v.iter().map(|a| So¦", What::Name, "So"),
            ("let a = b || So¦", What::Name, "So"),
            ("fn f(So¦", What::Pattern, "So"),
            ("fn f<T>(a: T, So¦", What::Pattern, "So"),
            ("fn f<So¦", What::Nothing, "So"),
            ("impl a::Add for P { ¦", What::Defined(words(&["a", "Add"]), String::new(), vec![]), ""),
            (
                "impl<T> a::Add<T> for P { fn x() {} fn ¦",
                What::Defined(words(&["a", "Add"]), "fn".into(), words(&["x"])),
                "",
            ),
            ("impl P { fn a¦", What::Nothing, "a"),
            ("impl Point { f¦", What::Item(Body::Impl), "f"),
            ("if x == y { f¦", What::Name, "f"),
            ("// x.¦", What::Nothing, ""),
            ("\"x.¦", What::Nothing, ""),
            ("f(\"data/tr¦", What::File(3), "tr"),
            ("std::fs::read(\"tr¦\")", What::File(15), "tr"),
            ("let url = \"https://tr¦", What::Nothing, "tr"),
            ("fn f<'a>(x: &'st¦", What::Lifetime, "'st"),
            ("break 'ou¦", What::Label, "'ou"),
            ("format!(\"{to¦", What::Formatted, "to"),
            ("format!(\"{{to¦", What::Nothing, "to"),
            ("#[derive(De¦", What::Derive, "De"),
            ("#[cfg(te¦", What::OneOf(CONDITIONS, "condition"), "te"),
            ("macro_rules! m { ($x:ex¦", What::OneOf(FRAGMENTS, "fragment"), "ex"),
            ("let ¦", What::Nothing, ""),
            ("fn fo¦", What::Nothing, "fo"),
            ("let ü = ü.¦", What::Member, ""),
        ] {
            assert_eq!(at(code), (want, word.to_owned()), "{code}");
        }
    }

    #[test]
    fn calls_around_the_cursor() {
        let of = |marked: &str| {
            let cursor = marked.find('¦').unwrap();
            let code = marked.replacen('¦', "", 1);
            call(&code, cursor).map(|c| (code[c.name.clone()].to_owned(), c.method, c.path.join("::"), c.argument))
        };
        let want =
            |name: &str, method, path: &str, argument| Some((name.to_owned(), method, path.to_owned(), argument));
        assert_eq!(of("f(1, ¦)"), want("f", false, "f", 1));
        assert_eq!(of("x.map(|a, b| a, ¦"), want("map", true, "", 1));
        assert_eq!(of("nn::Linear::new(g(1, 2), ¦"), want("new", false, "nn::Linear::new", 1));
        assert_eq!(of("v.iter().map(|x| f(x, [1, 2], (¦"), want("f", false, "f", 2));
        assert_eq!(of("v.collect::<Vec<_>>(¦"), want("collect", true, "", 0));
        assert_eq!(of("<Guitar as a::Plays>::play(&mut g, ¦"), want("play", false, "a::Plays::play", 1));
        assert_eq!(of("<Vec<u8>>::with_capacity(¦"), want("with_capacity", false, "Vec::with_capacity", 0));
        assert_eq!(of("vec![1; ¦"), want("vec", false, "vec", 0));
        assert_eq!(of("a != [¦"), None);
        assert_eq!(of("if (¦"), None);
        assert_eq!(of("fn f(¦"), None);
    }
}
