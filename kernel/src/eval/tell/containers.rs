//! Python's lists and dictionaries where Rust's have the same names and signs, and mean something else.
use super::change::Change;
use super::instead::{ANSWER, IN_RUST};
use super::numbers::is_number;
use super::texts::Texts;
use super::words::{Words, bare_list, inside, listed, receiver};
use crate::eval::text::scan::Kind;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// A place, what is to be written there, and what else it may be.
struct Written {
    begin: &'static str,
    at: Range<usize>,
    code: String,
    others: Vec<String>,
    note: &'static str,
}

/// Methods that Python gives something that Rust's of that name do not take: of which file of the standard library, how many
/// arguments, and what is written, with `{x}` for what it is called of and `{a}` and `{b}` for these.
const METHODS: [(&str, &str, usize, &[&str]); 2] = [
    ("/map.rs", "get", 2, &["{x}.get({a}).copied().unwrap_or({b})", "{x}.get({a}).cloned().unwrap_or({b})"]),
    ("/vec/mod.rs", "pop", 1, &["{x}.remove({a})"]),
];

/// What is told of a list or a dictionary, and the change that it is.
pub(super) fn told(error: &Diagnostic, texts: &Texts) -> Option<(String, Change)> {
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let words = Words::of(&text.text);
    let types: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
    let written = match (&*error.code, &*types) {
        ("E0061", _) => method(error, &words, &at),
        ("E0369", [left, right, ..]) if error.message.starts_with("cannot add ") && is_list(left) && is_list(right) => {
            joined(&words, &at)
        }
        ("E0369" | "E0277", [left, right, ..]) if error.message.starts_with("cannot ") => {
            repeated(&words, &at, left, right).or_else(|| of_numbers(&words, &at, left, right))
        }
        ("E0368", ["+=", of, ..]) if of.starts_with("Vec<") => extended(&words, &at),
        ("E0308", _) => number_as_tensor(error, &words, &at),
        ("E0277", ["xlazy::Shape", tuple, ..]) if error.message.starts_with("can't compare ") => {
            sizes(&words, &at, tuple)
        }
        ("E0277", [bound, ..]) => match bound.strip_prefix("xlazy::Scalar: From<") {
            Some(given) if is_list(given) => operand_as_tensor(&words, &at),
            _ => rows(&words, &at, bound),
        },
        _ => None,
    }?;
    let Written { begin, at, code, others, note } = written;
    let said = format!("{begin}`{code}`{note}");
    let change = Change::new(text, at, code);
    Some((said, Change { others: others.into_iter().chain(change.others).collect(), ..change }))
}

fn is_list(ty: &str) -> bool {
    let ty = ty.trim_start_matches('&').trim_start_matches("std::vec::");
    ty.starts_with("Vec<") || ty.starts_with('[')
}

/// A number or a `bool` that was lent where a tensor is wanted, as a position is to `index_copy`.
fn number_as_tensor(error: &Diagnostic, words: &Words, at: &Range<usize>) -> Option<Written> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?;
    let found = label.strip_prefix("expected `&Tensor`, found `")?.strip_suffix('`')?.trim_start_matches('&');
    let value = words.text.get(at.clone())?.trim_start_matches('&');
    let given = match found {
        "i32" | "i64" | "f32" | "f64" | "bool" | "{integer}" | "{float}" => value.to_owned(),
        _ if is_number(found) && !is_float(found) => format!("{} as i64", receiver(value)),
        _ => return None,
    };
    let note = ": a tensor of one element";
    Some(Written { begin: ANSWER, at: at.clone(), code: format!("&tensor([{given}])"), others: vec![], note })
}

fn method(error: &Diagnostic, words: &Words, at: &Range<usize>) -> Option<Written> {
    let name = words.at(at.start)?;
    let arguments = words.arguments(name)?;
    let end = words.tokens[arguments.end].range.end;
    let given = words.listed(arguments)?;
    let of_file = |file: &str| error.children.iter().flat_map(|c| &c.spans).any(|s| s.file.ends_with(file));
    let is = |(file, method, takes, _): &&(&str, &str, usize, &[&str])| {
        *method == words.word(name) && *takes == given.len() && of_file(file)
    };
    let (.., codes) = METHODS.iter().find(is)?;
    let dot = name.checked_sub(1)?;
    let (of, place) = words.part(words.operand_before(dot)?, dot)?;
    let last = given.last()?;
    let filled = |code: &&str| match &**last {
        // What is not there is `None` of itself.
        "None" => format!("{}.get({})", receiver(&of), given[0]),
        "-1" => format!("{}.pop().unwrap()", receiver(&of)),
        _ => code.replace("{x}", &receiver(&of)).replace("{a}", &given[0]).replace("{b}", last),
    };
    let mut all: Vec<String> = codes.iter().map(filled).collect();
    all.dedup();
    // A text that somebody owns is made of one that stands in the cell.
    if last.starts_with('"') {
        all.extend(codes.iter().map(|code| filled(code).replace(last.as_str(), &format!("{last}.to_string()"))));
    }
    let code = all.remove(0);
    Some(Written { begin: IN_RUST, at: place.start..end, code, others: all, note: "" })
}

/// `[0.0] * 10`, a list several times over, and `"-" * 40`.
fn repeated(words: &Words, at: &Range<usize>, left: &str, right: &str) -> Option<Written> {
    let sign = words.at(at.start).filter(|i| words.word(*i) == "*")?;
    let counts = |ty: &str| is_number(ty) && !is_float(ty);
    let several =
        |ty: &str| is_list(ty) || matches!(ty.trim_start_matches('&'), "str" | "std::string::String" | "String");
    let (before, behind) = (operand_before(words, sign)?..sign, sign + 1..operand(words, sign + 1)?);
    let (what, times, ty) = match (several(left) && counts(right), counts(left) && several(right)) {
        (true, _) => (before.clone(), behind.clone(), right),
        (_, true) => (behind.clone(), before.clone(), left),
        _ => return None,
    };
    let place = words.tokens[before.start].range.start..words.tokens[behind.end - 1].range.end;
    let (what, _) = words.part(what.start, what.end)?;
    let (times, _) = words.part(times.start, times.end)?;
    let times = if matches!(ty, "{integer}" | "usize") { times } else { format!("{} as usize", receiver(&times)) };
    let list = bare_list(&what);
    let one = list.starts_with('[').then(|| inside(list)).filter(|one| {
        let of = Words::of(one);
        let counted = (0..of.len()).any(|i| of.word(i) == ";" && of.within(0, i));
        of.len() > 0 && of.between_commas(0, of.len()).len() == 1 && !counted
    });
    let code = match one {
        Some(one) => format!("vec![{one}; {times}]"),
        None => format!("{}.repeat({times})", receiver(&what)),
    };
    Some(Written { begin: IN_RUST, at: place, code, others: vec![], note: "" })
}

/// `v + [1.0]`, two lists as one.
fn joined(words: &Words, at: &Range<usize>) -> Option<Written> {
    let sign = words.at(at.start)?;
    let (before, behind) = (operand_before(words, sign)?..sign, sign + 1..operand(words, sign + 1)?);
    let place = words.tokens[before.start].range.start..words.tokens[behind.end - 1].range.end;
    let all = [before, behind]
        .map(|side| Some(format!("&{}[..]", receiver(bare_list(&words.part(side.start, side.end)?.0)))));
    let [one, other] = all;
    Some(Written {
        begin: IN_RUST,
        at: place,
        code: format!("[{}, {}].concat()", one?, other?),
        others: vec![],
        note: "",
    })
}

/// `v += [1.0]`, which makes a list longer.
fn extended(words: &Words, at: &Range<usize>) -> Option<Written> {
    let first = words.at(at.start)?;
    let sign = (first..words.len()).find(|i| words.word(*i) == "+" && words.word(i + 1) == "=")?;
    let (list, _) = words.part(first, sign)?;
    let (more, end) = words.part(sign + 2, words.expression(sign + 2)?)?;
    let code = format!("{list}.extend({more})");
    Some(Written { begin: IN_RUST, at: at.start..end.end, code, others: vec![], note: "" })
}

fn is_float(ty: &str) -> bool {
    ty == "{float}" || ty.starts_with('f')
}

/// A list beside a tensor or a float, of which numpy makes an array.
fn of_numbers(words: &Words, at: &Range<usize>, left: &str, right: &str) -> Option<Written> {
    // What is added to something is named first.
    let (of, with) = if is_list(left) { (left, right) } else { (right, left) };
    let computes = |ty: &str| ty.ends_with("xlazy::Tensor") || is_float(ty);
    (is_list(of) && computes(with)).then(|| operand_as_tensor(words, at))?
}

/// The list on one side of a sign as a tensor.
fn operand_as_tensor(words: &Words, at: &Range<usize>) -> Option<Written> {
    let sign = words.at(at.start)?;
    let literal = |i: usize| matches!(words.word(i), "[" | "vec");
    let left = operand_before(words, sign)?..sign;
    let right = sign + 1..operand(words, sign + 1)?;
    let side = if literal(left.start) && !literal(right.start) { left } else { right };
    let (list, place) = words.part(side.start, side.end)?;
    let made = bare_list(&list).starts_with('[');
    let code = match made {
        true => format!("tensor({})", bare_list(&list)),
        false => format!("tensor(&{})", receiver(&list)),
    };
    Some(Written { begin: ANSWER, at: place, code, others: vec![], note: ": a list has no arithmetic" })
}

/// `x.shape() == (2, 3)`, of which Rust has an array.
fn sizes(words: &Words, at: &Range<usize>, tuple: &str) -> Option<Written> {
    let sign = words.at(at.start).filter(|_| tuple.starts_with('('))?;
    let from = sign + 2;
    let (given, place) = words.part(from, words.operand(from)?)?;
    let list = listed(&given).then(|| inside(&given).trim_end_matches([',', ' ']))?;
    let (begin, note) = (ANSWER, ": a shape is compared with an array");
    Some(Written { begin, at: place, code: format!("[{list}]"), others: vec![], note })
}

/// `tensor(edges)` of a list of pairs, whose rows are lists here.
fn rows(words: &Words, at: &Range<usize>, bound: &str) -> Option<Written> {
    let (tuple, literal) = bound.rsplit_once(": ").filter(|(ty, _)| ty.starts_with('('))?;
    if !literal.ends_with("create::Row") && literal != "Literal" {
        return None;
    }
    let types: Vec<&str> = inside(tuple).split(',').map(str::trim).filter(|ty| !ty.is_empty()).collect();
    let open = (0..words.at(at.start)?).rev().find(|i| words.word(*i) != "&").filter(|i| words.word(*i) == "(")?;
    let call = words.operand_before(open)?;
    let end = words.behind_brackets(open)? - 1;
    let place = words.tokens[call].range.start..words.tokens[end].range.end;
    let (given, argument) = words.part(open + 1, end)?;
    let one_type = types.iter().all(|ty| *ty == types[0]);
    let function = &words.text[place.start..argument.start];
    let code = match in_brackets(&given).filter(|_| one_type) {
        Some(list) => format!("{function}{list})"),
        None => {
            let names: Vec<String> = ('a'..='z').take(types.len()).map(String::from).collect();
            let each = |name: &String| if one_type { name.clone() } else { format!("{name} as f64") };
            let row = names.iter().map(each).collect::<Vec<_>>().join(", ");
            format!("{function}{}.iter().map(|&({})| [{row}]).collect::<Vec<_>>())", receiver(&given), names.join(", "))
        }
    };
    Some(Written { begin: ANSWER, at: place, code, others: vec![], note: ": its rows are lists" })
}

/// A list of pairs that stands there, as a list of lists.
fn in_brackets(list: &str) -> Option<String> {
    let all = Some(bare_list(list)).filter(|list| list.starts_with('['))?;
    let words = Words::of(inside(all));
    let row = |pair: String| listed(&pair).then(|| format!("[{}]", inside(&pair)));
    let rows = words.listed(0..words.len())?.into_iter().map(row).collect::<Option<Vec<_>>>()?;
    Some(format!("[{}]", rows.join(", ")))
}

/// Behind an operand, which may be a list that stands there.
fn operand(words: &Words, i: usize) -> Option<usize> {
    let at = i + usize::from(words.word(i) == "&");
    match (words.word(at), words.word(at + 1)) {
        ("[", _) => words.behind_brackets(at),
        ("vec", "!") => words.behind_brackets(at + 2),
        _ => words.operand(i),
    }
}

/// Where an operand begins, which may be a list that stands there.
fn operand_before(words: &Words, i: usize) -> Option<usize> {
    let ends = |open: &usize| words.word(*open) == "[" && words.behind_brackets(*open) == Some(i);
    let list = (0..i).find(ends).and_then(|open| match open.checked_sub(1) {
        None => Some(open),
        Some(before) if words.word(before) == "!" => Some(open - 2),
        // What stands behind something else is a place in it.
        Some(before) if matches!(words.word(before), "return" | "in" | "else") => Some(open),
        Some(before) if matches!(words.kind(before), Some(Kind::Ident | Kind::Close(_))) => None,
        Some(_) => Some(open),
    });
    list.or_else(|| words.operand_before(i))
}
