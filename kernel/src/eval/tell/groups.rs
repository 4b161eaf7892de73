//! `opt.param_groups`, which is a list of dictionaries in torch: the learning rates of an optimizer here.
use super::instead::ANSWER;
use super::texts::Told;
use super::words::{Words, receiver, unquoted};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// What is told of a learning rate that is read or set in its group, also of all in a loop.
pub(super) fn told(error: &Diagnostic, text: &str, at: &Range<usize>) -> Option<Told> {
    const GROUPS: &str = "param_groups";
    let start = text.get(..at.start)?.rfind('\n').map_or(0, |i| i + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    if !line.contains(GROUPS) || !matches!(&*error.code, "" | "E0599" | "E0609" | "E0616") {
        return None;
    }
    // Python's quotation marks are as long as Rust's.
    let text = if error.code.is_empty() { text.replace('\'', "\"") } else { text.to_owned() };
    let words = Words::of(&text);
    let end = start + line.len();
    let here = |i: &usize| words.word(*i) == GROUPS && (start..end).contains(&words.tokens[*i].range.start);
    let found = (0..words.len()).filter(here).find_map(|i| in_a_loop(&words, i).or_else(|| of_one(&words, i)));
    let Some((place, code, note)) = found else {
        // What reads them has a row of the table.
        if !error.code.is_empty() {
            return None;
        }
        let (of, ..) = (0..words.len()).filter(here).find_map(|i| optimizer(&words, i))?;
        return Some((
            format!(
                "what is read and set of groups is their learning rates: `{of}.lrs()` has those of all, `{of}.set_lr(0.1)` sets all to \
                 one and `{of}.set_lrs(&[…])` each"
            ),
            None,
        ));
    };
    Some((format!("{ANSWER}`{code}`{note}"), Some((place, code))))
}

/// `opt.param_groups[0]["lr"]`, read or set.
fn of_one(words: &Words, name: usize) -> Option<(Range<usize>, String, &'static str)> {
    let (of, start, behind) = optimizer(words, name)?;
    let close = words.behind_brackets(behind).filter(|_| words.word(behind) == "[")?;
    let (index, _) = words.part(behind + 1, close - 1)?;
    let behind = rate(words, close)?;
    let first = index == "0";
    let Some((op, value, end)) = assigned(words, behind) else {
        let end = words.tokens[behind - 1].range.end;
        return Some((start..end, format!("{of}.lrs()[{index}]"), ""));
    };
    let value = match op {
        "" => value,
        op => format!("{of}.lrs()[{index}] {op} {value}"),
    };
    if !first {
        let code = format!("{{ let mut all = {of}.lrs(); all[{index}] = {value}; {of}.set_lrs(&all) }}");
        return Some((start..end, code, ""));
    }
    Some((start..end, format!("{of}.set_lr({value})"), " (of all groups; `set_lrs(&[…])` sets each)"))
}

/// `for g in opt.param_groups: g["lr"] = 0.1`, with nothing else in it.
fn in_a_loop(words: &Words, name: usize) -> Option<(Range<usize>, String, &'static str)> {
    let (of, start, behind) = optimizer(words, name)?;
    let first = words.at(start)?;
    let first = (0..first).rev().find(|i| !matches!(words.word(*i), "&" | "mut"))?;
    let each = first.checked_sub(1).filter(|i| words.word(first) == "in" && words.word(i.wrapping_sub(1)) == "for")?;
    let braces = words.word(behind) == "{";
    if !braces && words.word(behind) != ":" || words.word(behind + 1) != words.word(each) {
        return None;
    }
    let (op, value, end) = assigned(words, rate(words, behind + 2)?)?;
    let mut last = words.tokens.iter().position(|t| t.range.end == end)? + 1;
    let end = match braces {
        true => {
            last += usize::from(words.word(last) == ";");
            (words.word(last) == "}").then(|| words.tokens[last].range.end)?
        }
        // More lines that stand further in are more than that.
        false => {
            let indent = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
            let line =
                words.text[..words.tokens[behind + 1].range.start].rfind('\n').map_or("", |i| &words.text[i + 1..]);
            let next = words.text[end..].split_once('\n').map_or("", |(_, next)| next.trim_start_matches('\n'));
            (next.trim().is_empty() || indent(next) < indent(line).max(1)).then_some(end)?
        }
    };
    let code = match op {
        "" => format!("{of}.set_lr({value})"),
        op => format!("{of}.set_lrs(&{of}.lrs().iter().map(|lr| lr {op} {value}).collect::<Vec<_>>())"),
    };
    Some((words.tokens[each - 1].range.start..end, code, ""))
}

/// What the groups are of, where that begins, and the token behind them.
fn optimizer(words: &Words, name: usize) -> Option<(String, usize, usize)> {
    let dot = name.checked_sub(1).filter(|i| words.word(*i) == ".")?;
    let (of, place) = words.part(words.operand_before(dot)?, dot)?;
    let call = words.word(name + 1) == "(" && words.word(name + 2) == ")";
    Some((receiver(&of).into_owned(), place.start, name + if call { 3 } else { 1 }))
}

/// Behind `["lr"]` or `.lr`.
fn rate(words: &Words, i: usize) -> Option<usize> {
    match (words.word(i), words.word(i + 1), words.word(i + 2)) {
        ("[", key, "]") if unquoted(key) == Some("lr") => Some(i + 3),
        (".", "lr", next) if next != "(" => Some(i + 2),
        _ => None,
    }
}

/// The operator of an assignment, if it has one, the value, and where it ends.
fn assigned(words: &Words, i: usize) -> Option<(&'static str, String, usize)> {
    let op = ["+", "-", "*", "/"].into_iter().find(|op| *op == words.word(i));
    let equals = i + usize::from(op.is_some());
    if words.word(equals) != "=" || words.word(equals + 1) == "=" {
        return None;
    }
    // A statement of Python's ends with its line.
    let line = words.text[words.tokens[equals].range.end..].find('\n').map(|n| words.tokens[equals].range.end + n);
    let end = words.expression(equals + 1)?;
    let end = (equals + 1..end).take_while(|i| line.is_none_or(|line| words.tokens[*i].range.start < line)).last()? + 1;
    let (value, place) = words.part(equals + 1, end)?;
    let value = match op {
        Some("*" | "/") if matches!(syn::parse_str(&value), Ok(syn::Expr::Binary(_))) => format!("({value})"),
        _ => value,
    };
    Some((op.unwrap_or_default(), value, place.end))
}
