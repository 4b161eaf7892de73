//! Values that are copied into a module by name: under its own names, or those that published files have for them.
use crate::changes::Changes;
use crate::tensor::{Tensor, on_behalf, sync};
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::Location;
use std::sync::Arc;

/// Under which other names files have what a module has: what [`Module::load_state_dict`](super::Module::load_state_dict) goes by
/// for names that are not the module's own. In a pattern each `*` stands for some text, which comes again in its place.
///
/// ```
/// use xlazy::prelude::*;
/// struct Net { fc: nn::Linear }
/// impl Module for Net {
///     parts!(fc);
///     fn published(&self) -> nn::Published {
///         nn::Published { names: &[("dense.*", &["fc.*"]), ("mask", &[])], ..Default::default() }
///     }
/// }
/// let net = Net { fc: nn::Linear::new(2, 1) };
/// let file = [
///     ("dense.weight".to_owned(), tensor([[3.0, 4.0]])), ("dense.bias".to_owned(), tensor([5.0])),
///     ("mask".to_owned(), tensor([1.0])),
/// ];
/// net.load_state_dict(&file).unwrap();
/// assert_eq!(net.fc.weight.to_vec::<f32>(), [3.0, 4.0]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Published {
    /// What stands before the names of the model without its head, such as `bert`: a file may have it where the module has not,
    /// and lack it where the module has it.
    pub base: &'static str,
    /// Names without `base`, and the module's for them. A tensor with several is cut into as many equal parts along its first
    /// dimension, and one with none, such as a mask that can be computed, is left out.
    pub names: &'static [(&'static str, &'static [&'static str])],
    /// For names of the module, without `base`, the config's field that each dimension's size is: a message names it where that
    /// size differs. The first pattern that fits holds.
    pub sizes: &'static [(&'static str, &'static [&'static str])],
}

impl Published {
    fn without_base<'n>(&self, name: &'n str) -> &'n str {
        let rest = name.strip_prefix(self.base).and_then(|rest| rest.strip_prefix('.'));
        rest.filter(|_| !self.base.is_empty()).unwrap_or(name)
    }

    /// The module's names for a file's, of which `has` knows; nothing where there is none.
    fn resolve(&self, name: &str, has: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        if has(name) {
            return Some(vec![name.to_owned()]);
        }
        let mut names = vec![self.without_base(name).to_owned()];
        for (pattern, others) in self.names {
            if let [one] = &names[..]
                && let Some(texts) = fit(pattern, one)
            {
                names = others.iter().map(|other| filled(other, &texts)).collect();
            }
        }
        let own = |name: String| {
            let based = format!("{}.{name}", self.base);
            [name, based].into_iter().find(|n| has(n))
        };
        names.into_iter().map(own).collect()
    }

    /// The fields in which a config differs from the one of a tensor of that shape.
    fn fields(&self, name: &str, mine: &[usize], given: &[usize]) -> Vec<&'static str> {
        let name = self.without_base(name);
        let known = self.sizes.iter().find(|(pattern, _)| fit(pattern, name).is_some());
        let fields = known.map_or(&[][..], |(_, fields)| *fields);
        let apart = fields.iter().zip(mine.iter().zip(given)).filter(|(field, (a, b))| a != b && !field.is_empty());
        apart.map(|(field, _)| *field).collect()
    }
}

/// What the stars of a pattern stand for in a text that it fits.
pub(super) fn fit<'t>(pattern: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut pieces = pattern.split('*');
    let (mut rest, mut texts) = (text.strip_prefix(pieces.next()?)?, Vec::new());
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        // the last piece stands at the end, another one where it is met first
        let at = if pieces.peek().is_none() { rest.strip_suffix(piece)?.len() } else { rest.find(piece)? };
        texts.push(&rest[..at]);
        rest = rest[at..].strip_prefix(piece)?;
    }
    rest.is_empty().then_some(texts)
}

/// A pattern with texts in the places of its stars.
fn filled(pattern: &str, texts: &[&str]) -> String {
    let mut texts = texts.iter();
    pattern.split('*').enumerate().fold(String::new(), |all, (i, piece)| {
        let text = if i == 0 { "" } else { texts.next().unwrap_or(&"") };
        all + text + piece
    })
}

/// Checks everything before it changes anything. Gives what is missing or left over, which is an error where `strict`.
#[track_caller]
pub(super) fn load(
    mine: &[(String, Tensor)],
    published: Published,
    state: &[(String, Tensor)],
    strict: bool,
) -> Result<Vec<String>> {
    let known: HashSet<&str> = mine.iter().map(|(n, _)| n.as_str()).collect();
    let mut given: HashMap<String, (&str, Tensor)> = HashMap::new();
    let (mut wrong, mut extra) = (Vec::new(), Vec::new());
    for (name, value) in state {
        let Some(names) = published.resolve(name, |n| known.contains(n)) else {
            extra.push((name.as_str(), "is not part of the module".to_owned()));
            continue;
        };
        for (own, part) in names.iter().zip(parts(value, names.len())) {
            if let Some((before, _)) = given.insert(own.clone(), (name, part)) {
                wrong.push(format!("`{before}` and `{name}` are both its `{own}`"));
            }
        }
    }
    // Tensors that come under one of their names: files keep shared ones once.
    let come: HashSet<_> = mine.iter().filter(|(n, _)| given.contains_key(n)).map(|(_, t)| Arc::as_ptr(&t.0)).collect();
    let (mut left, mut misshapen, mut fields, mut pairs) = (Vec::new(), Vec::new(), BTreeSet::new(), Vec::new());
    for (name, old) in mine {
        match given.get(name) {
            None if come.contains(&Arc::as_ptr(&old.0)) || counter(name) => {}
            None => left.push((name.as_str(), "is missing".to_owned())),
            Some((theirs, new)) if new.shape() != old.shape() => {
                fields.extend(published.fields(name, &old.shape(), &new.shape()));
                misshapen.push((*theirs, format!("has shape {}, expected {}", new.shape(), old.shape())));
            }
            Some((_, new)) => pairs.push((old, new)),
        }
    }
    left.append(&mut extra);
    if pairs.is_empty() && misshapen.is_empty() && !mine.is_empty() && !state.is_empty() {
        let some = |all: &[(String, Tensor)]| {
            let names: Vec<String> = all.iter().take(3).map(|(name, _)| format!("`{name}`")).collect();
            format!("{}{}", names.join(", "), if all.len() > 3 { ", …" } else { "" })
        };
        let message = format!(
            "the state does not fit: it has {}, and the module {}: no name is in both",
            some(state),
            some(mine)
        );
        return Err(Error::Usage { message });
    }
    wrong.extend(told(&misshapen));
    if !fields.is_empty() {
        let fields: Vec<String> = fields.iter().map(|f| format!("`{f}`")).collect();
        wrong.push(format!("its config seems to have another {}", fields.join(" and ")));
    }
    let mut left = told(&left);
    if strict {
        wrong.append(&mut left);
    }
    if !wrong.is_empty() {
        return Err(Error::Usage { message: format!("the state does not fit: {}", wrong.join("; ")) });
    }
    copy_all(pairs);
    // They run now, so that the next step is the program that it was.
    sync();
    Ok(left)
}

/// A batch norm's count of batches, which older files lack; torch does without it as well.
fn counter(name: &str) -> bool {
    name.rsplit('.').next() == Some("num_batches_tracked")
}

/// A tensor in so many parts along its first dimension; one that has not as many equal ones keeps its shape, which fits nothing.
#[track_caller]
fn parts(value: &Tensor, n: usize) -> Vec<Tensor> {
    match value.shape().first() {
        Some(rows) if n > 1 && rows % n == 0 => on_behalf(Location::caller(), false, || value.chunk(n, 0)),
        _ => vec![value.clone(); n],
    }
}

/// What there is to say of names, once for those that differ in a number alone: `` `h.{0..11}.attn.bias` is missing ``.
fn told(names: &[(&str, String)]) -> Vec<String> {
    let mut groups: Vec<(&str, &str, &str, Vec<usize>)> = Vec::new();
    for (name, what) in names {
        let (before, number, behind) = numbered(name);
        match groups.iter_mut().find(|g| (g.0, g.1, g.2) == (before, behind, what) && !g.3.is_empty()) {
            Some(group) => group.3.extend(number),
            None => groups.push((before, behind, what, number.into_iter().collect())),
        }
    }
    let text = |(before, behind, what, numbers): (&str, &str, &str, Vec<usize>)| {
        let all = match &numbers[..] {
            [] => String::new(),
            [one] => one.to_string(),
            [first, .., last] if numbers.windows(2).all(|w| w[0] + 1 == w[1]) => format!("{{{first}..{last}}}"),
            _ => format!("{{{}}}", numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        };
        format!("`{before}{all}{behind}` {what}")
    };
    groups.into_iter().map(text).collect()
}

/// A name at its first part that is a number or ends in one behind `_`.
fn numbered(name: &str) -> (&str, Option<usize>, &str) {
    let mut start = 0;
    for part in name.split('.') {
        let end = start + part.len();
        let digits = start + part.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if (digits == start || name[..digits].ends_with('_'))
            && let Ok(number) = name[digits..end].parse()
        {
            return (&name[..digits], Some(number), &name[end..]);
        }
        start = end + 1;
    }
    (name, None, "")
}

/// Copies, not shared buffers: what the caller still holds could not be reused by a step.
#[track_caller]
pub(super) fn copy_all<'t>(pairs: impl IntoIterator<Item = (&'t Tensor, &'t Tensor)>) {
    let mut changes = Changes::new();
    on_behalf(Location::caller(), false, || {
        pairs
            .into_iter()
            .for_each(|(old, new)| changes.assign("load_state_dict", old, new.clone().placed_like(old).copy()))
    });
    changes.apply();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        let all =
            [("a.*", "a.b.c"), ("*.weight", "0.weight"), ("*", ""), ("a*b*c", "aXbYc"), ("é*", "éa"), ("*a", "éa")];
        assert!(all.iter().all(|(p, n)| fit(p, n).is_some()));
        let none = [("a.*", "b.a."), ("*.weight", "0.weights"), ("", "a"), ("a*b*c", "acb"), ("*w", "é"), ("*.w", "é")];
        assert!(!none.iter().any(|(p, n)| fit(p, n).is_some()));
    }

    #[test]
    fn patterns_fit_and_are_filled() {
        assert_eq!(fit("a.*.b_*", "a.12.b_weight"), Some(vec!["12", "weight"]));
        assert_eq!(fit("*.gamma", "x.y.gamma"), Some(vec!["x.y"]));
        assert_eq!(fit("h.*.attn.bias", "h.0.attn.c_attn.bias"), None);
        assert_eq!((fit("a", "ab"), fit("a*a", "a"), fit("a", "a")), (None, None, Some(vec![])));
        assert_eq!(filled("p.*.q.*", &["12", "weight"]), "p.12.q.weight");
    }

    #[test]
    fn names_that_differ_in_a_number_are_told_once() {
        let names = ["h.0.a", "wte", "h.1.a", "h.2.a", "e_1.a", "e_3.a", "ln.b"];
        let names: Vec<(&str, String)> = names.iter().map(|n| (*n, "is missing".to_owned())).collect();
        let expected = ["`h.{0..2}.a` is missing", "`wte` is missing", "`e_{1,3}.a` is missing", "`ln.b` is missing"];
        assert_eq!(told(&names), expected);
    }
}
