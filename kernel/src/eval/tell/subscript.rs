//! Python's `x[a:b, ..., None]`, and what it is in `x.i(…)`.
use super::words::{Words, bare_list, compared};
use std::ops::Range;

/// A subscript that stands around what is pointed at: where it and what it is of are, and what `i` is to be given. One number or
/// name is none: what that is has a row of the table.
pub(super) fn around(user: &Words, at: &Range<usize>) -> Option<(Range<usize>, Range<usize>, String)> {
    let all = (0..user.len()).filter_map(|open| read(user, open)).filter(|(all, of, _)| {
        // What is wrong within what it is of is about that.
        all.start <= at.start && at.end <= all.end && !(of.start <= at.start && at.end <= of.end)
    });
    all.min_by_key(|(all, ..)| all.len())
}

/// The first subscript of several dimensions, one of them a range of Python's, which only a tensor has: as [`around`].
pub(super) fn of_several(user: &Words) -> Option<(Range<usize>, Range<usize>, String)> {
    let is_slice = |text: &str| text.contains(':') && !text.contains("::");
    let several = |(all, of, given): &(Range<usize>, Range<usize>, String)| {
        given.starts_with('(') && is_slice(&user.text[of.end..all.end])
    };
    (0..user.len()).filter_map(|open| read(user, open)).find(several)
}

/// The part of a vector or a text that a range names, `v[..3]`, with a position counted from the end as one from the start.
pub(super) fn of_a_list(of: &str, given: &str) -> Option<String> {
    let place = |at: &str| match at.strip_prefix('-') {
        Some(back) => format!("{of}.len() - {back}"),
        None => at.to_owned(),
    };
    if let Some([start, end, step]) = slice(given) {
        let all = start.is_empty() && end.is_empty();
        let some = if all { of.to_owned() } else { format!("{of}[{}..{}]", place(start), place(end)) };
        let (turned, step) = match step.strip_prefix('-') {
            Some(step) => (".rev()", step),
            None => ("", step),
        };
        let step = if step == "1" { String::new() } else { format!(".step_by({step})") };
        // From behind its bounds are others.
        let fits = all || turned.is_empty();
        return fits.then(|| format!("{some}.iter(){turned}{step}.cloned().collect::<Vec<_>>()"));
    }
    let (start, end) = given.split_once("..").filter(|(start, _)| !start.contains(['(', '[', ',']))?;
    Some(format!("&{of}[{}..{}]", place(start), place(end)))
}

/// Start, end and step of an `At::Slice`, nothing for what is left out.
fn slice(given: &str) -> Option<[&str; 3]> {
    let inside = given.strip_prefix("At::Slice { start: ")?.strip_suffix(" }")?;
    let (start, rest) = inside.split_once(", end: ")?;
    let (end, step) = rest.rsplit_once(", step: ")?;
    let bare =
        |part: &'_ str| part.strip_prefix("Some(").and_then(|p| p.strip_suffix(')')).map_or(0..0, |p| 5..5 + p.len());
    Some([&start[bare(start)], &end[bare(end)], step])
}

/// What Python's subscript is of a tensor: where a dimension goes backwards, it is turned around.
pub(super) fn of_a_tensor(of: &str, given: &str) -> String {
    turned(of, given).unwrap_or_else(|| format!("{of}.i({given})"))
}

fn turned(of: &str, given: &str) -> Option<String> {
    let words = Words::of(given);
    let parts = match words.behind_brackets(0) == Some(words.len()) && words.word(0) == "(" {
        true => words.listed(1..words.len() - 1)?,
        false => vec![given.to_owned()],
    };
    let back = |part: &String| slice(part) == Some(["", "", "-1"]);
    let rest: Vec<String> = parts.iter().map(|part| if back(part) { "..".to_owned() } else { part.clone() }).collect();
    let (mut dims, mut dim, mut ellipsis) = (Vec::new(), 0, false);
    for (i, part) in parts.iter().enumerate() {
        // Behind three points dimensions are counted from the end.
        ellipsis |= part == ELLIPSIS;
        if back(part) {
            dims.push(if ellipsis { (i as i64 - parts.len() as i64).to_string() } else { dim.to_string() });
        }
        // A number takes a dimension away, and of a name nobody knows.
        match part.contains("..") || part == ELLIPSIS || slice(part).is_some() {
            true => dim += 1,
            false => part.parse::<i64>().is_ok().then_some(())?,
        }
    }
    let dims = match &dims[..] {
        [] => return None,
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    match rest.iter().all(|part| part == ".." || part == ELLIPSIS) {
        true => Some(format!("{of}.flip({dims})")),
        false => Some(format!("{of}.i({}).flip({dims})", listed(&rest))),
    }
}

const ELLIPSIS: &str = "At::Ellipsis";

/// What a place counted from the end, which is pointed at, names of a list or of a shape.
pub(super) fn from_the_end(user: &Words, at: &Range<usize>) -> Option<String> {
    let open = user.at(at.start)?.checked_sub(1).filter(|i| user.word(*i) == "[")?;
    let (of, _) = user.part(user.operand_before(open)?, open)?;
    let back = user.text.get(at.clone())?.strip_prefix('-')?.trim();
    Some(match of.strip_suffix(".shape()") {
        Some(tensor) => format!("{tensor}.size(-{back})"),
        None => format!("{of}[{of}.len() - {back}]"),
    })
}

/// Python's `x[a] = value` or `x[a] += value`.
pub(super) struct Assigned {
    pub whole: Range<usize>,
    pub of: Range<usize>,
    /// What is between the brackets, as `i` and `set` are given it.
    pub at: String,
    /// The operator in front of the sign, or nothing.
    pub op: String,
    pub value: String,
}

/// An assignment to what a subscript names that is pointed at, or something within it.
pub(super) fn assigned(user: &Words, at: &Range<usize>) -> Option<Assigned> {
    (0..user.len()).find_map(|open| {
        let of_end = before(user, open)?;
        let (of, close) = (user.operand_before(of_end)?, user.behind_brackets(open)? - 1);
        let op = match [1, 2, 3].map(|i| user.word(close + i)) {
            ["=", next, _] if next != "=" => "",
            [op @ ("+" | "-" | "*" | "/"), "=", _] => op,
            _ => return None,
        };
        let from = close + if op.is_empty() { 2 } else { 3 };
        let parts = parts(user, open, close)?;
        let (value, behind) = user.part(from, user.expression(from)?)?;
        let name = user.part(of, of_end)?.1;
        let inside = name.start <= at.start && at.end <= behind.start;
        let (whole, op) = (name.start..behind.end, op.to_owned());
        (inside && !parts.is_empty()).then(|| Assigned { whole, of: name, at: listed(&parts), op, value })
    })
}

/// A call of `i` or `set` that is given lists of places, with those as tensors: where it is, and the code. `message` is what rustc
/// says of the types that stand there.
pub(super) fn by_lists(user: &Words, at: &Range<usize>, message: &str) -> Option<(Range<usize>, String)> {
    let bound = message.strip_prefix("the trait bound `")?;
    let types = match (bound.strip_prefix("At<'_>: From<"), bound.split_once(": IndexArg<")) {
        (Some(of), _) => of.split_once(">` is not").map(|(of, _)| of)?,
        (None, Some((of, _))) => of,
        _ => return None,
    };
    let first = user.at(at.start)?;
    let open = first.checked_sub(1).filter(|i| user.word(*i) == "(")?;
    let given = user.arguments(open.checked_sub(1)?)?;
    let end = (first..given.end).find(|i| user.word(*i) == "," && user.within(first, *i)).unwrap_or(given.end);
    let tuple = types.starts_with('(');
    let inner = |all: &str| all.strip_prefix('(').and_then(|all| all.strip_suffix(')')).map(str::to_owned);
    let (types, elements) = match tuple {
        true if user.behind_brackets(first) == Some(end) => (inner(types)?, user.between_commas(first + 1, end - 1)),
        true => return None,
        false => (types.to_owned(), std::iter::once(first..end).collect()),
    };
    let types = types_of(&types);
    let is_list = |ty: &str| {
        let ty = ty.trim_start_matches('&').trim_start_matches("mut ").trim_start_matches("std::vec::");
        ty.starts_with("Vec<") || ty.starts_with('[')
    };
    let written = |(ty, one): (&String, &Range<usize>)| {
        let (text, _) = user.part(one.start, one.end)?;
        let made = text.trim_start_matches('&').starts_with('[') || text.trim_start_matches('&').starts_with("vec!");
        let of = bare_list(&text);
        Some(match is_list(ty) {
            true if made && !of.contains(';') => format!("tensor({of})"),
            true if of.ends_with(')') => format!("tensor({text})"),
            true => format!("tensor(&{of})"),
            false => text,
        })
    };
    let lists = types.iter().any(|ty| is_list(ty)) && types.len() == elements.len();
    let all = types.iter().zip(&elements).map(written).collect::<Option<Vec<_>>>().filter(|_| lists)?;
    let whole = user.operand_before(open)?;
    let place = user.tokens[whole].range.start..user.tokens[given.end].range.end;
    let (before, behind) = (
        &user.text[place.start..user.tokens[first].range.start],
        &user.text[user.tokens[end - 1].range.end..place.end],
    );
    Some((place, format!("{before}{}{behind}", listed(&all))))
}

/// The parts that commas make of the text of a tuple's type.
fn types_of(text: &str) -> Vec<String> {
    let (mut out, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += match c {
            '<' | '(' | '[' | '{' => 1,
            '>' | ')' | ']' | '}' => -1,
            _ => 0,
        };
        match out.last_mut() {
            Some(_) if c == ',' && depth == 0 => out.push(String::new()),
            Some(last) => last.push(c),
            None => {}
        }
    }
    out.iter().map(|ty| ty.trim().to_owned()).filter(|ty| !ty.is_empty()).collect()
}

fn read(user: &Words, open: usize) -> Option<(Range<usize>, Range<usize>, String)> {
    let of_end = before(user, open)?;
    let of = user.operand_before(of_end)?;
    let close = user.behind_brackets(open)? - 1;
    let parts = parts(user, open, close)?;
    let plain = |i: usize| user.word(i) != ":" && user.word(i) != ".";
    let given = match &parts[..] {
        [] => return None,
        [one] if (open + 1..close).all(plain) && *one == user.part(open + 1, close)?.0 => return None,
        all => listed(all),
    };
    let place = |from: usize, to: usize| Some(user.tokens.get(from)?.range.start..user.tokens.get(to)?.range.end);
    Some((place(of, close)?, place(of, of_end - 1)?, given))
}

/// What stands for each dimension between two brackets.
fn parts(user: &Words, open: usize, close: usize) -> Option<Vec<String>> {
    user.between_commas(open + 1, close).into_iter().map(|one| part(user, one.start, one.end)).collect()
}

/// Positions as `i` is given them: one, or a tuple.
fn listed(parts: &[String]) -> String {
    if let [one] = parts { one.clone() } else { format!("({})", parts.join(", ")) }
}

/// Where what a subscript is of ends.
fn before(user: &Words, open: usize) -> Option<usize> {
    match user.word(open) {
        "[" => Some(open),
        // Who knows `i` already, and goes on in Python.
        "(" if open > 2 && user.word(open - 1) == "i" && user.word(open - 2) == "." => Some(open - 2),
        _ => None,
    }
}

/// What stands for one dimension.
fn part(user: &Words, from: usize, to: usize) -> Option<String> {
    let text = |from: usize, to: usize| user.part(from, to).map_or(String::new(), |(text, _)| text);
    if (from..to).all(|i| user.word(i) == ".") {
        // Two are Rust's own.
        return Some(if to - from == 2 { ".." } else { ELLIPSIS }.to_owned());
    }
    let colons: Vec<usize> = (from..to).filter(|i| user.word(*i) == ":" && user.within(from, *i)).collect();
    let option = |part: String| if part.is_empty() { "None".to_owned() } else { format!("Some({part})") };
    match colons[..] {
        // A comparison in brackets is a mask.
        [] => Some(compared(text(from, to))),
        [colon] => Some(format!("{}..{}", text(from, colon), text(colon + 1, to))),
        [first, second] => {
            let (start, end) = (option(text(from, first)), option(text(first + 1, second)));
            let step = text(second + 1, to);
            let step = if step.is_empty() { "1".to_owned() } else { step };
            Some(format!("At::Slice {{ start: {start}, end: {end}, step: {step} }}"))
        }
        _ => None,
    }
}
