//! What stands at the cursor, in words: a variable's type, a function's signature, documentation.
use super::asked::Asked;
use super::bindings::bindings;
use super::call::around;
use super::catalog::Kind;
use super::complete::{Names, Typist, is_typed, rust, special, without_self};
use super::cursor::{self, What};
use super::items::describe;
use super::macros;
use super::page::{found, item, shown};
use super::scope::InScope;
use super::standard::KEYWORDS;
use super::world::World;
use crate::eval::text::scan::{Kind as Token, tokens};
use crate::magics;
use std::ops::Range;
use xlazy_mime::Bundle;

/// Documentation of the name at the cursor, or of the call around it, or of the magic whose line it is.
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
    let asked = Asked { typist, scope, names, code: &rust(scope, code, cursor) };
    let named = name_at(asked.code, cursor).and_then(|word| asked.at_name(&word, detail));
    named.or_else(|| around(&asked, cursor)).or_else(|| {
        let start = special(scope, code, cursor)?.start;
        magics::page(code[start..].lines().next()?)
    })
}

/// What `?` and `help` are asked about: a name, also with arguments behind it.
pub fn explain(typist: &Typist, scope: &InScope, names: Names, topic: &str) -> Option<Bundle> {
    let bare = without_arguments(topic);
    describe(scope, bare, 1).or_else(|| inspect(typist, scope, names, bare, bare.len(), 1))
}

/// `Vec` of `Vec<u8>`, `v.push` of `v.push(1)`, `vec!` of `vec![1]`.
fn without_arguments(topic: &str) -> &str {
    let mut bare = topic.trim_end();
    while let Some(close) = bare.chars().last().filter(|c| ")]}>".contains(*c)) {
        let all = tokens(bare);
        let opens = |c: char| matches!((c, close), ('(', ')') | ('[', ']') | ('{', '}') | ('<', '>'));
        let mut depth = 0;
        let open = all.iter().rev().find(|t| {
            let sign = bare[t.range.clone()].chars().next().unwrap_or(' ');
            depth += i32::from(sign == close) - i32::from(opens(sign));
            depth == 0
        });
        let Some(open) = open.filter(|t| t.range.start > 0) else { break };
        bare = bare[..open.range.start].trim_end().trim_end_matches("::");
    }
    bare
}

/// The name that the cursor touches, also behind the mark of a macro, or in the braces of a format string.
fn name_at(code: &str, cursor: usize) -> Option<Range<usize>> {
    let all = tokens(code);
    let touches = |r: &Range<usize>| r.start <= cursor && cursor <= r.end;
    let name = all.iter().position(|t| t.kind == Token::Ident && touches(&t.range));
    let mark = || all.iter().position(|t| t.range.end == cursor && t.kind == Token::Punct('!'))?.checked_sub(1);
    let called = |i: &usize| all[*i].kind == Token::Ident && macros::is_called(&code[all[*i].range.end..]);
    if let Some(i) = name.or_else(|| mark().filter(called)) {
        return Some(all[i].range.clone());
    }
    let at = cursor::read(code, cursor);
    let rest = code[cursor..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len() - cursor);
    Some(at.word.start..cursor + rest).filter(|r| at.what == What::Formatted && !r.is_empty())
}

impl Asked<'_> {
    fn at_name(&self, word: &Range<usize>, detail: u8) -> Option<Bundle> {
        let (code, name) = (self.code, &self.code[word.clone()]);
        let at = cursor::read(code, word.start);
        let behind = &code[word.end..];
        if at.what != What::Member && macros::is_called(behind) {
            let mut path = if let What::Path(path) = &at.what { path.clone() } else { Vec::new() };
            let own = path.is_empty().then(|| describe(self.scope, &format!("{name}!"), detail)).flatten();
            path.push(name.to_owned());
            return own.or_else(|| self.world(word, name).find_macro(&path).map(|e| item(&e)));
        }
        match &at.what {
            What::Member => {
                let (ty, world) = self.receiver(word)?;
                // A method may have the name of a field.
                let call = behind.trim_start().starts_with(['(', ':']);
                let all: Vec<_> = world.having(&ty).into_iter().filter(|h| h.member.name == name).collect();
                let h = all.iter().find(|h| (h.member.kind == Kind::Method) == call).or(all.first())?;
                Some(shown(&h.owner, &h.member.signature, &h.member.doc))
            }
            What::File(_) | What::Lifetime | What::Label => None,
            // The word that begins an item of a trait's, and not its name.
            What::Defined(_, ahead, _) if ahead.is_empty() => self.plain(word, &at.what, detail),
            What::Path(path) | What::Defined(path, ..) => {
                let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
                let defined = matches!(at.what, What::Defined(..));
                let world = self.world(word, if defined { "xlazy_name() {}" } else { "xlazy_name" });
                found(&world, &world.find(&path)?)
            }
            _ => self.plain(word, &at.what, detail),
        }
    }

    /// A name without a path.
    fn plain(&self, word: &Range<usize>, what: &What, detail: u8) -> Option<Bundle> {
        let name = &self.code[word.clone()];
        let typed = |signature: String| Some(Bundle::text(format!("{name}: {signature}")));
        if let Some(ty) = self.declared(word) {
            return typed(ty);
        }
        if let What::Field(path, _) = what
            && let Some(path) = without_self(path, &self.code[..word.start])
            && let Some(field) = self.world(word, "xlazy_name: 0").fields_of(&path).iter().find(|m| m.name == name)
        {
            return Some(shown(path.last()?, &field.signature, &field.doc));
        }
        let new = matches!(what, What::Nothing | What::Derive | What::Item(_) | What::Defined(..));
        let bound = bindings(&self.code[..word.end]).iter().any(|b| b == name);
        if !bound
            && !new
            && let Some(known) = describe(self.scope, name, detail)
        {
            return Some(known);
        }
        if bound && let Some(ty) = self.mentioned(word) {
            return typed(ty);
        }
        let world = self.world(word, name);
        let path = [name.to_owned()];
        let there = world.find(&path).and_then(|there| found(&world, &there));
        let keyword = || world.entries(KEYWORDS).into_iter().find(|e| e.name == name).map(|e| item(&e));
        there.or_else(keyword).or_else(|| to_import(&world, name).filter(|_| !new))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_about() {
        for (topic, want) in [
            ("Vec<u8>", "Vec"),
            ("Vec::<Vec<u8>>::new", "Vec::<Vec<u8>>::new"),
            ("HashMap::<u8, Vec<u8>>", "HashMap"),
            ("v.push(f(1), 2)", "v.push"),
            ("vec![1, 2] ", "vec!"),
            ("it.collect::<Vec<_>>()", "it.collect"),
            ("Vec", "Vec"),
            ("(1)", "(1)"),
            (")", ")"),
        ] {
            assert_eq!(without_arguments(topic), want);
        }
    }

    #[test]
    fn the_name_that_a_cursor_touches() {
        for (marked, want) in [
            ("ve¦c![1]", "vec"),
            ("vec¦![1]", "vec"),
            ("vec!¦[1]", "vec"),
            ("vec![¦1]", "nothing"),
            ("a !¦= b", "nothing"),
            ("println!(\"{a_no¦te:?}\")", "a_note"),
            ("println!(\"{a_note:¦?}\")", "nothing"),
            ("println!(\"a_no¦te\")", "nothing"),
        ] {
            let at = marked.find('¦').unwrap();
            let code = marked.replacen('¦', "", 1);
            assert_eq!(name_at(&code, at).map_or("nothing", |r| &code[r]), want, "{marked}");
        }
    }
}
