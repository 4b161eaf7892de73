//! What is to be written at a place instead of what somebody from torch wrote there: the rows of the table that stand there, and
//! the call around it by torch's signature and ours.
use super::call::{self, Call};
use super::comprehension;
use super::division::of_floats;
use super::example;
use super::literals::{closure_that_is_given, is_rust, may_be_whole, rusty};
use super::options::{self, is_option, method_of};
use super::ours::Ours;
use super::placed;
use super::signatures::Given;
use super::stands::{LIST, NUMBER, TENSOR, subject};
use super::subscript;
use super::table::{PAGE, Row, rows};
use super::there::{OPS, in_scope, targets};
use super::words::{
    Captured, MODULES, TENSORS, Words, compared, found_at, in_rust, is_name_of_argument, is_one, receiver, tokens,
};
use crate::eval::text::scan::{Kind, Token};
use std::collections::HashSet;
use std::ops::Range;

/// How what is told begins.
pub(super) const ANSWER: &str = "in xlazy: ";
/// As [`ANSWER`], of what is Rust's own.
pub(super) const IN_RUST: &str = "in Rust: ";

/// Which rows an error may be about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum About {
    /// Those that are no Rust.
    Python,
    /// Those that name something.
    Names,
    Types,
    /// Calls of what is no function.
    Call,
}

/// A row that stands somewhere: what it says, and of what it is to be known that it is that.
pub(super) struct Found {
    pub said: String,
    /// What is to be written.
    pub code: String,
    pub at: Range<usize>,
    pub subject: Option<(Range<usize>, &'static str)>,
}

/// What says most about what stands at `at` of a line.
pub(super) fn instead(line: &str, at: Range<usize>, about: About, ours: &Ours) -> Option<Found> {
    let row = rows_at(line, &at, about, ours).into_iter().next();
    row.or_else(|| calls_at(line, &at, about, ours, true).into_iter().next())
}

/// All that is about what stands at `at` of a line, the likeliest first: rows, and the call around it by its signatures.
pub(super) fn all_instead(line: &str, at: &Range<usize>, about: About, ours: &Ours) -> Vec<Found> {
    let mut all = rows_at(line, at, about, ours);
    all.extend(calls_at(line, at, about, ours, all.is_empty()));
    all
}

/// The call around a place, by torch's signature and ours; without a session, and where no row says it, as the page of ops has it.
fn calls_at(line: &str, at: &Range<usize>, about: About, ours: &Ours, alone: bool) -> Vec<Found> {
    if about == About::Call {
        return vec![];
    }
    let user = Words::written(line);
    let mut all = match call::around(&user, at) {
        Some(call) if ours.are_known() => bound(&user, call, about, ours),
        _ if about == About::Names && alone => op(&user, at, ours).into_iter().collect(),
        _ => vec![],
    };
    // What is only told leaves what stands there.
    all.retain(|f| f.code == line[f.at.clone()] || is_rust(&f.code));
    all
}

/// The rows that are about what stands at `at` of a line, those that say most of it first.
///
/// In a row a single letter, `model`, `loss` or `opt` stands for any expression, and so does a number; `2, 3` stands for a list of any
/// length.
fn rows_at(line: &str, at: &Range<usize>, about: About, ours: &Ours) -> Vec<Found> {
    let user = Words::written(line);
    let mut all: Vec<(usize, Found)> = Vec::new();
    let here: Vec<&str> = (0..user.len()).map(|i| in_rust(user.word(i))).collect();
    let there: HashSet<&str> = here.iter().copied().collect();
    let may_stand = |row: &&Row| row.torch != row.xlazy && row.anchor().is_none_or(|anchor| there.contains(anchor));
    for row in rows().iter().filter(may_stand) {
        let (pattern, said) = (row.pattern(), row.said);
        let call = row.of_any && pattern.word(1) == "(";
        let wanted = match about {
            About::Call => call || pattern.is_library() || pattern.word(0).starts_with(char::is_uppercase),
            About::Python => !call && row.python,
            // Where a name is wrong, what is written as it is here is not what is meant.
            About::Names => !call && !row.torch.starts_with("optim::"),
            About::Types => !call,
        };
        if !wanted {
            continue;
        }
        let inside = |(_, of): &(String, Range<usize>)| of.start <= at.start && at.end <= of.end;
        let anchor = row.anchor();
        let mut begins = (0..user.len()).filter(|&i| anchor.is_none_or(|anchor| here[i] == anchor));
        let found = begins.find_map(|i| {
            let (range, captured) = found_at(&pattern, &user, i)?;
            // Of calls within calls it is the one whose callee is pointed at.
            let called = !call || captured.get(pattern.word(0)).is_some_and(inside);
            let fits =
                range.start <= at.start && at.end <= range.end && called && placed::fits(&pattern, &user, &range);
            fits.then_some((range, captured))
        });
        let Some((mut range, mut captured)) = found else { continue };
        // A field's row says nothing of a method of its name.
        let field = pattern.len() > 1 && pattern.word(pattern.len() - 2) == "." && row.of_any;
        if field && line[range.end..].starts_with('(') {
            continue;
        }
        if row.of_any && matches!(pattern.word(1), ">" | "<" | "=" | "!") {
            // All of a sum is compared.
            let all = user.sum_before(range.start)..user.sum_after(range.end);
            for (side, right) in [(pattern.word(0), false), (pattern.word(pattern.len() - 1), true)] {
                if let Some((text, of)) = captured.get_mut(side) {
                    *of = if right { of.start..all.end } else { all.start..of.end };
                    *text = line[of.clone()].to_owned();
                }
            }
            range = all;
        }
        // What is wrong within what it is called of is about that.
        if row.of_any && !call && captured.get(pattern.word(0)).is_some_and(inside) {
            continue;
        }
        let mut code = filled(&row.xlazy, &captured, ours);
        // What is done with the result stands there already.
        let taken = ["unwrap()", "expect(", "ok()", "is_ok()", "is_err()", "map_err("];
        let behind = line[range.end..].trim_start();
        if behind.starts_with('?') || behind.strip_prefix('.').is_some_and(|m| taken.iter().any(|t| m.starts_with(t))) {
            code = code.strip_suffix(".unwrap()").map(str::to_owned).unwrap_or(code);
        }
        // What a function is given that is one itself, it knows the arguments of.
        let before = &line[..range.start];
        let named = before.trim_end().ends_with('=') && before.matches('(').count() > before.matches(')').count();
        if pattern.word(0) == "lambda" && (named || before.trim_end().ends_with(['(', ','])) {
            code = closure_that_is_given(code);
        }
        if pattern.word(0) == "lambda" || (0..pattern.len()).any(|i| pattern.word(i) == "for") {
            code = of_floats(&code);
        }
        // A row of the library's own names is known by them, and `True` by itself.
        let library = pattern.is_library();
        let by_type = |(_, is): &(Range<usize>, &str)| *is != NUMBER && about == About::Types;
        let subject = subject(&pattern, &captured).filter(|of| !library || by_type(of));
        let alone = library || subject.is_none();
        let fits = match about {
            About::Python => true,
            // Of `nn::NAME` rustc points at the name.
            About::Names | About::Call => {
                !alone || !line[range.start..at.start].contains(['(', '[']) || is_name_of_argument(line, at)
            }
            About::Types => !alone || OURS.iter().any(|ours| line[range.clone()].starts_with(ours)),
        };
        if !fits || code == line[range.clone()] {
            continue;
        }
        let mut note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
        if let Some(number) = user.decided(&range).and_then(|op| compared_numbers(&pattern, &captured, op, ours)) {
            note = format!(" (`{code}` is a tensor of bools)");
            code = number;
        }
        all.push((said, Found { said: format!("{ANSWER}`{code}`{note}"), code, at: range, subject }));
    }
    all.sort_by_key(|(said, _)| std::cmp::Reverse(*said));
    let mut all: Vec<Found> = all.into_iter().map(|(_, found)| found).collect();
    if let Some((place, of, given)) = subscript::around(&user, at).filter(|_| about != About::Call) {
        let (name, given) = (receiver(&line[of.clone()]), rewritten(&given, ours));
        if let Some(code) = subscript::of_a_list(&name, &given).filter(|_| about == About::Python) {
            let said = format!("{IN_RUST}`{code}`");
            all.insert(0, Found { said, code, at: place.clone(), subject: Some((of.clone(), LIST)) });
        }
        let code = subscript::of_a_tensor(&name, &given);
        let said = format!("{ANSWER}`{code}`");
        if syn::parse_str::<syn::Expr>(&code).is_ok() && code != line[place.clone()] {
            all.insert(0, Found { said, code, at: place, subject: Some((of, TENSOR)) });
        }
    }
    if let Some(set) = subscript::assigned(&user, at).filter(|_| about != About::Call) {
        let (of, index, value) =
            (receiver(&line[set.of.clone()]), rewritten(&set.at, ours), rewritten(&set.value, ours));
        let value = match &*set.op {
            "" => value,
            op => format!("{of}.i({index}) {op} {}", if is_operand(&value) { value } else { format!("({value})") }),
        };
        let code = format!("{of}.set({index}, {value})");
        let said = format!("{ANSWER}`{code}`");
        all.insert(0, Found { said, code, at: set.whole, subject: Some((set.of, TENSOR)) });
    }
    all.retain(|found| is_rust(&found.code));
    if let Some((at, code)) = comprehension::around(&user, Some(at), &|part| rewritten(part, ours))
        .filter(|(of, _)| about == About::Python && !all.iter().any(|f| f.at.start <= of.start && of.end <= f.at.end))
    {
        let code = rusty(code);
        all.insert(0, Found { said: format!("{IN_RUST}`{code}`"), code, at, subject: None });
    }
    // What is no Rust helps nobody.
    all.retain(|found| is_rust(&found.code));
    all
}

/// A comparison that an `if` asks for, of one number.
fn compared_numbers(pattern: &Words, captured: &Captured, op: &str, ours: &Ours) -> Option<String> {
    let side = |i: usize| captured.get(pattern.word(i)).map(|(text, _)| rewritten(text, ours));
    let (left, right) = (side(0)?, side(pattern.len() - 1)?);
    let point = if right.bytes().all(|b| b.is_ascii_digit()) { ".0" } else { "" };
    // What else stands there may be a tensor, too.
    let number = right.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    number.then(|| format!("{}.item() {op} {right}{point}", receiver(&left)))
}

/// Whether an operator may stand in front of an expression.
fn is_operand(text: &str) -> bool {
    Words::of(text).operand(0) == Some(Words::of(text).len())
}

/// A call of torch's that its signature and ours say how to write, the likeliest first.
fn bound(user: &Words, call: Call, about: About, ours: &Ours) -> Vec<Found> {
    let given = in_all(given(user, call.arguments.clone(), ours));
    let of = call.of.as_ref().map(|of| rewritten(&user.text[of.clone()], ours));
    let targets = targets(call.name);
    let code = ours.call(call.name, of.as_deref(), &given, &targets).map(rusty);
    // What is trained is filled where nothing is traced, which a method of a tensor's does not do by itself.
    let fills = |code: &str| call.name.starts_with("nn.init.") && !code.starts_with("nn::init::");
    let code = code.map(|code| if fills(&code) { format!("no_grad(|| {code})") } else { code });
    let written = user.text[call.whole.clone()].to_owned();
    let Some(short) = call.name.rsplit('.').next() else { return vec![] };
    let subject = call.of.clone().map(|of| (of, TENSOR));
    let found = |said: String, code: String| Found { said, code, at: call.whole.clone(), subject: subject.clone() };
    let exactly = |code: String| found(format!("{ANSWER}`{code}`"), code);
    let code = code.filter(|code| is_rust(code));
    if code.as_ref() == Some(&written) {
        return vec![];
    }
    let mut out: Vec<Found> = code.into_iter().map(exactly).collect();
    // What is taken otherwise than in torch is told, not guessed.
    if about != About::Names || call.of.is_some() {
        return out;
    }
    if let Some(words) = given.named.iter().find_map(|(name, _)| options::in_words(name)).filter(|_| out.is_empty()) {
        return vec![found(words.to_owned(), written)];
    }
    match targets.first() {
        Some(target) => {
            // How it is made is found by asking.
            if short.starts_with(char::is_uppercase) && !ours.is_made(short) {
                out.extend(op(user, &call.whole, ours));
                if given.plain.is_empty() && given.named.is_empty() {
                    out.extend([target.clone(), format!("{target}::default()")].map(exactly));
                } else if given.named.is_empty() {
                    out.push(exactly(format!("{target}({})", given.plain.join(", "))));
                }
            }
            out.push(found(format!("{ANSWER}`{target}` (`?{target}` tells what it takes)"), written));
        }
        None if PAGE.contains(&format!(".{short}(")) || ours.has(short) => {}
        None => out.push(found(format!("xlazy has no `{short}`; docs/ops.md lists what there is"), written)),
    }
    out
}

/// What a call hands over, by position and by name.
pub(super) fn given(user: &Words, arguments: Range<usize>, ours: &Ours) -> Given {
    let mut given = Given::default();
    for Range { start, end } in user.between_commas(arguments.start, arguments.end) {
        let named = user.kind(start) == Some(Kind::Ident) && user.word(start + 1) == "=" && user.word(start + 2) != "=";
        let Some((text, _)) = user.part(if named { start + 2 } else { start }, end) else { continue };
        let value = rewritten(&text, ours);
        match named {
            true => given.named.push((user.word(start).to_owned(), value)),
            false => given.plain.push(value),
        }
    }
    given
}

/// With all steps in place of epochs and the steps of each.
fn in_all(mut given: Given) -> Given {
    let value =
        |name: &str| given.named.iter().find(|(of, _)| of == name).map(|(_, value)| receiver(value).into_owned());
    if let (Some(steps), Some(epochs)) = (value("steps_per_epoch"), value("epochs")) {
        given.named.retain(|(name, _)| !matches!(&**name, "steps_per_epoch" | "epochs"));
        given.named.push(("total_steps".to_owned(), format!("{steps} * {epochs}")));
    }
    given
}

/// What is written already as it is here, but for its arguments.
const OURS: [&str; 4] = ["nn::", "optim::", "data::", "Tensor::"];

/// A function of torch's that is a method here, or makes a tensor: `torch.NAME(x, …)`, `F.NAME(x, …)` and how somebody writes them who
/// has heard of Rust.
fn op(user: &Words, at: &Range<usize>, ours: &Ours) -> Option<Found> {
    let pointed = (0..user.len()).find(|i| user.tokens[*i].range.start == at.start)?;
    let behind_colons = |i: usize| i > 2 && user.word(i - 1) == ":" && user.word(i - 2) == ":";
    let mut first = pointed;
    while behind_colons(first) {
        first -= 3;
    }
    // Up to the name: what is in front of a point or of two colons.
    let (mut name, mut path) = (first, Vec::new());
    while let Some(next) = match (user.word(name + 1), user.word(name + 2)) {
        (".", _) => Some(name + 2),
        (":", ":") => Some(name + 3),
        _ => None,
    } {
        path.push(user.word(name));
        name = next;
    }
    let name_is = user.word(name);
    let known = |said: String| {
        let row = format!("| `{said}` | `");
        let line = OPS.lines().find_map(|line| line.strip_prefix(&row))?;
        let mut code = line.split('`').step_by(2);
        // What it is called as, and its example, if it has one.
        Some((code.next()?, line.split("| `").nth(1).and_then(|e| e.split('`').next())))
    };
    let path = if path.first() == Some(&"torch") { &path[1..] } else { &path[..] };
    let (target, shown) = match path {
        ["F"] | ["nn", "functional"] => known(format!("nn.functional.{name_is}")).or_else(|| known(name_is.to_owned())),
        [] if user.word(first) != "torch" => None,
        [] => ["", "linalg.", "special.", "fft."].iter().find_map(|module| known(format!("{module}{name_is}"))),
        ["nn" | "optim" | "utils" | "autograd" | "linalg" | "special" | "fft" | "cuda" | "amp", ..] => {
            known(format!("{}.{name_is}", path.join(".")))
        }
        ["lr_scheduler"] => known(format!("optim.lr_scheduler.{name_is}")),
        _ => None,
    }?;
    let given = user.arguments(name)?;
    let range = user.tokens[first].range.start..user.tokens[given.end].range.end;
    let (mut arguments, options) = arguments(user, given.start, given.end, ours);
    let schedule = path.last() == Some(&"lr_scheduler");
    arguments.first_mut().into_iter().filter(|a| schedule && !a.starts_with('&')).for_each(|a| a.insert(0, '&'));
    let called = target.rsplit("::").next().unwrap_or(target);
    let as_shown = shown.and_then(|e| example::arguments(e, called));
    let like = |given: &[String]| as_shown.as_deref().and_then(|e| example::like(given, e));
    let all = arguments.join(", ");
    let is_type = target.rsplit("::").next().is_some_and(|last| last.starts_with(char::is_uppercase));
    let code = match target.strip_prefix("Tensor::") {
        Some(method) if !PAGE.contains(&format!("`Tensor::{method}(")) => {
            let (subject, rest) = arguments.split_first()?;
            let rest = like(rest).unwrap_or_else(|| rest.to_vec());
            format!("{}.{method}({})", receiver(subject), rest.join(", "))
        }
        None if is_type => format!("{target}::new({all})"),
        None if !target.contains("::") => {
            format!("{}({})", in_scope(target), like(&arguments).map_or(all, |all| all.join(", ")))
        }
        _ => format!("{target}({})", like(&arguments).map_or(all, |all| all.join(", "))),
    };
    let (methods, others): (Vec<_>, Vec<_>) = options.iter().partition(|(name, _)| method_of(name, target));
    let methods: String = methods.iter().map(|(name, value)| format!(".{name}({value})")).collect();
    let code = code + &methods;
    let taken = arguments.len() - usize::from(target.starts_with("Tensor::") && code.starts_with(|c| c != 'T'));
    // As many as it takes, as far as an example shows it.
    let short = as_shown.as_ref().filter(|e| e.len() > taken && like(&arguments[arguments.len() - taken..]).is_none());
    // What it takes otherwise than torch is told, not guessed.
    let said = match short {
        Some(_) => format!("`{target}`, as in `{}`", shown.unwrap_or_default()),
        None if others.is_empty() => format!("`{code}`"),
        None => format!("`{target}` (`?{target}` tells what it takes)"),
    };
    Some(Found { said: format!("{ANSWER}{said}"), code, at: range, subject: None })
}

/// What stands between the brackets of a call, without names, and what options were named there, which are no arguments here.
fn arguments(user: &Words, from: usize, to: usize, ours: &Ours) -> (Vec<String>, Vec<(String, String)>) {
    let Given { mut plain, named } = given(user, from..to, ours);
    let (options, others): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, _)| is_option(name));
    // Python has what is named behind the rest.
    plain.extend(others.into_iter().map(|(_, value)| value));
    (plain, options)
}

/// A row's other side with what was captured.
fn filled(xlazy: &str, captured: &Captured, ours: &Ours) -> String {
    let words = Words::of(xlazy);
    let (mut out, mut end, mut i) = (String::new(), 0, 0);
    while i < words.len() {
        // A list that the row has one by one is filled so.
        let list = words.list(i).filter(|(name, _)| captured.contains_key(*name));
        let (name, width) = list.unwrap_or((words.word(i), 1));
        let range = words.tokens[i].range.start..words.tokens[(i + width - 1).min(words.len() - 1)].range.end;
        out.push_str(&xlazy[end..range.start]);
        match captured.get(name).filter(|_| words.meta(i).is_some()) {
            Some((text, _)) if name == TENSORS => out.push_str(&lent(text, ours)),
            Some((text, _)) => {
                let text = rewritten(text, ours);
                // `m` is a mask, and what has a point in the row is a float.
                let whole = words.kind(i) == Some(Kind::Number)
                    && name.contains('.')
                    && text.chars().all(|c| c.is_ascii_digit());
                let text = &match name {
                    // A tuple of one.
                    MODULES if is_one(&text) => text + ",",
                    "m" => compared(text),
                    _ if whole => text + ".0",
                    // Python's functions of numbers take whole ones, too.
                    _ if name.contains('.') && xlazy.starts_with("f64::") && may_be_whole(&text) => {
                        format!("{} as f64", receiver(&text))
                    }
                    _ => text,
                };
                // A number is not lent, and nothing is lent twice.
                let number = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
                let goes_on = |name: &&str| text.ends_with(')') && text.contains(&format!(".{name}("));
                let iterates =
                    xlazy.starts_with("for ") && ["iter", "rev", "enumerate", "zip", "step_by"].iter().any(goes_on);
                let alone = number || iterates || text.starts_with('&');
                out.truncate(out.len() - usize::from(alone && out.ends_with('&')));
                // What is lent to be changed is not lent before.
                let text = match out.ends_with("&mut ") {
                    true => text.trim_start_matches("&mut ").trim_start_matches('&'),
                    false => text,
                };
                match words.word(i + width) {
                    "." | "as" => out.push_str(&receiver(text)),
                    _ if out.ends_with('&') => out.push_str(&receiver(text)),
                    _ => out.push_str(text),
                }
            }
            None => out.push_str(&xlazy[range.clone()]),
        }
        (end, i) = (range.end, i + width);
    }
    rusty(out + &xlazy[end..])
}

/// The elements of a list, each lent.
fn lent(list: &str, ours: &Ours) -> String {
    let words = Words::of(list);
    let (elements, _) = arguments(&words, 0, words.len(), ours);
    elements.iter().map(|e| format!("&{}", e.trim_start_matches('&'))).collect::<Vec<_>>().join(", ")
}

/// What Python has and an expression within another may have, too.
pub(super) const NAMED: &[&str] =
    &["torch", "F", "nn", "optim", "range", "True", "False", "float", "math", "np", "plt", "@"];
/// What Python reads of a tensor without a call.
const PARTS: &[&str] = &["T", "H", "mT", "mH", "shape"];
/// Methods that take a shape as a list here.
const SHAPES: &[&str] = &["view", "reshape", "permute", "expand", "repeat", "tile"];

/// What the library's names in an expression are here.
pub(super) fn rewritten(text: &str, ours: &Ours) -> String {
    // An argument is asked for with each row that its call may be.
    ours.rewritten(text, rewritten_anew)
}

fn rewritten_anew(text: &str, ours: &Ours) -> String {
    let mut text = text.to_owned();
    while let Some((at, code)) = comprehension::around(&Words::of(&text), None, &|part| rewritten(part, ours)) {
        text.replace_range(at, &code);
    }
    while let Some((at, of, given)) = subscript::of_several(&Words::of(&text)) {
        let code = subscript::of_a_tensor(&receiver(&text[of]), &rewritten(&given, ours));
        text.replace_range(at, &code);
    }
    // Each is another one, and what is said may not name the library again.
    for _ in 0..8 {
        let tokens = tokens(&text);
        let library = |t: &Token| NAMED.contains(&&text[t.range.clone()]) || PARTS.contains(&&text[t.range.clone()]);
        let shape = |i: usize| {
            let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
            // A text has a method of that name.
            let of_a_text = i > 1 && tokens[i - 2].kind == Kind::Literal;
            let method = SHAPES.contains(&word(i)) && word(i.wrapping_sub(1)) == "." && !of_a_text;
            method && !matches!(word(i + 2), "(" | "[" | "&")
        };
        let known = tokens.iter().enumerate().filter(|(i, t)| library(t) || shape(*i));
        let found = known.map(|(_, t)| t).find_map(|t| {
            let about = if NAMED.contains(&&text[t.range.clone()]) { About::Names } else { About::Types };
            let found = instead(&text, t.range.clone(), about, ours)?;
            (found.code != text[found.at.clone()]).then_some((found.at, found.code))
        });
        let Some((at, code)) = found else { break };
        text.replace_range(at, &code);
    }
    text
}

#[cfg(test)]
mod tests;
