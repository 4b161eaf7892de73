//! What is done without gradients: a closure here, whose value is what goes on, where torch has a block or a guard.
use super::instead::ANSWER;
use super::literals::in_one_line;
use super::texts::Told;
use super::words::Words;
use crate::eval::text::depth;
use crate::eval::text::scan::Kind;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Pat, Stmt};

/// How torch and tch name what makes a guard, and what it is asked for.
const GUARDS: [&str; 4] = ["no_grad", "no_grad_guard", "inference_mode", "set_grad_enabled"];
/// How many statements are told in one.
const MANY: usize = 6;
const RETURN: &str = "return ";

/// What is told of a guard, of `no_grad` in front of a block, and of a name that only such a closure knows.
pub(super) fn told(error: &Diagnostic, text: &str, at: &Range<usize>) -> Option<Told> {
    const PATH: usize = 40;
    // Texts are long where much is wrong with them.
    let near: String = text.get(at.start..)?.chars().take(PATH).collect();
    let braces = || {
        let heads = GUARDS.iter().flat_map(|guard| ["", "()"].map(|called| format!("{guard}{called}")));
        heads.into_iter().any(|head| [" {", "{"].iter().any(|open| text.contains(&format!("{head}{open}"))))
    };
    let name = error.message.strip_prefix("cannot find value `").and_then(|rest| rest.split('`').next());
    let inside = |name: &&str| {
        let before = &text[..at.start];
        before.contains("no_grad(") && before.contains(&format!("{name} ="))
    };
    match &*error.code {
        "E0061" | "E0423" | "E0425" | "E0433" if GUARDS.iter().any(|guard| near.contains(guard)) => {
            guard(&Words::of(text), at)
        }
        "E0425" => declared_inside(&Words::of(text), name.filter(inside)?),
        "" | "E0574" if braces() => in_braces(&Words::of(text), at),
        _ => None,
    }
}

/// `let _guard = no_grad();` with what it is to hold for: all up to the end of its block.
fn guard(words: &Words, at: &Range<usize>) -> Option<Told> {
    let pointed = words.at(at.start)?;
    let path = |i: usize| matches!(words.word(i), "." | ":") || words.kind(i) == Some(Kind::Ident);
    let name = (pointed..words.len()).take_while(|i| path(*i)).find(|i| GUARDS.contains(&words.word(*i)))?;
    let given = words.arguments(name)?;
    let off = match words.word(name) {
        "set_grad_enabled" => given.len() == 1 && words.word(given.start).eq_ignore_ascii_case("false"),
        _ => given.is_empty(),
    };
    let first = (0..=pointed).rev().take_while(|i| path(*i) && !["let", "mut"].contains(&words.word(*i))).last()?;
    // What it is bound to.
    let bound = first.checked_sub(2).filter(|i| words.word(i + 1) == "=" && words.kind(*i) == Some(Kind::Ident));
    let start = match bound.map(|i| i - usize::from(words.word(i.wrapping_sub(1)) == "mut")) {
        Some(i) => i.checked_sub(1).filter(|i| words.word(*i) == "let")?,
        None => first,
    };
    let close = given.end;
    let begins = start == 0 || matches!(words.word(start - 1), ";" | "{" | "}");
    if !off || !begins || !matches!(words.word(close + 1), ";" | "" | "}") {
        return None;
    }
    let from = (close + 1 + usize::from(words.word(close + 1) == ";")).min(words.len());
    let mut depth = 0i32;
    let end = (from..words.len()).find(|i| {
        depth += i32::from(matches!(words.kind(*i), Some(Kind::Open(_))));
        depth -= i32::from(matches!(words.kind(*i), Some(Kind::Close(_))));
        depth < 0
    });
    let end = end.unwrap_or(words.len());
    if from == end {
        let (all, code) = (words.tokens[first].range.start..words.tokens[close].range.end, "no_grad(|| {})".to_owned());
        return Some((format!("{ANSWER}`{code}` (what is in it is a closure)"), Some((all, code))));
    }
    let all = words.tokens[start].range.start..words.tokens[end - 1].range.end;
    let top = words.within(0, start);
    let code = words.part(from, end).and_then(|(rest, _)| composed(&rest, top, None));
    let Some(code) = code else {
        let said = format!(
            "{ANSWER}`no_grad(|| …)`: what is done without gradients is a closure, and what it gives goes on, as in `let y = no_grad(|| \
             model.forward(&x));`"
        );
        return Some((said, None));
    };
    Some((format!("{ANSWER}`{code}` (what is done without gradients is a closure)"), Some((all, code))))
}

/// `no_grad { … }`, and `with torch.no_grad() { … }`.
fn in_braces(words: &Words, at: &Range<usize>) -> Option<Told> {
    let around = |i: &usize| {
        let called = words.word(i + 1) == "(" && words.word(i + 2) == ")";
        let open = i + if called { 3 } else { 1 };
        let head = GUARDS.contains(&words.word(*i)) && words.word(open) == "{";
        let close = Some(open).filter(|_| head).and_then(|open| words.behind_brackets(open))?;
        // Its path, and what Python has before that.
        let mut name = *i;
        while name > 1 && words.word(name - 1) == "." && words.kind(name - 2) == Some(Kind::Ident) {
            name -= 2;
        }
        name -= usize::from(name > 0 && words.word(name - 1) == "with");
        let all = words.tokens[name].range.start..words.tokens[close - 1].range.end;
        (all.start <= at.start && at.end <= all.end).then_some((name, open, close))
    };
    let (name, open, close) = (0..words.len()).rev().find_map(|i| around(&i))?;
    let end = close + usize::from(words.word(close) == ";");
    let begins = name == 0 || matches!(words.word(name - 1), ";" | "{" | "}");
    let (body, _) = words.part(open + 1, close - 1)?;
    let whole = || composed(&body, words.within(0, name), None).map(|code| (end, code));
    let (end, code) =
        begins.then(whole).flatten().or_else(|| Some((close, format!("no_grad(|| {{ {} }})", flat(&body)?))))?;
    let all = words.tokens[name].range.start..words.tokens[end - 1].range.end;
    // A statement, where others follow.
    let ends = !begins || code.ends_with(';') || matches!(words.word(end), "" | "}");
    let code = if ends { code } else { code + ";" };
    Some((format!("{ANSWER}`{code}` (what is in it is a closure)"), Some((all, code))))
}

/// A name that is declared in the closure and wanted behind it.
fn declared_inside(words: &Words, name: &str) -> Option<Told> {
    (0..words.len()).find_map(|i| {
        let given = Some(i).filter(|_| words.word(i) == "no_grad").and_then(|i| words.arguments(i))?;
        let begins = i == 0 || matches!(words.word(i - 1), ";" | "{" | "}");
        let open = given.start + 2;
        let block =
            words.word(given.start) == "|" && words.word(open) == "{" && words.behind_brackets(open) == Some(given.end);
        let end = given.end + 1 + usize::from(words.word(given.end + 1) == ";");
        let (body, _) = words.part(open + 1, given.end - 1).filter(|_| begins && block)?;
        let code = composed(&body, true, None)?;
        let declares = code.split_once(" = no_grad(").is_some_and(|(names, _)| {
            let names = Words::of(names);
            names.word(0) == "let" && (1..names.len()).any(|i| names.word(i) == name)
        });
        let all = words.tokens[i].range.start..words.tokens[end - 1].range.end;
        declares.then(|| (format!("{ANSWER}`{code}` (`{name}` is the closure's, which gives it)"), Some((all, code))))
    })
}

/// One statement, and what it declares.
struct Part {
    text: String,
    /// The pattern, the names in it, and the value.
    declares: Option<(String, Vec<String>, String)>,
}

/// Statements as what is done in `no_grad`: what they declare is what that gives. Of the names that are assigned to `declared` are
/// there already, or all of them.
pub(super) fn composed(body: &str, top: bool, declared: Option<&[String]>) -> Option<String> {
    let (parts, last) = depth::as_people_write(body, || read(body, declared))?;
    if parts.len() > MANY || parts.is_empty() && last.is_none() {
        return None;
    }
    let mut names: Vec<&String> = Vec::new();
    for name in parts.iter().filter_map(|p| p.declares.as_ref()).flat_map(|(_, names, _)| names) {
        let plain = |n: &str| n.trim_start_matches("mut ").to_owned();
        names.retain(|other| plain(other) != plain(name));
        names.push(name);
    }
    let texts = || parts.iter().map(|p| &*p.text).collect::<Vec<_>>().join(" ");
    if let Some(value) = last.as_ref().and_then(|last| last.strip_prefix(RETURN)) {
        let all = if parts.is_empty() { value.to_owned() } else { format!("{{ {} {value} }}", texts()) };
        return (!top).then(|| format!("return no_grad(|| {all});"));
    }
    // A function's last expression is its value, and what it declares is its own.
    if let (Some(value), true) = (&last, names.is_empty() || !top) {
        let all = if parts.is_empty() { value.clone() } else { format!("{{ {} {value} }}", texts()) };
        return Some(format!("no_grad(|| {all})"));
    }
    let first = match (&*names, &parts[..]) {
        ([], _) => format!("no_grad(|| {{ {} }})", texts()) + if last.is_some() { ";" } else { "" },
        (_, [Part { declares: Some((pattern, _, value)), .. }]) => format!("let {pattern} = no_grad(|| {value});"),
        _ => {
            let list = |of: &[String]| if let [one] = of { one.clone() } else { format!("({})", of.join(", ")) };
            let bound: Vec<String> = names.iter().map(|n| (*n).clone()).collect();
            let given: Vec<String> = bound.iter().map(|n| n.trim_start_matches("mut ").to_owned()).collect();
            format!("let {} = no_grad(|| {{ {} {} }});", list(&bound), texts(), list(&given))
        }
    };
    Some(match last {
        // To name it needs nothing.
        Some(value) if syn::parse_str::<syn::Path>(&value).is_ok() => format!("{first} {value}"),
        Some(value) => format!("{first} no_grad(|| {value})"),
        None => first,
    })
}

/// Statements, and the expression behind them.
fn read(body: &str, declared: Option<&[String]>) -> Option<(Vec<Part>, Option<String>)> {
    let statements = depth::fits(body).then(|| Block::parse_within.parse_str(body).ok())??;
    let of = |range: Range<usize>| flat(body.get(range)?);
    let (mut parts, mut last) = (Vec::new(), None);
    let mut known: Vec<String> = Vec::new();
    let count = statements.len();
    for (i, statement) in statements.iter().enumerate() {
        let text = of(statement.span().byte_range())?;
        let declares = match statement {
            Stmt::Local(local) => match &local.init {
                Some(init) if init.diverge.is_none() => {
                    let mut all = Names::default();
                    all.visit_pat(&local.pat);
                    let value = of(init.expr.span().byte_range())?;
                    Some((of(local.pat.span().byte_range())?, all.0, value))
                }
                _ => None,
            },
            Stmt::Expr(Expr::Assign(set), _) => match &*set.left {
                Expr::Path(path) if path.path.get_ident().is_some() => {
                    let name = path.path.get_ident()?.to_string();
                    let new = declared.is_some_and(|there| !there.contains(&name) || known.contains(&name));
                    let changed = changes(&body[statement.span().byte_range().end..], &name);
                    let pattern = if changed { format!("mut {name}") } else { name };
                    let value = of(set.right.span().byte_range())?;
                    new.then(|| (pattern.clone(), vec![pattern], value))
                }
                _ => None,
            },
            Stmt::Item(_) => return None,
            Stmt::Expr(Expr::Return(given), _) if i + 1 == count => {
                last = Some(format!("{RETURN}{}", of(given.expr.as_ref()?.span().byte_range())?));
                continue;
            }
            Stmt::Expr(_, None) if i + 1 == count && !ends_in_block(&text) => {
                last = Some(text);
                continue;
            }
            _ => None,
        };
        let text = match &declares {
            Some((pattern, _, value)) => format!("let {pattern} = {value};"),
            None => text,
        };
        known.extend(declares.iter().flat_map(|(_, names, _)| names).map(|n| n.trim_start_matches("mut ").to_owned()));
        parts.push(Part { text, declares });
    }
    Some((parts, last))
}

/// Whether it may be a statement that gives nothing: a loop.
fn ends_in_block(text: &str) -> bool {
    ["for ", "while ", "loop ", "loop{"].iter().any(|word| text.starts_with(word))
}

/// Whether a name is changed in a text: `loss += x`.
fn changes(text: &str, name: &str) -> bool {
    let words = Words::of(text);
    let sign = |i: usize| ["+", "-", "*", "/"].contains(&words.word(i)) && words.word(i + 1) == "=";
    (0..words.len()).any(|i| words.word(i) == name && sign(i + 1))
}

#[derive(Default)]
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat(&mut self, pat: &'ast Pat) {
        if let Pat::Ident(name) = pat
            && name.ident.to_string().starts_with(|c: char| c.is_lowercase())
        {
            let changes = if name.mutability.is_some() { "mut " } else { "" };
            self.0.push(format!("{changes}{}", name.ident));
        }
        syn::visit::visit_pat(self, pat);
    }
}

/// Code on one line, if nothing in it needs several.
pub(super) fn flat(text: &str) -> Option<String> {
    let several = text.contains("//") || text.contains("\\\n");
    (!several).then(|| in_one_line(text.to_owned()).trim().to_owned())
}
