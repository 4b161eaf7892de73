//! Python's `key=`, by which lists are sorted and the largest is chosen: `v.sort(key=lambda p: p[1])`, `max(d, key=d.get)`.
use super::instead::rewritten;
use super::ours::Ours;
use super::words::{Words, receiver, unquoted};
use crate::eval::text::scan::Kind;
use std::ops::Range;

/// The call with a key around a place: where it stands, what it is, and what else it may be.
pub(super) fn told(text: &str, at: &Range<usize>, ours: &Ours) -> Option<(Range<usize>, Vec<String>)> {
    let words = Words::of(text);
    let around = |name: usize| {
        let call = Keyed::of(&words, name)?;
        (call.at.start <= at.start && at.end <= call.at.end).then_some(call)
    };
    let call = (0..words.len()).filter_map(around).min_by_key(|call| call.at.len())?;
    let mut all = Vec::new();
    // Numbers whose type nothing says are floats.
    for (of_a_list, floats) in [(false, false), (true, false), (false, true)] {
        let code = call.written(of_a_list, floats, ours)?;
        // What follows it by a comma or a sign is the user's.
        if syn::parse_str::<syn::Expr>(&code).is_ok() && !all.contains(&code) {
            all.push(code);
        }
    }
    (!all.is_empty()).then_some((call.at, all))
}

/// A call that orders things by what a function gives for each.
struct Keyed<'t> {
    at: Range<usize>,
    function: &'t str,
    /// What is ordered.
    of: String,
    key: String,
    reverse: bool,
}

impl<'t> Keyed<'t> {
    fn of(words: &Words<'t>, name: usize) -> Option<Keyed<'t>> {
        let function = words.word(name);
        let arguments = words.arguments(name).filter(|_| matches!(function, "sort" | "sorted" | "max" | "min"))?;
        let end = words.tokens[arguments.end].range.end;
        let mut all = words.between_commas(arguments.start, arguments.end);
        // A lambda of several parameters has commas of its own, and none of these does.
        let named = |one: &Range<usize>| (words.word(one.start + 1) == "=").then(|| words.word(one.start));
        let value = |one: &Range<usize>| words.part(one.start + 2, one.end).map(|(text, _)| text);
        let key = all.iter().find(|one| named(one) == Some("key")).and_then(value)?;
        let reversed = all.iter().find(|one| named(one) == Some("reverse")).and_then(value);
        all.retain(|one| named(one).is_none());
        let method = name > 0 && words.word(name - 1) == ".";
        let (of, start) = match (method, &all[..]) {
            (true, []) if function == "sort" => {
                let (of, place) = words.part(words.operand_before(name - 1)?, name - 1)?;
                (of, place.start)
            }
            (false, [one]) if function != "sort" => (words.part(one.start, one.end)?.0, words.tokens[name].range.start),
            _ => return None,
        };
        Some(Keyed { at: start..end, function, of, key, reverse: reversed.is_some_and(|r| r == "True") })
    }

    /// What is written for it, places in what is ordered being those of a tuple, or of a list.
    fn written(&self, of_a_list: bool, floats: bool, ours: &Ours) -> Option<String> {
        let of = rewritten(&self.of, ours);
        // What a dictionary has for each of its names is the other part of a pair.
        if let Some(map) = self.key.strip_suffix(".get").filter(|map| *map == self.of) {
            let pick = if self.function == "min" { "min_by" } else { "max_by" };
            let one = format!("{map}.iter().{pick}(|a, b| a.1.partial_cmp(b.1).unwrap()).unwrap().0");
            return matches!(self.function, "max" | "min").then_some(one);
        }
        let of = of.strip_suffix(".items()").map(str::to_owned).unwrap_or(of);
        let (one, other) = if self.reverse { ("b", "a") } else { ("a", "b") };
        let (one, other) = (self.key_of(one, of_a_list, ours)?, self.key_of(other, of_a_list, ours)?);
        let compared = match floats {
            false => format!("|a, b| {}.partial_cmp(&{}).unwrap()", receiver(&one), receiver(&other)),
            true => format!("|a, b| f64::total_cmp(&{}, &{})", receiver(&one), receiver(&other)),
        };
        Some(match self.function {
            "sort" => format!("{}.sort_by({compared})", receiver(&of)),
            "sorted" => {
                format!("{{ let mut all = Vec::from_iter({}.clone()); all.sort_by({compared}); all }}", receiver(&of))
            }
            pick => format!("{}.iter().{pick}_by({compared}).unwrap()", receiver(&of)),
        })
    }

    /// The key of what has that name.
    fn key_of(&self, name: &str, of_a_list: bool, ours: &Ours) -> Option<String> {
        let words = Words::of(&self.key);
        if words.word(0) != "lambda" {
            return match &*self.key {
                "len" => Some(format!("{name}.len()")),
                "abs" => Some(format!("{name}.abs()")),
                "str.lower" => Some(format!("{name}.to_lowercase()")),
                key if syn::parse_str::<syn::Path>(key).is_ok() => Some(format!("{key}({name})")),
                _ => None,
            };
        }
        let parameter = words.word(1);
        let (body, _) = words.part(3, words.len()).filter(|_| words.word(2) == ":")?;
        let body = rewritten(&body, ours);
        let words = Words::of(&body);
        let (mut out, mut end, mut i) = (String::new(), 0, 0);
        while i < words.len() {
            let own = words.word(i) == parameter
                && words.kind(i) == Some(Kind::Ident)
                && (i == 0 || words.word(i - 1) != ".");
            let place = words.word(i + 1) == "["
                && words.word(i + 3) == "]"
                && (words.kind(i + 2) == Some(Kind::Number) || unquoted(words.word(i + 2)).is_some());
            if own {
                out += &body[end..words.tokens[i].range.start];
                out += name;
                end = words.tokens[i].range.end;
                if place && !of_a_list && words.kind(i + 2) == Some(Kind::Number) {
                    out += &format!(".{}", words.word(i + 2));
                    end = words.tokens[i + 3].range.end;
                    i += 3;
                }
            }
            i += 1;
        }
        Some(out + &body[end..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ordered_by_a_key() {
        let ours = Ours::new(&String::new);
        let first = |text: &str| told(text, &(text.find("key").unwrap()..text.len() - 1), &ours).map(|(_, all)| all);
        for (python, rust) in [
            (
                "v.sort(key=lambda p: p[1])",
                &[
                    "v.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap())",
                    "v.sort_by(|a, b| a[1].partial_cmp(&b[1]).unwrap())",
                ][..],
            ),
            ("v.sort(key=lambda x: -x, reverse=True)", &["v.sort_by(|a, b| (-b).partial_cmp(&(-a)).unwrap())"]),
            (
                "sorted(d.items(), key=lambda kv: kv[1])",
                &[
                    "{ let mut all = Vec::from_iter(d.clone()); all.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap()); all }",
                    "{ let mut all = Vec::from_iter(d.clone()); all.sort_by(|a, b| a[1].partial_cmp(&b[1]).unwrap()); all }",
                ],
            ),
            ("max(d, key=d.get)", &["d.iter().max_by(|a, b| a.1.partial_cmp(b.1).unwrap()).unwrap().0"]),
            ("min(names, key=len)", &["names.iter().min_by(|a, b| a.len().partial_cmp(&b.len()).unwrap()).unwrap()"]),
        ] {
            let all = first(python).unwrap();
            assert_eq!(all[..rust.len()], *rust, "{python}");
        }
        assert_eq!(first("f(v, key=lambda p: p)"), None);
    }
}
