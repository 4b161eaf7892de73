//! What stands at the cursor, in words: a variable's type, a function's signature, documentation.
use super::catalog::{Kind, Member, TypeDef};
use super::complete::{Names, Typist, is_typed, rust};
use super::cursor::{self, Call, Cursor, What};
use super::probe::METHOD;
use super::scope::{InScope, Named};
use super::ty::last;
use super::words::macro_signature;
use super::world::{Found, Having, World};
use crate::eval::text::scan::{Kind as Token, tokens};
use crate::eval::text::types::short;
use std::ops::Range;
use xlazy_mime::Bundle;

/// Documentation of the name at the cursor, or of the call around it.
pub fn inspect(
    typist: &Typist,
    scope: &InScope,
    names: Names,
    code: &str,
    cursor: usize,
    detail: u8,
) -> Option<Bundle> {
    if !is_typed(code) {
        return None;
    }
    let code = &rust(scope, code, cursor);
    let all = tokens(code);
    let touched = all.iter().find(|t| t.kind == Token::Ident && t.range.start <= cursor && cursor <= t.range.end);
    let named = touched.and_then(|t| at_name(typist, scope, names, code, &t.range, detail));
    named.or_else(|| around(typist, scope, names, code, cursor))
}

/// What a name alone stands for.
pub fn describe(scope: &InScope, name: &str, detail: u8) -> Option<Bundle> {
    if let Some(v) = scope.vars.iter().find(|v| v.name == name) {
        let summary = if v.summary.is_empty() { String::new() } else { format!(" = {}", v.summary) };
        let kind = if v.handle { "a cell works on a copy" } else { "a cell takes it and puts it back" };
        let text = format!("{}: {}{summary}\nfrom cell {}; {kind}", v.name, short(&v.type_name), v.cell);
        return Some(Bundle::text(text));
    }
    let item = scope.items.iter().find(|i| i.name.trim_end_matches('!') == name && i.kind != "import")?;
    let origin = if item.origin.is_empty() { String::new() } else { format!("\nfrom {}", item.origin) };
    let docs: Vec<&str> =
        item.source.lines().filter_map(|l| l.trim_start().strip_prefix("///")).map(str::trim).collect();
    let text = match detail {
        0 => format!("{}{}{}{origin}", signature(item), if docs.is_empty() { "" } else { "\n\n" }, docs.join("\n")),
        _ => format!("{}{origin}", item.source),
    };
    Some(Bundle::text(text))
}

/// The signature, behind doc comments and attributes; a type with what it has, where that is not long.
fn signature(item: &Named) -> String {
    const LONGEST: usize = 24;
    let is_code = |l: &&str| !l.trim_start().starts_with("//") && !l.trim_start().starts_with("#[");
    let whole: Vec<&str> = item.source.lines().filter(is_code).collect();
    if matches!(item.kind, "struct" | "enum" | "union") && whole.len() <= LONGEST {
        return whole.join("\n").trim().to_owned();
    }
    let code = item.source.lines().find(|l| !l.trim_start().starts_with("//") && !l.trim_start().starts_with("#["));
    code.map_or(item.signature.as_str(), |l| l.split('{').next().unwrap_or(l).trim()).to_owned()
}

fn at_name(
    typist: &Typist,
    scope: &InScope,
    names: Names,
    code: &str,
    word: &Range<usize>,
    detail: u8,
) -> Option<Bundle> {
    let at = cursor::read(code, word.start);
    let name = &code[word.clone()];
    let whole =
        |instead: String| typist.around(scope, names, code, &Cursor { word: word.clone(), ..at.clone() }, &instead);
    match &at.what {
        What::Member => {
            let around = whole(format!("{METHOD}()"));
            let ty = typist.receiver(scope, &around)?;
            around.world.having(&ty).iter().find(|h| h.member.name == name).map(member)
        }
        What::Path(path) => {
            let around = whole("xlazy_name".to_owned());
            let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
            found(&around.world, &around.world.find(&path)?)
        }
        What::Defined(of, ..) => {
            let path: Vec<String> = of.iter().cloned().chain([name.to_owned()]).collect();
            let world = whole("xlazy_name() {}".to_owned()).world;
            found(&world, &world.find(&path)?)
        }
        What::Field(..)
        | What::Name
        | What::Formatted
        | What::Type
        | What::OneOf(..)
        | What::Pattern
        | What::Arm(_) => {
            if let What::Field(path, _) = &at.what
                && let Some(field) = of_literal(&whole("xlazy_name: 0".to_owned()).world, path, name)
            {
                return Some(shown(path.last()?, &field, ""));
            }
            let bound = super::bindings::bindings(&code[..word.end]).iter().any(|b| b == name);
            let bound = bound || declares(code, word);
            if !bound && let Some(known) = describe(scope, name, detail) {
                return Some(known);
            }
            if bound && let Some(ty) = of_binding(typist, scope, names, code, word) {
                return Some(Bundle::text(format!("{name}: {ty}")));
            }
            let world = whole(name.to_owned()).world;
            // A module may have the name of a macro.
            let behind = &code[word.end..];
            if behind.starts_with('!') && !behind.starts_with("!=") {
                let modules = [""].into_iter().chain(world.globs.iter().map(String::as_str)).chain(["std"]);
                let mut macros = modules.flat_map(|m| world.entries(m)).filter(|e| e.kind == Kind::Macro);
                return found(&world, &Found::Item(macros.find(|e| e.name == name)?));
            }
            world.find(&[name.to_owned()]).map_or_else(|| to_import(&world, name), |there| found(&world, &there))
        }
        What::Nothing if declares(code, word) => {
            let ty = of_binding(typist, scope, names, code, word)?;
            Some(Bundle::text(format!("{name}: {ty}")))
        }
        What::File(_) | What::Lifetime | What::Label => None,
        What::Nothing | What::Derive | What::Item(_) => {
            let around = whole(name.to_owned());
            found(&around.world, &around.world.find(&[name.to_owned()])?)
        }
    }
}

/// A type that is not in scope, with what would bring it.
fn to_import(world: &World, name: &str) -> Option<Bundle> {
    let of_name = |l: &std::sync::Arc<super::catalog::Catalog>| l.named.get(name).cloned().unwrap_or_default();
    let mut paths: Vec<String> = world.layers.iter().flat_map(of_name).filter(|p| p.contains("::")).collect();
    paths.retain(|p| !p.starts_with("primitive::"));
    paths.sort_by_key(String::len);
    // The same by a longer path.
    let doc = |path: &String| world.def(path).map(|def| def.doc.clone()).unwrap_or_default();
    let mut said = Vec::new();
    paths.retain(|p| {
        !said.contains(&doc(p)) && {
            said.push(doc(p));
            true
        }
    });
    let def = world.def(paths.first()?)?;
    let uses: Vec<String> = paths.iter().map(|p| format!("use {p};")).collect();
    let doc = if paths.len() == 1 { &*def.doc } else { "" };
    Some(shown("", &format!("{} {name}\n{}", def.kind.word(), uses.join("\n")), doc))
}

/// A field of the struct or variant whose literal or pattern it stands in.
fn of_literal(world: &World, path: &[String], name: &str) -> Option<String> {
    match world.find(path)? {
        Found::Type(path) => {
            let def = world.def(&path)?;
            Some(def.members.iter().find(|m| m.name == name)?.signature.clone())
        }
        _ => None,
    }
}

/// Whether a `let` declares that name right there.
fn declares(code: &str, word: &Range<usize>) -> bool {
    let before = code[..word.start].trim_end();
    before.ends_with("let") || before.ends_with("let mut")
}

/// The type of a binding, where it is mentioned or, behind its declaration, would be.
fn of_binding(typist: &Typist, scope: &InScope, names: Names, code: &str, word: &Range<usize>) -> Option<String> {
    let name = &code[word.clone()];
    let (text, at) = match declares(code, word) {
        false => (code.to_owned(), word.clone()),
        true => {
            let end = statement_end(code, word.end)?;
            (format!("{}\n{name}{}", &code[..end], &code[end..]), end + 1..end + 1 + name.len())
        }
    };
    let method = Cursor { word: at, what: What::Member, import: false };
    let around = typist.around(scope, names, &text, &method, &format!("{name}.{METHOD}()"));
    typist.receiver(scope, &around).map(|ty| ty.to_string())
}

/// Behind the semicolon of the statement there.
fn statement_end(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0;
    for t in tokens(&code[from..]) {
        match t.kind {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth -= 1,
            Token::Punct(';') if depth == 0 => return Some(from + t.range.end),
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// The call that the cursor is inside of, with the argument at hand marked.
fn around(typist: &Typist, scope: &InScope, names: Names, code: &str, cursor: usize) -> Option<Bundle> {
    let call = cursor::call(code, cursor)?;
    let at = Cursor { word: call.name.clone(), what: What::Member, import: false };
    let around = |instead: &str| typist.around(scope, names, code, &at, instead);
    let (owner, signature, doc, method) = match &call {
        Call { method: true, .. } => {
            let around = around(&format!("{METHOD}()"));
            let ty = typist.receiver(scope, &around)?;
            let all = around.world.having(&ty);
            let h = all.into_iter().find(|h| h.member.name == code[call.name.clone()])?;
            (h.owner, h.member.signature, h.member.doc, true)
        }
        Call { bang: true, path, .. } => {
            let world = around("xlazy_name").world;
            let there = world.find(path)?;
            match (&there, macro_signature(path.last()?)) {
                (Found::Item(e), Some(signature)) => (String::new(), signature.to_owned(), e.doc.clone(), false),
                _ => return found(&world, &there),
            }
        }
        Call { path, .. } => {
            let world = around(&code[call.name.clone()]).world;
            let Some(there) = world.find(path) else {
                // A closure, or a variable with one in it.
                let [name] = &path[..] else { return None };
                let bound = super::bindings::bindings(&code[..call.name.end]).iter().any(|b| b == name);
                let ty = of_binding(typist, scope, names, code, &call.name).filter(|_| bound);
                return match ty {
                    Some(ty) => Some(Bundle::text(format!("{name}: {ty}"))),
                    None => describe(scope, name, 0).filter(|_| scope.vars.iter().any(|v| v.name == *name)),
                };
            };
            match there {
                Found::Type(path) if world.def(&path)?.text.contains('(') => {
                    let def = world.def(&path)?;
                    (String::new(), def.text.clone(), def.doc.clone(), false)
                }
                Found::Item(e) => (String::new(), e.signature, e.doc, false),
                Found::Member(owner, m) => (last(&owner).to_owned(), m.signature, m.doc, false),
                other => return found(&world, &other),
            }
        }
    };
    // What takes any number of arguments has the last one for all that follow.
    let most = signature.matches(',').count();
    let argument = if signature.contains("…") { call.argument.min(most) } else { call.argument };
    let marked = marked(&signature, argument, method);
    Some(shown(&owner, &marked, &doc))
}

/// A signature with a line of carets below the argument.
fn marked(signature: &str, argument: usize, method: bool) -> String {
    let Some(open) = super::catalog::argument_list(signature) else { return signature.to_owned() };
    let mut parts: Vec<Range<usize>> = Vec::new();
    let (mut depth, mut start, mut before) = (0, open + 1, ' ');
    for (i, c) in signature[open + 1..].char_indices().map(|(i, c)| (open + 1 + i, c)) {
        match c {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' if depth == 0 => {
                parts.push(start..i);
                break;
            }
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(start..i);
                start = i + 1;
            }
            _ => {}
        }
        before = c;
    }
    let takes_self = method && parts.first().is_some_and(|p| signature[p.clone()].contains("self"));
    let Some(part) =
        parts.get(argument + usize::from(takes_self)).filter(|p| !signature[(*p).clone()].trim().is_empty())
    else {
        return signature.to_owned();
    };
    let text = &signature[part.clone()];
    let from = part.start + text.len() - text.trim_start().len();
    let (blank, mark) = (signature[..from].chars().count(), text.trim().chars().count());
    format!("{signature}\n{}{}", " ".repeat(blank), "^".repeat(mark))
}

fn member(h: &Having) -> Bundle {
    shown(&h.owner, &h.member.signature, &h.member.doc)
}

/// `owner` is the type or trait of a method.
fn shown(owner: &str, signature: &str, doc: &str) -> Bundle {
    let of = if owner.is_empty() { String::new() } else { format!("{owner}\n") };
    let behind = if doc.is_empty() { String::new() } else { format!("\n\n{doc}") };
    let plain = format!("{of}{signature}{behind}");
    let head = if owner.is_empty() { String::new() } else { format!("// {owner}\n") };
    Bundle::text(plain).with("text/markdown", format!("```rust\n{head}{signature}\n```{behind}"))
}

/// A type as its definition would begin, with the fields or variants that are public.
fn with_parts(def: &TypeDef) -> String {
    let head = format!("{} {}", def.kind.word(), last(&def.path));
    let is_part = |m: &&Member| matches!(m.kind, Kind::Field | Kind::Variant);
    let parts: Vec<String> = def.members.iter().filter(is_part).map(|m| format!("    {},\n", m.signature)).collect();
    if parts.is_empty() { head } else { format!("{head} {{\n{}}}", parts.concat()) }
}

/// The functions that make a type, as they are called.
fn made_by(world: &World, path: &str) -> String {
    const MOST: usize = 8;
    let name = last(path);
    let call = |signature: &str| {
        let (front, rest) = signature.split_once("fn ")?;
        let made = rest.rsplit_once("-> ").map(|(_, made)| made.trim())?;
        let of_name = made.strip_prefix("Self").or_else(|| made.strip_prefix(name))?;
        let makes = of_name.is_empty() || of_name.starts_with('<');
        let takes_self = rest.split_once('(').is_some_and(|(_, arguments)| {
            let first = arguments.split([',', ')']).next().unwrap_or_default();
            first.ends_with("self") || first.trim_start_matches("mut ").starts_with("self:")
        });
        (makes && !takes_self && !front.contains("unsafe")).then(|| format!("\n{name}::{rest}"))
    };
    let mut all: Vec<String> = world.associated(path).iter().filter_map(|h| call(&h.member.signature)).collect();
    all.truncate(MOST);
    all.concat()
}

fn found(world: &World, found: &Found) -> Option<Bundle> {
    match found {
        Found::Module(path) => {
            let names: Vec<String> = world.entries(path).into_iter().map(|e| e.name).collect();
            Some(shown("", &format!("mod {path}"), &names.join(", ")))
        }
        Found::Type(path) => {
            let def = world.def(path)?;
            let head = match def.text.is_empty() {
                true => with_parts(def),
                false => def.text.clone(),
            };
            Some(shown("", &(head + &made_by(world, path)), &def.doc))
        }
        Found::Item(e) => {
            let head =
                if e.signature.is_empty() { format!("{} {}", e.kind.word(), e.name) } else { e.signature.clone() };
            Some(shown("", &head, &e.doc))
        }
        Found::Member(owner, m) => Some(shown(last(owner), &m.signature, &m.doc)),
    }
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn the_argument_at_hand_is_marked() {
        let at = |signature: &str, argument, method| {
            let text = marked(signature, argument, method);
            let (first, second) = text.split_once('\n')?;
            let from = second.len() - second.trim_start().len();
            Some(first[from..from + second.trim().len()].to_owned())
        };
        assert_eq!(at("fn insert(&mut self, index: usize, element: T)", 1, true).as_deref(), Some("element: T"));
        assert_eq!(
            at("fn f<F: Fn(i32) -> i32>(f: F, m: HashMap<K, V>, c: u8)", 1, false).as_deref(),
            Some("m: HashMap<K, V>")
        );
        assert_eq!(at("fn len(&self) -> usize", 0, true), None);
        assert_eq!(at("fn len(&self) -> usize", 0, false).as_deref(), Some("&self"));
    }
}
