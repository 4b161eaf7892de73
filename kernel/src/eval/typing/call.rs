//! The call that the cursor is inside of, with the argument at hand marked.
use super::asked::Asked;
use super::catalog::{Kind, argument_list};
use super::cursor::{self, Call};
use super::items::describe;
use super::macros;
use super::page::{found, item, shown};
use super::ty::last;
use super::world::Found;
use std::ops::Range;
use xlazy_mime::Bundle;

pub fn around(asked: &Asked, cursor: usize) -> Option<Bundle> {
    let call = cursor::call(asked.code, cursor)?;
    let called = &asked.code[call.name.clone()];
    let (owner, signature, doc, method) = match &call {
        Call { method: true, .. } => {
            let (ty, world) = asked.receiver(&call.name)?;
            let all = world.having(&ty);
            let h = all.into_iter().find(|h| h.member.name == called && h.member.kind == Kind::Method)?;
            (h.owner, h.member.signature, h.member.doc, true)
        }
        Call { bang: true, path, .. } => {
            let there = asked.world(&call.name, "xlazy_name").find_macro(path)?;
            match macros::signature(called) {
                Some(signature) => (String::new(), signature.to_owned(), there.doc, false),
                None => return Some(item(&there)),
            }
        }
        Call { path, .. } => {
            // A closure, or a variable with one in it.
            if let ([name], Some(signature)) = (&path[..], asked.signature(&call.name)) {
                return Some(shown("", &marked(&format!("{name}: {signature}"), call.argument, false), ""));
            }
            let world = asked.world(&call.name, called);
            match world.find(path) {
                None => return describe(asked.scope, path.first().filter(|_| path.len() == 1)?, 0),
                Some(Found::Type(path)) if world.def(&path)?.text.contains('(') => {
                    let def = world.def(&path)?;
                    (String::new(), def.text.clone(), def.doc.clone(), false)
                }
                Some(Found::Item(e)) => (String::new(), e.signature, e.doc, false),
                Some(Found::Member(owner, m)) => (last(&owner).to_owned(), m.signature, m.doc, false),
                Some(other) => return found(&world, &other),
            }
        }
    };
    // What takes any number of arguments has the last one for all that follow.
    let most = signature.matches(',').count();
    let argument = if signature.contains("…") { call.argument.min(most) } else { call.argument };
    Some(shown(&owner, &marked(&signature, argument, method), &doc))
}

/// A signature with a line of carets below the argument.
fn marked(signature: &str, argument: usize, method: bool) -> String {
    // Those of a closure stand between bars.
    let bars = signature.split_once(": |").map(|(name, _)| name.len() + 2);
    let Some(open) = bars.or_else(|| argument_list(signature)) else { return signature.to_owned() };
    let mut parts: Vec<Range<usize>> = Vec::new();
    let (mut depth, mut start, mut before) = (0, open + 1, ' ');
    for (i, c) in signature[open + 1..].char_indices().map(|(i, c)| (open + 1 + i, c)) {
        match c {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | '|' if depth == 0 => {
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
        assert_eq!(at("f: |Vec<(u8, u8)>, &str| -> u8", 1, false).as_deref(), Some("&str"));
        assert_eq!(at("f: fn(i32, u8) -> u8", 0, false).as_deref(), Some("i32"));
        assert_eq!(at("fn len(&self) -> usize", 0, true), None);
        assert_eq!(at("fn len(&self) -> usize", 0, false).as_deref(), Some("&self"));
    }
}
