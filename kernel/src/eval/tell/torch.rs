//! What somebody who knows PyTorch has written, and what it is here: the table of the page for people (`docs/from-pytorch.md`) is
//! the one that errors are looked up in.
use super::asked::{Asked, Candidate, Rustc, Taken, ask, place, tried};
use super::blocks::with_body;
use super::change::Change;
use super::elements;
use super::groups;
use super::instead::{ANSWER, About, Found, all_instead, given};
use super::literals::{is_rust, rusty};
use super::no_grad;
use super::python::of_python;
use super::signatures::{Ours, SIGNATURES};
use super::stands::TENSOR;
use super::texts::{Texts, Told};
use super::there::{names, unknown_value};
use super::words::{Words, around, own_name, receiver};
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;

/// Errors about names, and about types; what others say is about what comes after those are known.
pub(super) const NAMES: [&str; 7] = ["E0405", "E0412", "E0423", "E0425", "E0432", "E0433", "E0531"];
const TYPES: [&str; 20] = [
    "E0061", "E0067", "E0070", "E0277", "E0282", "E0283", "E0308", "E0369", "E0599", "E0600", "E0604", "E0605",
    "E0606", "E0608", "E0609", "E0610", "E0614", "E0615", "E0616", "E0618",
];

/// What is told of an error, and as a change of the cell where it is one.
pub(super) struct Hint {
    pub said: String,
    pub change: Option<Change>,
}

impl Hint {
    fn of(candidate: &Candidate) -> Hint {
        Hint { said: candidate.said.clone(), change: candidate.change.clone() }
    }
}

/// What to write instead of what rustc points at, for each error: where a row of the table stands there, and rustc says that it is
/// about what the row is about. A vector that is indexed wrongly hears what rustc has to say about vectors.
pub(super) fn hints(errors: &[&Diagnostic], texts: &Texts, rustc: &Rustc) -> Vec<Option<Hint>> {
    // Where a cell does not parse, what is told of it has no variables.
    let parses = errors.iter().all(|e| !e.code.is_empty());
    let unknown: Vec<&str> = errors.iter().filter(|_| parses).filter_map(|e| unknown_value(e)).collect();
    let candidates: Vec<Vec<Candidate>> =
        errors.iter().map(|e| candidates(e, &unknown, texts, rustc).unwrap_or_default()).collect();
    let mut chosen: Vec<Option<&Candidate>> = vec![None; errors.len()];
    let mut spare = chosen.clone();
    // Where the first is about something else, or rustc does not take it, the next may be it: `x.cuda()` of a tensor, or of a model.
    for round in 0..candidates.iter().map(Vec::len).max().unwrap_or(0) {
        let open: Vec<Option<&Candidate>> =
            candidates.iter().zip(&chosen).map(|(all, said)| all.get(round).filter(|_| said.is_none())).collect();
        let mut asked: Vec<&Asked> = Vec::new();
        for question in open.iter().flatten().filter_map(|c| c.asks.as_ref()) {
            if !asked.contains(&question) {
                asked.push(question);
            }
        }
        let answers = if asked.is_empty() { Vec::new() } else { ask(&asked, texts, rustc) };
        let answer = |c: &Candidate| match &c.asks {
            Some(question) => asked.iter().position(|a| *a == question).and_then(|i| *answers.get(i)?),
            None => Some(true),
        };
        let fits: Vec<Option<&Candidate>> =
            open.into_iter().map(|c| c.filter(|c| answer(c).unwrap_or(c.python))).collect();
        let taken = tried(&fits, &chosen, texts, rustc);
        for (i, candidate) in fits.into_iter().enumerate() {
            match taken[i] {
                Taken::Yes => chosen[i] = chosen[i].or(candidate),
                Taken::OtherTypes => spare[i] = spare[i].or(candidate),
                Taken::No => {}
            }
        }
    }
    chosen.iter().zip(spare).map(|(one, other)| one.or(other).map(Hint::of)).collect()
}

/// The rows that stand where an error points, the likeliest first.
fn candidates(error: &Diagnostic, unknown: &[&str], texts: &Texts, rustc: &Rustc) -> Option<Vec<Candidate>> {
    const MOST: usize = 5;
    let told = |(said, change): Told, text| {
        let change = change.map(|(at, code)| Change::new(text, at, code));
        Some(vec![Candidate { said, asks: None, python: true, code: None, change }])
    };
    let span = error.spans.iter().find(|s| s.primary)?;
    let (text, at) = texts.map(span)?;
    if let Some(other) = no_grad::told(error, &text.text, &at).or_else(|| groups::told(error, &text.text, &at)) {
        return told(other, text);
    }
    let about = match &*error.code {
        "" => About::Python,
        "E0618" => About::Call,
        code if NAMES.contains(&code) => About::Names,
        code if TYPES.contains(&code) => About::Types,
        _ => return None,
    };
    let (line, in_line) = around(&text.text, at.clone())?;
    let python = about == About::Python;
    if python && let Some(written) = of_python(error, &text.text, &at, &rustc.ours) {
        return told(written, text);
    }
    // Nobody but who knows Python names an argument.
    let named = || {
        let word = text.text[at.end..].trim_start();
        error.message.starts_with("cannot find value") && word.starts_with('=') && !word.starts_with("==")
    };
    let habit = python || named();
    let candidate = |found: Found| {
        let found = with_types(found, &text.text[..at.start], rustc);
        let said = found.said;
        let first = at.start - in_line.start;
        let here = |r: &Range<usize>| place(texts.source, text, first + r.start..first + r.end).filter(|_| span.ours);
        let is_new = found.code != line[found.at.clone()];
        let there = first + found.at.start..first + found.at.end;
        // A head that has a body has it in what is advised, too.
        let is_known = |name: &str| (rustc.type_of)(name).is_some();
        let whole = Some(()).filter(|_| python && found.code.contains("{}"));
        if let Some((there, code)) =
            whole.and_then(|()| with_body(&text.text, &there, &found.code, &rustc.ours, &is_known))
        {
            let said = said.replace(&found.code, &code);
            return Some(Candidate {
                said,
                asks: None,
                python,
                code: None,
                change: Some(Change::new(text, there, code)),
            });
        }
        let change = is_new.then(|| Change::new(text, there, found.code.clone()));
        let code = here(&found.at).filter(|_| is_new && !python).map(|place| (place, found.code));
        let Some((subject, is)) = found.subject else {
            return Some(Candidate { said, asks: None, python, code, change });
        };
        match (here(&subject), here(&found.at)) {
            // The source has no variables of earlier cells where the cell does not parse.
            _ if python
                && is == TENSOR
                && (rustc.type_of)(&line[subject.clone()]).is_some_and(|t| !t.ends_with("Tensor")) =>
            {
                None
            }
            (Some(at), Some(whole)) => {
                let whole = if python { whole } else { at.clone() };
                Some(Candidate { said, asks: Some(Asked { at, whole, is }), python: habit, code, change })
            }
            _ => python.then_some(Candidate { said, asks: None, python, code, change }),
        }
    };
    let words = Words::written(line);
    let layer = match about {
        About::Call => called(error, &words, &in_line, &rustc.ours).into_iter().collect(),
        About::Types => field(error, &words, &in_line, &rustc.ours).unwrap_or_default(),
        _ => Vec::new(),
    };
    let all = layer.into_iter().chain(all_instead(line, &in_line, about, &rustc.ours));
    let all = all.chain(without_module(error, line, &in_line, &rustc.ours));
    // What names what is not there helps nobody.
    let there = |f: &Found| f.code == line[f.at.clone()] || !unknown.iter().any(|name| names(&f.code, name));
    Some(all.filter(there).filter_map(candidate).take(MOST).collect())
}

/// What reads a tensor's elements with the type that they have, where that is known.
fn with_types(found: Found, before: &str, rustc: &Rustc) -> Found {
    const NOTE: &str = "with the tensor's own type; ";
    match elements::typed(&found.code, before, rustc) {
        Some(code) => Found { said: found.said.replace(&found.code, &code).replace(NOTE, ""), code, ..found },
        None => found,
    }
}

/// What is told of a function that is not there, and that torch's or its functional module has: `from torch import randn`.
fn without_module(error: &Diagnostic, line: &str, at: &Range<usize>, ours: &Ours) -> Vec<Found> {
    let (before, from) = line.split_at(at.start);
    let of = |module: &str| SIGNATURES.get(&*format!("{module}.{}", &line[at.clone()]));
    let bare = error.message.starts_with("cannot find function") && !before.trim_end().ends_with([':', '.']);
    let modules = [("torch", "torch."), ("nn.functional", "F.")].into_iter().filter(|_| bare);
    let Some((module, known)) = modules.filter_map(|(name, module)| Some((module, of(name)?))).next() else {
        return vec![];
    };
    // `max(1, 2)` and `sqrt(2.0)` are somebody's who knows other libraries.
    let words = Words::of(line);
    let first = words.tokens.iter().position(|t| t.range.end == at.end).and_then(|name| {
        let arguments = words.arguments(name)?;
        let first = words.between_commas(arguments.start, arguments.end).into_iter().next()?;
        Some((words.part(first.start, first.end)?.1, TENSOR))
    });
    let subject = match (known.iter().any(|t| t.makes() || t.joins()), first) {
        (true, _) => None,
        (false, None) => return vec![],
        (false, first) => first,
    };
    let back = |i: usize| if i > at.start { i.saturating_sub(module.len()).max(at.start) } else { i };
    let back = |r: Range<usize>| back(r.start)..back(r.end);
    let named = at.start..at.start + module.len() - 1;
    let all = all_instead(&format!("{before}{module}{from}"), &named, About::Names, ours).into_iter();
    let about = |f: &Found| f.subject.clone().map(|(of, is)| (back(of), is)).or_else(|| subject.clone());
    all.map(|f| Found { at: back(f.at.clone()), subject: about(&f), ..f }).collect()
}

/// A layer or a loss that is called like a function, as its type's `forward`.
fn called(error: &Diagnostic, user: &Words, at: &Range<usize>, ours: &Ours) -> Option<Found> {
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
    let code = rusty(ours.forward(ty, object, &given(user, arguments, ours))?);
    is_rust(&code).then(|| Found { said: format!("{ANSWER}`{code}`"), code, at: place, subject: None })
}

/// A layer in a field that is called like a method, `self.conv1(x)`; one that takes a state, too, begins without.
fn field(error: &Diagnostic, user: &Words, at: &Range<usize>, ours: &Ours) -> Option<Vec<Found>> {
    let is_field = |l: &String| l.starts_with("field, not a method");
    error.spans.iter().find(|s| s.primary && s.label.as_ref().is_some_and(is_field))?;
    let name = user.tokens.iter().position(|t| t.range == *at)?;
    let arguments = user.arguments(name)?;
    let close = arguments.end;
    let start = user.tokens[user.operand_before(name.checked_sub(1)?)?].range.start;
    let borrowed = |text: String| match text.starts_with('&') {
        true => text,
        false => format!("&{}", receiver(&text)),
    };
    let arguments: Vec<String> = given(user, arguments, ours).plain.into_iter().map(borrowed).collect();
    let place = start..user.tokens[close].range.end;
    let found = |state: &str| {
        let code = rusty(format!("{}.forward({}{state})", &user.text[start..at.end], arguments.join(", ")));
        is_rust(&code).then(|| Found { said: format!("{ANSWER}`{code}`"), code, at: place.clone(), subject: None })
    };
    Some(["", ", None"].into_iter().filter_map(found).collect())
}
