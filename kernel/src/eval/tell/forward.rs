//! Layers and losses that are called like functions, as torch has it.
use super::change::Change;
use super::instead::{ANSWER, Found, given};
use super::literals::{is_rust, rusty};
use super::ours::{Function, Ours, same};
use super::signatures::Given;
use super::texts::Texts;
use super::words::{Words, own_name, receiver};
use crate::eval::text::scan;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// A layer or a loss that is called like a function, as its type's `forward`.
pub(super) fn called(error: &Diagnostic, user: &Words, at: &Range<usize>, ours: &Ours) -> Option<Found> {
    let found = error.message.strip_prefix("expected function, found `")?.split('`').next()?;
    let ty = own_name(found.trim_start_matches('&'))?;
    let arguments = user.arguments(user.tokens.iter().position(|t| t.range.end == at.end)?)?;
    let (object, place) = (&user.text[at.clone()], at.start..user.tokens[arguments.end].range.end);
    if ours.is_function(object) {
        // A variable has its name.
        let code = format!("xlazy::prelude::{}", &user.text[place.clone()]);
        let said = format!("`{object}` is a variable here, which hides the function of that name: `{code}` calls that");
        return Some(Found { said, code, at: place, subject: None });
    }
    let code = rusty(forward(ours, ty, object, &given(user, arguments, ours))?);
    is_rust(&code).then(|| Found { said: format!("{ANSWER}`{code}`"), code, at: place, subject: None })
}

/// A layer in a field that is called like a method, `self.conv1(x)`; one that takes a state, too, begins without.
pub(super) fn field(error: &Diagnostic, user: &Words, at: &Range<usize>, ours: &Ours) -> Option<Vec<Found>> {
    let is_field = |l: &String| l.starts_with("field, not a method");
    error.spans.iter().find(|s| s.primary && s.label.as_ref().is_some_and(is_field))?;
    let name = user.tokens.iter().position(|t| t.range == *at)?;
    let arguments = user.arguments(name)?;
    let close = arguments.end;
    let start = user.tokens[user.operand_before(name.checked_sub(1)?)?].range.start;
    let arguments: Vec<String> = given(user, arguments, ours).plain.iter().map(|text| lent(text)).collect();
    let place = start..user.tokens[close].range.end;
    let found = |state: &str| {
        let code = rusty(format!("{}.forward({}{state})", &user.text[start..at.end], arguments.join(", ")));
        is_rust(&code).then(|| Found { said: format!("{ANSWER}`{code}`"), code, at: place.clone(), subject: None })
    };
    Some(["", ", None"].into_iter().filter_map(found).collect())
}

/// A struct of the notebook's that is called: as its `forward`, which it may well have, lent what it is given.
pub(super) fn own(error: &Diagnostic, texts: &Texts, is_type: &dyn Fn(&str) -> bool) -> Option<(String, Change)> {
    let found = error.message.strip_prefix("expected function, found `")?.split('`').next()?.trim_start_matches('&');
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let words = Words::of(&text.text);
    let arguments = words.arguments(words.tokens.iter().position(|t| t.range.end == at.end)?)?;
    let place = at.start..words.tokens[arguments.end].range.end;
    let here = || scan::follows(&text.text, &["struct"], found);
    let given = words.listed(arguments).filter(|_| is_type(found) || here())?;
    let names = |one: &str| one.starts_with(|c: char| c.is_alphabetic()) && one != "None";
    let lent = |one: &String| if names(one) { lent(one) } else { one.clone() };
    let call = |all: Vec<String>| format!("{}.forward({})", receiver(&text.text[at.clone()]), all.join(", "));
    let code = call(given.iter().map(lent).collect());
    // What is no tensor is handed over, and so may the last one be.
    let but_last = |(n, one): (usize, &String)| if n + 1 < given.len() { lent(one) } else { one.clone() };
    let others = [call(given.iter().enumerate().map(but_last).collect()), call(given.clone())];
    let change = Change::new(text, place, code.clone());
    let change = Change { others: others.into_iter().filter(|other| *other != code).collect(), ..change };
    is_rust(&code).then(|| (format!("{ANSWER}`{code}`"), change))
}

fn lent(text: &str) -> String {
    if text.starts_with('&') { text.to_owned() } else { format!("&{}", receiver(text)) }
}

/// `of(…)`, where torch calls what is of a type that has a `forward` of its own, or one that takes more.
fn forward(ours: &Ours, ty: &str, of: &str, given: &Given) -> Option<String> {
    ["forward", "forward_with"].into_iter().find_map(|name| {
        let function = ours.function(ty, name).filter(|f| f.of_self)?;
        Some(format!("{}.{name}({})", receiver(of), taken(ours, &function, given)?))
    })
}

/// What such a method is given.
fn taken(ours: &Ours, function: &Function, given: &Given) -> Option<String> {
    let mut plain = given.plain.iter();
    let mut arguments = Vec::new();
    for (name, ty) in &function.takes {
        let named = given.named.iter().find(|(n, _)| n == name || same(n, name)).map(|(_, value)| value);
        arguments.push(match named.or_else(|| plain.next()) {
            Some(value) => ours.converted(value, ty)?,
            None if ty.starts_with("Option<") => "None".to_owned(),
            None => {
                let masks = ty.trim_start_matches('&');
                let lent = &ty[..ty.len() - masks.len()];
                format!("{lent}{}::default()", ours.path(Some(masks).filter(|ty| ty.ends_with("Masks"))?))
            }
        });
    }
    let takes = |name: &str| function.takes.iter().any(|(ours, _)| ours == name || same(ours, name));
    let all = plain.next().is_none() && given.named.iter().all(|(name, _)| takes(name));
    all.then(|| arguments.join(", "))
}
