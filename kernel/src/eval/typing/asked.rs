//! A cell's Rust that something is asked about: what can be named in it, and the types of names.
use super::bindings::bindings;
use super::complete::{Names, Typist};
use super::cursor::{self, Cursor, What};
use super::probe::{self, METHOD};
use super::repair::{parse, repaired};
use super::scope::InScope;
use super::sites::asked_at;
use super::ty::Ty;
use super::world::World;
use crate::eval::text::scan::{Kind as Token, tokens};
use std::ops::Range;

#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub typist: &'a Typist,
    pub scope: &'a InScope,
    pub names: Names<'a>,
    pub code: &'a str,
}

impl Asked<'_> {
    /// All that can be named, with something else in place of a word.
    pub fn world(&self, word: &Range<usize>, instead: &str) -> World {
        let at = Cursor { word: word.clone(), what: What::Name, import: false };
        self.typist.around(self.scope, self.names, self.code, &at, instead).world
    }

    /// The type of what stands before the dot in front of a word.
    pub fn receiver(&self, word: &Range<usize>) -> Option<(Ty, World)> {
        let at = Cursor { word: word.clone(), what: What::Member, import: false };
        let around = self.typist.around(self.scope, self.names, self.code, &at, &format!("{METHOD}()"));
        Some((self.typist.receiver(self.scope, &around)?, around.world))
    }

    /// The type of a name that a pattern binds there.
    pub fn declared(&self, word: &Range<usize>) -> Option<String> {
        let name = &self.code[word.clone()];
        if name.starts_with(char::is_uppercase) {
            return None;
        }
        let (text, block) = repaired(self.code, word, name)?;
        if asked_at(&text, &block, word, "").is_none() {
            // What a macro is given is read as a tuple.
            let code = self.without_macro(word.start)?;
            return Asked { code: &code, ..*self }.declared(word);
        }
        self.said(name, &|question| {
            let text = asked_at(&text, &block, word, question)?;
            parse(&text).map(|block| (text, block))
        })
    }

    /// The type of a name where it is mentioned.
    pub fn mentioned(&self, word: &Range<usize>) -> Option<String> {
        let name = &self.code[word.clone()];
        if let Some(text) = tokens(self.code).iter().find(|t| t.kind == Token::Literal && t.range.contains(&word.start))
        {
            // In a format string: the name stands in its place.
            let mut code = self.without_macro(word.start)?;
            code.replace_range(text.range.clone(), name);
            let word = text.range.start..text.range.start + name.len();
            return Asked { code: &code, ..*self }.mentioned(&word);
        }
        self.said(name, &|question| repaired(self.code, word, question))
    }

    /// The code with blanks for the name and the mark of the macro around a place.
    fn without_macro(&self, at: usize) -> Option<String> {
        let call = cursor::macro_around(self.code, at)?;
        let mut code = self.code.to_owned();
        code.replace_range(call.clone(), &" ".repeat(call.len()));
        Some(code)
    }

    /// The type of a name in a cell that asks rustc a question where the name is in scope; of a closure, what it takes and gives.
    fn said(&self, name: &str, cell: &dyn Fn(&str) -> Option<(String, syn::Block)>) -> Option<String> {
        let ty = self.typist.type_in(self.scope, &cell(&format!("{name}.{METHOD}()"))?)?;
        let signature = || self.typist.type_in(self.scope, &cell(&probe::called(name))?);
        let closure = ty.is_closure().then(signature).flatten();
        Some(closure.and_then(|s| as_closure(&s)).unwrap_or_else(|| ty.to_string()))
    }

    /// What a variable takes and gives that is called there.
    pub fn signature(&self, word: &Range<usize>) -> Option<String> {
        let name = &self.code[word.clone()];
        let bound = bindings(&self.code[..word.end]).iter().any(|b| b == name);
        (bound || self.scope.vars.iter().any(|v| v.name == name)).then_some(())?;
        let ask = |question: &str| self.typist.type_in(self.scope, &repaired(self.code, word, question)?);
        match ask(&format!("{name}.{METHOD}()"))? {
            Ty::Function(text) => Some(text),
            _ => as_closure(&ask(&probe::called(name))?),
        }
    }
}

/// `|Note, u8| -> u8`
fn as_closure(signature: &Ty) -> Option<String> {
    let [Ty::Tuple(takes), gives] = signature.args() else { return None };
    let takes: Vec<String> = takes.iter().map(Ty::to_string).collect();
    let gives = if *gives == Ty::Tuple(Vec::new()) { String::new() } else { format!(" -> {gives}") };
    Some(format!("|{}|{gives}", takes.join(", ")))
}
