//! What is told where Python's habits meet Rust's own types: lists, maps, options, moves.
use super::change::Change;
use super::containers;
use super::dataset;
use super::forward;
use super::instead::{ANSWER, IN_RUST};
use super::numbers::{as_float, is_number, quotient};
use super::ours::Ours;
use super::parameters;
use super::read;
use super::retold::Known;
use super::signatures::SIGNATURES;
use super::subscript;
use super::texts::Texts;
use super::words::{Words, own_name, receiver};
use crate::eval::text::scan::Kind;
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use std::ops::Range;
use std::sync::Arc;

const QUOTIENT: &str = ": `/` of whole numbers leaves the remainder out";
const MAP: &str = "std::collections::HashMap<_, _>";

/// What is told, and the change that it is, if it is one.
pub(super) fn told(error: &Diagnostic, texts: &Texts, known: &Known) -> Option<(String, Option<Change>)> {
    if let Some((said, change)) = dataset::told(error, texts).or_else(|| dataset::of_tensors(error, texts)) {
        return Some((said, change.map(|(text, at, code)| Change::new(text, at, code))));
    }
    if let Some((said, change)) = containers::told(error, texts).or_else(|| parameters::assigned(error, texts)) {
        return Some((said, Some(change)));
    }
    let of_a_model = || forward::own(error, texts, known.is_type);
    if let Some((said, change)) = of_a_model().or_else(|| read::told(error, texts, &known.rustc)) {
        return Some((said, Some(change)));
    }
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let words = Words::of(&text.text);
    let quoted: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
    let message = &*error.message;
    let written = |begin: &str, at: Range<usize>, code: String, note: &str| {
        Some((format!("{begin}`{code}`{note}"), Some(Change::new(text, at, code))))
    };
    match (&*error.code, &*quoted) {
        ("E0277", _) if let Some((at, code)) = as_float(message, &words, &at) => {
            let note = if code.contains(" / ") { QUOTIENT } else { ": numbers of two types do not mix" };
            written(IN_RUST, at, code, note)
        }
        // A place counted from the end.
        ("E0600", ["-", "usize" | "u64" | "u32" | "u16" | "u8"])
            if let Some(of) = text.text.get(at.clone()).and_then(|minus| minus.strip_prefix('-')) =>
        {
            written(IN_RUST, at, format!("-({} as i64)", of.trim()), ": what counts is never less than nothing")
        }
        ("E0425" | "E0412" | "E0433" | "E0422" | "E0405" | "E0404", [name, ..]) => {
            let path = in_a_module(name, &known.rustc.ours).filter(|_| text.text.get(at.clone()) == Some(name))?;
            written(ANSWER, at, path, "")
        }
        ("E0599", [method, of, ..]) if message.starts_with("no method") && is_option(of) => {
            let it = called_of(&words, &at)?;
            let name = it.text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|n| !n.is_empty())?;
            let help = format!(
                "`{}` is an `Option`, since there may be none: `if let Some({name}) = {} {{ … }}` goes on with what is there, \
                 `{}.map(|{name}| {name}.{method}(…))` gives an `Option` again, and `.unwrap()` ends the cell where there is none",
                it.text, it.text, it.text
            );
            Some((help, None))
        }
        ("E0599", [method, of, ..]) if let Some(without) = own_name(of).and_then(|ty| known.rustc.ours.without(ty, method)) => {
            let it = called_of(&words, &at)?;
            let arguments = words.arguments(words.at(at.start)?)?;
            let code = match words.part(arguments.start, arguments.end).map(|(given, _)| given).as_deref() {
                Some("true") => it.text,
                Some("false") | None => format!("{}.{without}()", it.text),
                Some(given) => format!("if {given} {{ {0} }} else {{ {0}.{without}() }}", it.text),
            };
            written(ANSWER, it.start..it.end, code, "")
        }
        ("E0599", [method, of, ..]) if own_name(of) == Some("HashMap") && method.starts_with("sort") => {
            let it = called_of(&words, &at)?;
            let call = &text.text[at.start..it.end];
            let code = format!("{{ let mut all = Vec::from_iter({}.clone()); all.{call}; all }}", it.text);
            written(IN_RUST, it.start..it.end, code, ": a map has no order, and a list of its pairs has")
        }
        ("E0599", [..]) if let Some(of) = quoted.iter().find(|of| is_floats(of)) => {
            let it = called_of(&words, &at)?;
            let of = if of.contains("f32") { "f32" } else { "f64" };
            let code = of_floats(&text.text[at.clone()], &it.text, of)?;
            written(IN_RUST, it.start..it.end, code, "")
        }
        ("E0277", [bound @ ("f64: Ord" | "f32: Ord" | "{float}: Ord"), ..]) => {
            let it = called_of(&words, &at)?;
            let float = if bound.starts_with('f') { &bound[..3] } else { "f64" };
            let code = match &text.text[at.clone()] {
                // What they are sorted by is lost here.
                "sort" if text.text[at.end..it.end].contains("key") => return None,
                "sort" => {
                    let reversed = text.text[at.end..it.end].contains("reverse");
                    let by = if reversed { format!("|a, b| {float}::total_cmp(b, a)") } else { format!("{float}::total_cmp") };
                    format!("{}.sort_by({by})", it.text)
                }
                most @ ("max" | "min") => {
                    let goes = it.text.trim_end_matches(".iter()").trim_end_matches(".into_iter()");
                    let goes = if goes == it.text { it.text.clone() } else { format!("{goes}.iter().copied()") };
                    format!("{goes}.fold({float}::{}, {float}::{most})", if most == "max" { "MIN" } else { "MAX" })
                }
                _ => return None,
            };
            written(IN_RUST, it.start..it.end, code, ": floats have no order of all, because of NaN")
        }
        ("E0277", [_, index, ..]) if message.starts_with("the type `[") && message.contains("]` cannot be indexed by ") => {
            let plain = index.trim_start_matches('&');
            let open = words.at(at.start)?.checked_sub(1).filter(|i| words.word(*i) == "[")?;
            let (of, place) = words.part(words.operand_before(open)?, open)?;
            let end = words.tokens[words.behind_brackets(open)? - 1].range.end;
            if matches!(plain, "char" | "str" | "std::string::String" | "String") {
                // A `state_dict()`, or what a file has.
                if message.starts_with("the type `[(String, ") {
                    let code = format!("{of}.iter().find(|(name, _)| name == {}).unwrap().1", receiver(&text.text[at]));
                    return written(IN_RUST, place.start..end, code, ": a list of pairs");
                }
                let help = format!("`{of}` is a list, which is asked by place: `.collect::<{MAP}>()` makes a dictionary of pairs");
                return Some((help, None));
            }
            let given = receiver(&text.text[at.clone()]).into_owned();
            let sign = if index.starts_with('&') { "*" } else { "" };
            let code = match plain.ends_with("xlazy::Tensor") {
                true => format!("{of}[{given}.item_i64() as usize]"),
                false => format!("{of}[{sign}{given} as usize]"),
            };
            written(IN_RUST, place.start..end, code, ": places in a list are `usize`")
        }
        ("E0277", [bound, ..]) if bound.contains("std::ops::Range") && bound.contains("<xlazy::Tensor>") || bound.contains("<&xlazy::Tensor>") => {
            numbers_of(text, &words, &at)
        }
        // `x.item::<f32>()`
        ("E0107", _) if text.text.get(at.clone()) == Some("item") && message.starts_with("method takes 0 generic") => {
            let name = words.at(at.start)?;
            let close = (name..words.len()).find(|i| words.word(*i) == ">")?;
            let (ty, _) = words.part(name + 4, close)?;
            let end = words.tokens[words.behind_brackets(close + 1)? - 1].range.end;
            let (of, place) = words.part(words.operand_before(name - 1)?, name - 1)?;
            let goes_on = text.text[end..].trim_start().starts_with(['.', '?']);
            let cast = |code: String| if goes_on { format!("({code})") } else { code };
            let code = match &*ty {
                "f64" => format!("{of}.item()"),
                "i64" => format!("{of}.item_i64()"),
                "f32" => cast(format!("{of}.item() as f32")),
                "bool" => cast(format!("{of}.item() != 0.0")),
                other if is_number(other) => cast(format!("{of}.item_i64() as {other}")),
                _ => return None,
            };
            written(ANSWER, place.start..end, code, "")
        }
        ("E0277", _) if let Some((at, code)) = subscript::by_lists(&words, &at, message) => {
            written(ANSWER, at, code, ": a list of places is a tensor")
        }
        ("E0277", [bound, ..]) if bound.starts_with("&mut ") && bound.ends_with("Optimizer") => {
            let given = text.text.get(at.clone())?.strip_prefix("&mut ")?.to_owned();
            let open = words.at(at.start)?.checked_sub(1).filter(|i| words.word(*i) == "(")?;
            let call = words.operand_before(open).map(|i| words.tokens[i].range.start)?;
            let end = words.tokens[words.behind_brackets(open)? - 1].range.end;
            let code = format!("{}{given}{}", &text.text[call..at.start], &text.text[at.end..end]);
            written(ANSWER, call..end, code, &format!(" (`{given}` is lent already)"))
        }
        ("E0277", ["Duration" | "std::time::Duration", _]) if message.contains(" doesn't implement `std::fmt::Display`") => {
            let code = format!("{}.as_secs_f64()", receiver(text.text.get(at.clone()).filter(|of| !of.starts_with('{'))?));
            written(IN_RUST, at, code, ": its seconds, `{:?}` shows it with its unit")
        }
        ("E0277", _) if message.starts_with("the `?` operator can only be used in a closure") => Some((
            "a closure hands an error on where it gives a `Result`: `|x| -> Result<_, Box<dyn std::error::Error>> { …; Ok(…) }`, and \
             `.collect::<Result<Vec<_>, _>>()?` behind it gives the list or the error; `.unwrap()` in place of `?` ends the cell"
                .to_owned(),
            None,
        )),
        ("E0061", _) if super::elsewhere::wants_an_optimizer(error) => {
            let it = called_of(&words, &at)?;
            let Some(optimizer) = optimizer(&words, known) else {
                let help = format!("it sets the rate of an optimizer: hand that over, `{}.step(&mut opt)`", it.text);
                return Some((help, None));
            };
            // What it is given besides: the measure by which a plateau is told.
            let given = words.arguments(words.at(at.start)?).and_then(|all| words.part(all.start, all.end));
            let given = given.map(|(given, _)| format!(", {given}")).unwrap_or_default();
            let code = format!("{}.{}({optimizer}{given})", it.text, &text.text[at]);
            written(ANSWER, it.start..it.end, code, ": it sets the rate of an optimizer")
        }
        ("E0308" | "E0282", _) if let Some((at, code)) = visitor(error, &words, &at) => {
            written(ANSWER, at, code, " (of what is handed each module, `m: &dyn Module`)")
        }
        ("E0282" | "E0283", _) if message.contains("HashMap<") || error.text().contains("HashMap") => {
            let (at, code) = counted(&words, &at)?;
            written(IN_RUST, at, code, "")
        }
        ("E0594", _) if message.contains("index of `") => {
            let (at, code) = counted(&words, &at)?;
            written(IN_RUST, at, code, "")
        }
        ("E0282" | "E0283", _) => {
            let (at, code) = collected(&words, &at, error)?;
            let note = if code.contains(MAP) { " of pairs, `.collect::<Vec<_>>()` for a list" } else { "" };
            written(IN_RUST, at, code, note)
        }
        ("E0382" | "E0505", _) if !error.children.iter().any(|c| c.message.contains("clon")) => {
            let all = error.text();
            let moved = |s: &&Span| s.label.as_deref().is_some_and(|l| l.contains("moved here"));
            let (text, at) = error.spans.iter().find(moved).filter(|_| all.contains("has type `xlazy::Tensor`")).and_then(|s| texts.map(s))?;
            let code = format!("{}.clone()", text.text.get(at.clone())?);
            Some((format!("{ANSWER}`{code}` (another name of the same tensor: nothing is copied)"), Some(Change::new(text, at, code))))
        }
        ("E0308", _) if let Some((at, code)) = quotient(error, &words, &at) => written(IN_RUST, at, code, QUOTIENT),
        // The place of a map that is assigned to is handed over as it is.
        ("E0308", _) if let Some((at, code)) = assigned_in_a_map(&words, &at) => written(IN_RUST, at, code, ""),
        ("E0308", _) if lends_a_tensor(error) => {
            let calls = lent(&words, &at)?;
            let mut all: Vec<String> = calls.iter().map(|(_, code)| format!("`{code}`")).collect();
            all.dedup();
            let change = calls.into_iter().find(|(place, _)| place.start <= at.start && at.end <= place.end);
            let change = change.map(|(place, code)| Change::new(text, place, code));
            Some((format!("{ANSWER}{}: a tensor is lent", all.join(", ")), change.filter(|_| all.len() == 1)))
        }
        ("E0658", _) if message.starts_with("default values on fields") => {
            let (at, code) = defaults(&words, &at)?;
            let name = words.at(at.start).map(|i| words.word(i + 1)).unwrap_or("Self");
            written(IN_RUST, at, code, &format!("; `{name} {{ …, ..Default::default() }}` has the others"))
        }
        _ => None,
    }
}

/// `net.apply(f)`, which is lent what it calls with each module.
fn visitor(error: &Diagnostic, words: &Words, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref().unwrap_or_default();
    let first = (0..words.at(at.start)?).rev().find(|i| words.word(*i) == "(")?;
    let called = error.code == "E0282" && words.word(first.checked_sub(1)?) == "apply" && words.word(first + 1) == "|";
    let wanted = label.starts_with("expected `&mut dyn FnMut(") && !label.contains("found `&");
    let (given, place) = words.part(first + 1, words.behind_brackets(first)? - 1).filter(|_| called || wanted)?;
    Some((place, format!("&mut {given}")))
}

/// Whether a tensor stands where one is to be lent.
fn lends_a_tensor(error: &Diagnostic) -> bool {
    let label = error.spans.iter().find(|s| s.primary).and_then(|s| s.label.as_deref());
    label == Some("expected `&Tensor`, found `Tensor`")
}

/// The calls of that name that hand a variable over which is a tensor of the cell's own, each as it is with that lent.
fn lent(words: &Words, at: &Range<usize>) -> Option<Vec<(Range<usize>, String)>> {
    let open = words.at(at.start)?.checked_sub(1).filter(|i| words.word(*i) == "(")?;
    let name = words.word(open.checked_sub(1)?);
    let call = |i: usize| {
        let given = words.arguments(i).filter(|_| words.word(i) == name && words.word(i.wrapping_sub(1)) == ".")?;
        let first = words.word(given.start);
        let alone = words.kind(given.start) == Some(Kind::Ident) && matches!(words.word(given.start + 1), ")" | ",");
        // One that is a parameter is lent already, mostly.
        let declares = |n: usize| words.word(n) == "let" && [n + 1, n + 2].iter().any(|n| words.word(*n) == first);
        let before = (0..i).rev().find(|n| words.word(*n) == ";").unwrap_or(0);
        let own = (0..before).any(declares);
        let first_of_all = words.operand_before(i - 1)?;
        let place = words.tokens[first_of_all].range.start..words.tokens[given.end].range.end;
        let argument = &words.tokens[given.start].range;
        let here = *argument == *at;
        let code = format!("{}&{}", &words.text[place.start..argument.start], &words.text[argument.start..place.end]);
        (alone && (own || here)).then_some((place, code))
    };
    let all: Vec<(Range<usize>, String)> = (1..words.len()).filter_map(call).collect();
    all.iter().any(|(place, _)| place.start <= at.start && at.end <= place.end).then_some(all)
}

/// What a method is called of, and where the whole call is.
struct Called {
    text: String,
    start: usize,
    end: usize,
}

fn called_of(words: &Words, name: &Range<usize>) -> Option<Called> {
    let name = words.at(name.start)?;
    let dot = name.checked_sub(1).filter(|i| words.word(*i) == ".")?;
    let (text, at) = words.part(words.operand_before(dot)?, dot)?;
    let end = words.arguments(name).map_or(name, |arguments| arguments.end);
    Some(Called { text, start: at.start, end: words.tokens[end].range.end })
}

fn is_option(ty: &str) -> bool {
    let ty = ty.trim_start_matches('&');
    ty.starts_with("Option<") || ty.starts_with("std::option::Option<")
}

fn is_floats(ty: &str) -> bool {
    let ty = ty.trim_start_matches('&').trim_start_matches("mut ").trim_start_matches("std::vec::");
    ["f64", "f32"]
        .iter()
        .any(|f| ty == format!("Vec<{f}>") || ty == format!("[{f}]") || ty.starts_with(&format!("[{f}; ")))
}

/// A sum of a list of floats, or what is like it.
fn of_floats(method: &str, of: &str, float: &str) -> Option<String> {
    let of_all = receiver(of);
    let lent = if of.starts_with('&') { of.to_owned() } else { format!("&{of_all}") };
    Some(match method {
        "mean" => format!("{of_all}.iter().sum::<{float}>() / {of_all}.len() as {float}"),
        "sum" => format!("{of_all}.iter().sum::<{float}>()"),
        "max" => format!("{of_all}.iter().copied().fold({float}::MIN, {float}::max)"),
        "min" => format!("{of_all}.iter().copied().fold({float}::MAX, {float}::min)"),
        "std" | "var" | "median" => format!("tensor({lent}).{method}().item()"),
        _ => return None,
    })
}

/// A name of ours with the module that it is in: `data::DataLoader`.
fn in_a_module(name: &str, ours: &Ours) -> Option<String> {
    const MODULES: [&str; 4] = ["data", "optim", "nn", "models"];
    let exactly = ours.path_of(name).filter(|path| path.rsplit_once("::").is_some_and(|(m, _)| MODULES.contains(&m)));
    // A name with a capital is a type's, however the others are.
    let like = || {
        let mut paths = MODULES.iter().map(|module| format!("{module}::{name}"));
        paths.find_map(|path| ours.path_like(&path)).filter(|_| name.starts_with(char::is_uppercase))
    };
    exactly.or_else(like).map(str::to_owned)
}

/// `data.i(i..i + 2)` of a tensor `i` that comes of another one: its numbers are what is gone through.
fn numbers_of(text: &Arc<CellText>, words: &Words, at: &Range<usize>) -> Option<(String, Option<Change>)> {
    let place = words.at(at.start)?;
    let name = (place..words.len())
        .take_while(|i| words.tokens[*i].range.end <= at.end)
        .find(|i| words.kind(*i) == Some(Kind::Ident) && words.word(i.wrapping_sub(1)) != ".")?;
    let name = words.word(name);
    let plain = format!(
        "a range is of numbers: `{name}.item_i64()` is that of a tensor, and `.to_vec::<i64>()` are all of one"
    );
    // Where it was bound: `for i in x`, `x.iter().map(|i| …)`.
    let source = (0..place).rev().find_map(|i| {
        if words.word(i) == "in" && words.word(i - 1) == name {
            let end = (i + 1..place).find(|end| words.word(*end) == "{")?;
            return words.part(i + 1, end);
        }
        let closure = words.word(i) == "|" && words.word(i + 1) == name && words.word(i + 2) == "|";
        let dot = i.checked_sub(3).filter(|dot| closure && words.word(*dot) == ".")?;
        words.part(words.operand_before(dot)?, dot)
    });
    let Some((of, place)) = source else { return Some((plain, None)) };
    let of = of.trim_start_matches('&');
    let of = [".iter()", ".into_iter()", ".iter().cloned()"].iter().find_map(|end| of.strip_suffix(end)).unwrap_or(of);
    let goes = if text.text[place.end..].starts_with('.') { ".into_iter()" } else { "" };
    let code = format!("{}.to_vec::<i64>(){goes}", receiver(of));
    Some((format!("{ANSWER}`{code}` (numbers, of which a range is)"), Some(Change::new(text, place, code))))
}

/// The optimizer that a cell or an earlier one has, lent.
fn optimizer(words: &Words, known: &Known) -> Option<String> {
    let is = |name: &str| SIGNATURES.contains_key(&*format!("optim.{name}"));
    // `opt: &mut optim::SGD`, `let mut opt = optim::SGD::new(…)`.
    let here = (0..words.len()).rev().filter(|i| is(words.word(*i))).find_map(|mut i| {
        while i > 0 && matches!(words.word(i - 1), ":" | "optim" | "xlazy" | "mut" | "&") {
            i -= 1;
            if words.word(i) == ":" && words.kind(i - 1) == Some(Kind::Ident) && words.word(i - 1) != "optim" {
                return Some(words.word(i - 1).to_owned());
            }
        }
        let name = i.checked_sub(2).filter(|n| words.word(n + 1) == "=")?;
        Some(format!("&mut {}", words.word(name)))
    });
    let of_a_type = |name: &&&str| {
        (known.rustc.type_of)(name).is_some_and(|ty| ty.contains("optim::") && ty.rsplit("::").next().is_some_and(is))
    };
    here.or_else(|| known.vars.iter().find(of_a_type).map(|name| format!("&mut {name}")))
}

/// `counts[word] += 1` of a map, which has no place for what is not there: of the map that an error is about, or that stands there.
fn counted(words: &Words, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let first = words.at(at.start)?;
    let first = first + usize::from(words.word(first) == "mut");
    let name = words.word(first);
    (first..words.len()).filter(|i| words.word(*i) == name && words.word(i + 1) == "[").find_map(|i| {
        let close = words.behind_brackets(i + 1)?;
        let (key, _) = words.part(i + 2, close - 1)?;
        let sign = Some(words.word(close)).filter(|sign| "+-*/".contains(*sign) && !sign.is_empty());
        let assigned = close + usize::from(sign.is_some());
        let end = words
            .expression(assigned + 1)
            .filter(|_| words.word(assigned) == "=" && words.word(assigned + 1) != "=")?;
        // Up to the end of its block.
        let (value, to) = words.part(assigned + 1, end)?;
        let code = match sign {
            Some(sign) => {
                let none = if value.contains('.') { "0.0" } else { "0" };
                format!("*{name}.entry({key}).or_insert({none}) {sign}= {value}")
            }
            None => format!("{name}.insert({key}, {value})"),
        };
        Some((words.tokens[i].range.start..to.end, code))
    })
}

fn assigned_in_a_map(words: &Words, key: &Range<usize>) -> Option<(Range<usize>, String)> {
    let open = words.at(key.start)?.checked_sub(1).filter(|i| words.word(*i) == "[")?;
    let of = words.operand_before(open).filter(|of| of + 1 == open && words.behind_brackets(open).is_some())?;
    counted(words, &words.tokens[of].range)
}

/// `.collect()` that does not say what it makes: of pairs a map.
fn collected(words: &Words, at: &Range<usize>, error: &Diagnostic) -> Option<(Range<usize>, String)> {
    let said = error.text();
    if !said.contains(": Vec<_>")
        && !said.contains("FromIterator")
        && !error.children.iter().flat_map(|c| &c.spans).any(|s| s.replacement.as_deref() == Some(": Vec<_>"))
    {
        return None;
    }
    let first = words.at(at.start)?;
    let end = (first..words.len()).find(|i| words.word(*i) == ";").unwrap_or(words.len());
    let collect =
        (first..end).find(|i| words.word(*i) == "collect" && words.word(i + 1) == "(" && words.word(i + 2) == ")")?;
    let dot = collect.checked_sub(1)?;
    let open = (0..dot).rev().find(|open| words.behind_brackets(*open) == Some(dot))?;
    // `.map(|(i, c)| (c, i))`, `.enumerate()`, `.zip(…)`.
    let bar = (open + 2..dot).find(|i| words.word(*i) == "|" && words.within(open + 1, *i));
    let pair = match words.word(open.wrapping_sub(1)) {
        "enumerate" | "zip" => true,
        _ => bar.is_some_and(|bar| words.word(bar + 1) == "(" && words.behind_brackets(bar + 1) == Some(dot - 1)),
    };
    let made = if pair { MAP } else { "Vec<_>" };
    Some((words.tokens[dot].range.start..words.tokens[collect + 2].range.end, format!(".collect::<{made}>()")))
}

/// `struct Config { n: usize = 3 }` with an `impl Default`.
fn defaults(words: &Words, at: &Range<usize>) -> Option<(Range<usize>, String)> {
    let here = words.tokens.iter().position(|t| t.range.end >= at.end)?;
    let open = (0..here).rev().find(|i| words.word(*i) == "{")?;
    let close = words.behind_brackets(open)? - 1;
    let (name, keyword) =
        (words.word(open.checked_sub(1)?), open.checked_sub(2).filter(|i| words.word(*i) == "struct")?);
    let field = |one: Range<usize>| {
        let equals = (one.clone()).find(|i| words.word(*i) == "=");
        let colon = one.clone().find(|i| words.word(*i) == ":")?;
        let value = match equals {
            Some(equals) => words.part(equals + 1, one.end)?.0,
            None => "Default::default()".to_owned(),
        };
        let declared = words.part(one.start, equals.unwrap_or(one.end))?.0;
        Some((declared, format!("{}: {value}", words.word(colon.checked_sub(1)?))))
    };
    let all = words.between_commas(open + 1, close).into_iter().map(field).collect::<Option<Vec<_>>>()?;
    let (declared, values): (Vec<String>, Vec<String>) = all.into_iter().unzip();
    let code = format!(
        "struct {name} {{ {} }} impl Default for {name} {{ fn default() -> Self {{ {name} {{ {} }} }} }}",
        declared.join(", "),
        values.join(", ")
    );
    Some((words.tokens[keyword].range.start..words.tokens[close].range.end, code))
}
