//! What somebody who knows PyTorch has written, and what it is here: the table of the page for people (`docs/from-pytorch.md`) is
//! the one that errors are looked up in.
use super::asked::{Asked, Candidate, Rustc, Taken, ask, place, tried};
use super::blocks::with_body;
use super::change::Change;
use super::elements;
use super::forward::{called, field};
use super::groups;
use super::instead::{ANSWER, About, Found, IN_RUST, all_instead, given};
use super::literals::is_rust;
use super::no_grad;
use super::ordered;
use super::ours::Ours;
use super::packed;
use super::python::of_python;
use super::signatures::SIGNATURES;
use super::stands::TENSOR;
use super::texts::{Texts, Told};
use super::there::{names, unknown_value};
use super::words::{Words, around};
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
    // What is known by more than the line that rustc points at, and may be one of several.
    if let Some((said, place, all)) = of_more(error, &text.text, &at, &rustc.ours) {
        let mut all = all.into_iter();
        let first = all.next().map(|code| Change::new(text, place, code));
        let change = first.map(|first| Change { others: all.chain(first.others).collect(), ..first });
        return Some(vec![Candidate { said, asks: None, python: true, code: None, change }]);
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
        let whole = Some(()).filter(|_| python && found.code.contains("{}") && !found.code.contains("\"{"));
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
        About::Types => match field(error, &words, &in_line, &rustc.ours) {
            Some(fields) => fields,
            None => as_function(error, &words, &in_line, &rustc.ours).unwrap_or_default(),
        },
        About::Names => {
            let dtype = of_a_dtype(error, &in_line, &rustc.ours).into_iter();
            dtype.chain(otherwise_spelled(line, &in_line, &rustc.ours)).collect()
        }
        _ => Vec::new(),
    };
    let all = layer.into_iter().chain(all_instead(line, &in_line, about, &rustc.ours));
    let all = all.chain(without_module(error, line, &in_line, &rustc.ours));
    // What names what is not there helps nobody, unless it is the user's own name, which has an error of its own.
    let own = |f: &Found, name: &str| {
        let (words, here) = (Words::of(line), &f.at);
        let inside = |i: &usize| here.start <= words.tokens[*i].range.start && words.tokens[*i].range.end <= here.end;
        let named = |i: usize| words.word(i + 1) == "=" && words.word(i + 2) != "=";
        // A name with a capital is of something that other libraries have.
        let is_variable = name.starts_with(char::is_lowercase) && unknown_value(error) != Some(name);
        is_variable
            && names(&line[here.clone()], name)
            && !(0..words.len()).filter(inside).any(|i| words.word(i) == name && named(i))
    };
    let there =
        |f: &Found| f.code == line[f.at.clone()] || !unknown.iter().any(|name| names(&f.code, name) && !own(f, name));
    let mut all: Vec<Candidate> = all.filter(there).filter_map(candidate).take(MOST).collect();
    // Where the cell does not parse, nothing says of what type something is: the next may be it.
    for i in (0..all.len()).filter(|_| python) {
        let Some(here) = all[i].change.as_ref().map(|change| change.at.clone()) else { continue };
        let same = all[i + 1..].iter().filter_map(|c| c.change.as_ref()).filter(|change| change.at == here);
        let others: Vec<String> = same.flat_map(|c| [&c.code].into_iter().chain(&c.others)).cloned().collect();
        all[i].change.iter_mut().for_each(|change| change.others.extend(others.iter().cloned()));
    }
    Some(all)
}

/// A call with a key, and a batch that is packed for a layer: what is told, where that stands, and what it may be.
fn of_more(
    error: &Diagnostic,
    text: &str,
    at: &Range<usize>,
    ours: &Ours,
) -> Option<(String, Range<usize>, Vec<String>)> {
    let named = || NAMES.contains(&&*error.code);
    let keyed = || ordered::told(text, at, ours).map(|(at, all)| (format!("{IN_RUST}`{}`", all[0]), at, all));
    let packed = || match packed::told(text, at, ours) {
        Some((at, all)) => Some((packed::said(&all[0]), at, all)),
        None => packed::around(text, at).map(|at| (packed::IN_WORDS.to_owned(), at, vec![])),
    };
    let is_python = error.code.is_empty();
    is_python.then(keyed).flatten().or_else(|| (is_python || named()).then(packed).flatten())
}

/// What reads a tensor's elements with the type that they have, where that is known.
fn with_types(found: Found, before: &str, rustc: &Rustc) -> Found {
    const NOTE: &str = "with the tensor's own type; ";
    match elements::typed(&found.code, before, rustc) {
        Some(code) => Found { said: found.said.replace(&found.code, &code).replace(NOTE, ""), code, ..found },
        None => found,
    }
}

/// The function of ours whose call a place is in that is not what it takes, or whose name is pointed at.
fn called_so(error: &Diagnostic, line: &str, at: &Range<usize>, ours: &Ours) -> Option<Range<usize>> {
    let words = Words::of(line);
    let named = error.message.starts_with("cannot find value");
    let about = |i: usize, given: Range<usize>| {
        let all = words.between_commas(given.start, given.end);
        let argument =
            || all.iter().filter_map(|one| Some((words.part(one.start, one.end)?.1, words.word(one.start + 1))));
        match &*error.code {
            "E0061" => words.tokens[i].range == *at,
            "E0308" | "E0277" => argument().any(|(place, _)| place == *at),
            _ => named && argument().any(|(place, sign)| place.start == at.start && sign == "="),
        }
    };
    let calls = (0..words.len()).filter(|i| ours.is_function(words.word(*i)));
    let found = calls.filter(|i| words.arguments(*i).is_some_and(|given| about(*i, given))).last()?;
    Some(words.tokens[found].range.clone())
}

/// What is told of a function that is not there, or takes something else, and that torch's or its functional module has:
/// `from torch import randn`.
fn without_module(error: &Diagnostic, line: &str, at: &Range<usize>, ours: &Ours) -> Vec<Found> {
    let missing = error.message.starts_with("cannot find function").then(|| at.clone());
    let is_there = missing.is_none();
    let Some(at) = &missing.or_else(|| called_so(error, line, at, ours)) else { return vec![] };
    let (before, from) = line.split_at(at.start);
    let of = |module: &str| SIGNATURES.get(&*format!("{module}.{}", &line[at.clone()]));
    let bare = !before.trim_end().ends_with([':', '.']);
    const MODULES: [(&str, &str); 4] =
        [("torch", "torch."), ("nn.functional", "F."), ("nn.utils", "nn.utils."), ("nn.init", "nn.init.")];
    let modules = MODULES.into_iter().filter(|_| bare);
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
    // Those of parameters are about a list.
    let of_no_tensor = module == "nn.utils." || known.iter().any(|t| t.makes() || t.joins());
    let subject = match (of_no_tensor, first) {
        (true, _) => None,
        (false, None) => return vec![],
        (false, first) => first,
    };
    let back = |i: usize| if i > at.start { i.saturating_sub(module.len()).max(at.start) } else { i };
    let back = |r: Range<usize>| back(r.start)..back(r.end);
    let named = at.start..at.start + module.len() - 1;
    let new = format!("{before}{module}{from}");
    // Of what is there it is no answer that it is there.
    let says = |f: &Found| !is_there || f.code != new[f.at.clone()] && f.code != line[back(f.at.clone())];
    let all = all_instead(&new, &named, About::Names, ours).into_iter().filter(says);
    let about = |f: &Found| f.subject.clone().map(|(of, is)| (back(of), is)).or_else(|| subject.clone());
    all.map(|f| Found { at: back(f.at.clone()), subject: about(&f), ..f }).collect()
}

/// A function of ours that is called like a method, which the type has not: `loss.sync()`, `mask.where_(&x, &y)`.
fn as_function(error: &Diagnostic, user: &Words, at: &Range<usize>, ours: &Ours) -> Option<Vec<Found>> {
    let mut quoted = error.message.strip_prefix("no method named `")?.split('`').step_by(2);
    let (name, of) = (quoted.next()?, quoted.next()?);
    // What others have under such a name is another thing.
    let function = ours.function("", name).filter(|_| of.contains("xlazy::") && ours.is_function(name))?;
    let called = user.tokens.iter().position(|t| t.range == *at)?;
    let arguments = user.arguments(called)?;
    let of = user.operand_before(called.checked_sub(1)?)?;
    let place = user.tokens[of].range.start..user.tokens[arguments.end].range.end;
    let (of, _) = user.part(of, called - 1)?;
    let given = given(user, arguments, ours);
    if !given.named.is_empty() {
        return None;
    }
    let all: Vec<String> = [of].into_iter().chain(given.plain).collect();
    // What is about all that is pending is about no tensor of its own.
    let code = match function.takes.len() {
        0 if all.len() == 1 => format!("{name}()"),
        takes if takes == all.len() => {
            let given = all.iter().zip(&function.takes).map(|(value, (_, ty))| ours.converted(value, ty));
            format!("{name}({})", given.collect::<Option<Vec<_>>>()?.join(", "))
        }
        _ => return None,
    };
    let said = format!("{ANSWER}`{code}`, which is a function");
    is_rust(&code).then(|| vec![Found { said, code, at: place, subject: None }])
}

/// A number's type of Rust's where a value stands, which a dtype is: `x.to(i64)`.
fn of_a_dtype(error: &Diagnostic, at: &Range<usize>, ours: &Ours) -> Option<Found> {
    let ty = error.message.strip_prefix("expected value, found builtin type `")?.split('`').next()?;
    let dtype = ours.parts("variant", "DType").into_iter().find(|dtype| dtype.eq_ignore_ascii_case(ty))?;
    let said = format!("{ANSWER}`{dtype}`: a dtype is a value, `{ty}` a type of Rust's");
    Some(Found { said, code: dtype.to_owned(), at: at.clone(), subject: None })
}

/// What is told of a name of ours whose letters are small or capital otherwise: `nn::linear(2, 3)`, `optim::Adamw`.
fn otherwise_spelled(line: &str, at: &Range<usize>, ours: &Ours) -> Vec<Found> {
    let words = Words::of(line);
    let path = || {
        let name = words.tokens.iter().position(|t| t.range.end == at.end)?;
        let module = name.checked_sub(3).filter(|i| words.word(i + 1) == ":" && words.word(i + 2) == ":")?;
        let place = words.tokens[module].range.start..at.end;
        let path = ours.path_like(&line[place.clone()]).filter(|path| **path != line[place.clone()])?;
        Some((place, path))
    };
    let Some((place, path)) = path() else { return vec![] };
    // As if it were spelled so; what is there behind it has moved.
    let new = format!("{}{path}{}", &line[..place.start], &line[place.end..]);
    let back = |i: usize| if i > place.start { (i + place.len()).saturating_sub(path.len()) } else { i };
    let back = |r: Range<usize>| back(r.start)..back(r.end);
    let end = place.start + path.len();
    let name = end - path.rsplit("::").next().map_or(0, str::len)..end;
    let called = all_instead(&new, &name, About::Names, ours).into_iter();
    let called =
        called.map(|f| Found { at: back(f.at.clone()), subject: f.subject.map(|(of, is)| (back(of), is)), ..f });
    let alone = Found { said: format!("{ANSWER}`{path}`"), code: path.to_owned(), at: place.clone(), subject: None };
    called.filter(|f| f.at.start == place.start).chain([alone]).collect()
}
