//! Python's `dict(a=1)`, and the groups of parameters that an optimizer is given as dictionaries.
use super::instead::ANSWER;
use super::ours::Ours;
use super::signatures::{SIGNATURES, Torch};
use super::texts::Texts;
use super::words::{IDLE, Words, unquoted};
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// What a dictionary is whose names rustc looks for.
pub(super) fn told<'t>(error: &Diagnostic, texts: &'t Texts, ours: &Ours) -> Option<(&'t Arc<CellText>, Groups)> {
    let (text, at) = error.spans.iter().find(|s| s.primary && error.code == "E0425").and_then(|s| texts.map(s))?;
    let around =
        text.text[..at.start].rfind("dict(").filter(|start| !text.text[*start..at.start].contains([')', ';', '\n']));
    let start = if text.text[at.start..].starts_with("dict(") { at.start } else { around? };
    let map = || dictionary(&text.text, start).map(|(at, code)| Groups { at, code, left_out: vec![] });
    Some((text, groups(&text.text, start, ours).or_else(map)?))
}

/// `dict(a=1, b=2)`, where its name stands, as a map.
pub(super) fn dictionary(text: &str, at: usize) -> Option<(Range<usize>, String)> {
    let words = Words::of(text);
    let name = words.at(at).filter(|&i| words.word(i) == "dict")?;
    let (pairs, end) = pairs(&words, name)?;
    let listed: Vec<String> = pairs.iter().map(|(key, value)| format!("(\"{key}\", {value})")).collect();
    (!listed.is_empty()).then(|| (at..end, format!("std::collections::HashMap::from([{}])", listed.join(", "))))
}

/// Groups of parameters, each with options of its own.
#[derive(Debug, PartialEq)]
pub(super) struct Groups {
    pub at: Range<usize>,
    pub code: String,
    /// Options that nothing here stands for.
    left_out: Vec<String>,
}

impl Groups {
    /// What is told behind the code.
    pub fn note(&self) -> String {
        without(&self.left_out)
    }
}

fn without(options: &[String]) -> String {
    let all: Vec<String> = options.iter().map(|name| format!("`{name}`")).collect();
    if all.is_empty() { String::new() } else { format!(" (without {}, which no option here is)", all.join(", ")) }
}

/// `optim.Adam([dict(params=p, lr=0.1), {"params": q}], lr=0.01)` around a place: where it stands, and how groups are made here.
pub(super) fn groups(text: &str, at: usize, ours: &Ours) -> Option<Groups> {
    let words = Words::of(text);
    optimizers(&words).into_iter().find_map(|call| {
        let list = call.first.clone().filter(|a| words.word(a.start) == "[" && call.at.contains(&at))?;
        let (code, left_out) = made(&call, &listed(&words, list)?, ours)?;
        Some(Groups { at: call.at, code, left_out })
    })
}

/// What is told of a list of groups that an optimizer is given further down, or none.
pub(super) fn groups_in_a_list(text: &str, at: usize, ours: &Ours) -> Option<String> {
    let words = Words::of(text);
    let around = |open: &usize| {
        let end = words.behind_brackets(*open).filter(|_| words.word(*open) == "[")?;
        let place = words.tokens[*open].range.start..words.tokens[end - 1].range.end;
        place.contains(&at).then(|| Some((*open, listed(&words, *open..end)?)))?
    };
    let (open, groups) = (0..words.len()).find_map(|open| around(&open))?;
    let name = open.checked_sub(2).filter(|i| words.word(i + 1) == "=").map(|i| words.word(i));
    let takes =
        |call: &Optimizer| call.first.clone().is_some_and(|a| a.len() == 1 && Some(words.word(a.start)) == name);
    let call = optimizers(&words).into_iter().find(takes);
    let call = call.or_else(|| {
        Some(Optimizer {
            name: "AdamW",
            torch: SIGNATURES.get("optim.AdamW")?.first()?,
            at: 0..0,
            first: None,
            shared: vec![],
        })
    })?;
    let (code, left_out) = made(&call, &groups, ours)?;
    Some(format!("{ANSWER}`{code}`{}: groups are added to an optimizer one by one", without(&left_out)))
}

/// A call that makes an optimizer as torch does.
struct Optimizer<'w> {
    name: &'w str,
    torch: &'static Torch,
    at: Range<usize>,
    /// The tokens of the first argument.
    first: Option<Range<usize>>,
    /// What all groups have.
    shared: Pairs,
}

fn optimizers<'w>(words: &'w Words) -> Vec<Optimizer<'w>> {
    let call = |i: usize| {
        let torch = SIGNATURES.get(&*format!("optim.{}", words.word(i)))?.first()?;
        let new = [":", ":", "new"].iter().enumerate().all(|(n, word)| words.word(i + 1 + n) == *word);
        let arguments = words.arguments(if new { i + 3 } else { i })?;
        let all = words.between_commas(arguments.start, arguments.end);
        let mut start = i;
        while start > 0 && matches!(words.word(start - 1), "." | ":" | "torch" | "optim") {
            start -= 1;
        }
        let names = torch.0.iter().map(|(name, _)| *name).filter(|name| *name != "*").skip(1);
        let named = |(one, name): (&Range<usize>, &str)| match words.word(one.start + 1) {
            "=" => Some((words.word(one.start).to_owned(), words.part(one.start + 2, one.end)?.0)),
            _ => Some((name.to_owned(), words.part(one.start, one.end)?.0)),
        };
        let shared = all.iter().skip(1).zip(names.chain(std::iter::repeat(""))).map(named).collect::<Option<_>>()?;
        let at = words.tokens[start].range.start..words.tokens[arguments.end].range.end;
        Some(Optimizer { name: words.word(i), torch, at, first: all.first().cloned(), shared })
    };
    (0..words.len()).filter_map(call).collect()
}

/// The groups that a list of dictionaries is.
fn listed(words: &Words, list: Range<usize>) -> Option<Vec<Pairs>> {
    let group =
        |one: Range<usize>| pairs(words, one.start).map(|(pairs, _)| pairs).filter(|all| of(all, "params").is_some());
    let all = words.between_commas(list.start + 1, list.end - 1).into_iter().map(group);
    all.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

type Pairs = Vec<(String, String)>;

fn of<'p>(pairs: &'p [(String, String)], key: &str) -> Option<&'p str> {
    pairs.iter().find(|(k, _)| k == key).map(|(_, value)| &**value)
}

/// Groups of an optimizer with what all of them have, and what is left out of that.
fn made(call: &Optimizer, groups: &[Pairs], ours: &Ours) -> Option<(String, Vec<String>)> {
    let Optimizer { name, torch, shared, .. } = call;
    let mut left_out = Vec::new();
    let ty = ours.options_of(name);
    let fields = ty.as_ref().map(|ty| ours.fields(ty)).unwrap_or_default();
    let mut option = |key: &str, value: &str, method: bool| {
        let of_all = (method && key == "maximize").then_some("bool");
        let field = fields.iter().find(|(field, _)| *field == key).map(|(_, ty)| *ty).or(of_all);
        let value = field.and_then(|ty| ours.converted(value, ty));
        if value.is_none() && !left_out.iter().any(|k| k == key) {
            left_out.push(key.to_owned());
        }
        value
    };
    let of_torch = |key: &str| torch.0.iter().find(|(name, _)| *name == key).and_then(|(_, default)| *default);
    let rate = |group: &Pairs| of(group, "lr").or(of(shared, "lr")).or(of_torch("lr")).unwrap_or("1e-3").to_owned();
    let own = |group: &Pairs| -> Pairs {
        let is = |key: &str| {
            !matches!(key, "params" | "lr" | "name" | "capturable" | "differentiable") && !IDLE.contains(&key)
        };
        group.iter().filter(|(key, _)| is(key)).cloned().collect()
    };
    let (first, rest) = groups.split_first()?;
    let (one, all) = (own(first), own(shared));
    let mut code = format!("optim::{name}::new({}, {})", of(first, "params")?, rate(first));
    for (key, value) in all.iter().filter(|(key, _)| of(&one, key).is_none()).chain(&one) {
        code += &option(key, value, true).map(|value| format!(".{key}({value})")).unwrap_or_default();
    }
    if rest.is_empty() {
        return Some((code, left_out));
    }
    code = format!("{{ let mut opt = {code}; ");
    for group in rest {
        let own = own(group);
        // What the first has of its own is not the next one's.
        let others = one.iter().filter(|(key, _)| of(&own, key).is_none());
        let others = others.filter_map(|(key, _)| Some((key.clone(), of(&all, key).or(of_torch(key))?.to_owned())));
        let set: Vec<String> = own
            .iter()
            .cloned()
            .chain(others)
            .filter_map(|(key, value)| Some(format!("{key}: {}", option(&key, &value, false)?)))
            .collect();
        let options = match &ty {
            // What all have is not the default.
            Some(_) if set.is_empty() => "opt.options()".to_owned(),
            Some(ty) => format!("{} {{ {}, ..opt.options() }}", ours.path(ty), set.join(", ")),
            None => "Default::default()".to_owned(),
        };
        code += &format!("opt.add_param_group({}, {}, {options}); ", of(group, "params")?, rate(group));
    }
    Some((code + "opt }", left_out))
}

/// The keys and values of `dict(a=1)` or `{"a": 1}` that begins at a token, and where it ends.
fn pairs(words: &Words, at: usize) -> Option<(Vec<(String, String)>, usize)> {
    let open = at + usize::from(words.word(at) == "dict");
    let end = words.behind_brackets(open).filter(|_| matches!(words.word(open), "(" | "{"))?;
    let pair = |one: Range<usize>| {
        let key = words.word(one.start);
        let key = if words.word(one.start + 1) == "=" {
            key
        } else {
            unquoted(key).filter(|_| words.word(one.start + 1) == ":")?
        };
        Some((key.to_owned(), words.part(one.start + 2, one.end)?.0))
    };
    let all = words.between_commas(open + 1, end - 1).into_iter().map(pair).collect::<Option<Vec<_>>>()?;
    Some((all, words.tokens[end - 1].range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_by_their_names_and_groups() {
        let code = |found: Option<(Range<usize>, String)>| found.map(|(_, code)| code);
        assert_eq!(
            code(dictionary("f(dict(a=1, b=g(2)))", 2)).as_deref(),
            Some("std::collections::HashMap::from([(\"a\", 1), (\"b\", g(2))])")
        );
        let ours = Ours::new(&|| {
            "with\tfunction\tAdamW::with(parameters: P, lr: f64, options: AdamOptions) -> AdamW
with\tfunction\tSGD::with(parameters: P, lr: f64, options: SGDOptions) -> SGD
AdamOptions\tstruct\toptim::AdamOptions
betas\tfield\tAdamOptions::betas: (f64, f64)
weight_decay\tfield\tAdamOptions::weight_decay: f64
SGDOptions\tstruct\toptim::SGDOptions
momentum\tfield\tSGDOptions::momentum: f64
nesterov\tfield\tSGDOptions::nesterov: bool"
                .to_owned()
        });
        for (text, wanted) in [
            ("torch.optim.SGD([dict(params=p, lr=0.1)])", "optim::SGD::new(p, 0.1)"),
            (
                "optim::SGD::new([{\"params\": p, \"lr\": 0.1}, {'params': q}], lr=0.5)",
                "{ let mut opt = optim::SGD::new(p, 0.1); opt.add_param_group(q, 0.5, opt.options()); opt }",
            ),
            (
                "AdamW([{'params': p, 'weight_decay': 0}, {'params': q}], betas=[0.9, 0.95])",
                "{ let mut opt = optim::AdamW::new(p, 0.001).betas((0.9, 0.95)).weight_decay(0.0); \
                 opt.add_param_group(q, 0.001, optim::AdamOptions { weight_decay: 0.01, ..opt.options() }); opt }",
            ),
            (
                "SGD([{'params': p}, {'params': q, 'momentum': 0.3}], 0.2, 0.9, nesterov=True, maximize=True, fused=True)",
                "{ let mut opt = optim::SGD::new(p, 0.2).momentum(0.9).nesterov(true).maximize(true); \
                 opt.add_param_group(q, 0.2, optim::SGDOptions { momentum: 0.3, ..opt.options() }); opt }",
            ),
        ] {
            let made =
                groups(text, 18, &ours).map(|groups| groups.code + &Groups { code: String::new(), ..groups }.note());
            assert_eq!(made.as_deref(), Some(wanted), "{text}");
        }
        let left =
            groups("SGD([{'params': p, 'maximize': True}, {'params': q, 'maximize': False}], dampening=k)", 18, &ours);
        assert_eq!(
            left.map(|groups| groups.note()).as_deref(),
            Some(" (without `dampening`, `maximize`, which no option here is)")
        );
        let list = "let groups = [{'params': p, 'weight_decay': k}]; let opt = AdamW(groups, lr=3e-4)";
        assert!(groups_in_a_list(list, 20, &ours).unwrap().contains("`optim::AdamW::new(p, 3e-4).weight_decay(k)`"));
        assert_eq!(groups_in_a_list("[{'a': p}]", 4, &ours), None);
        assert_eq!(groups("optim::Adam::new(p, 0.1)", 3, &ours), None);
    }
}
