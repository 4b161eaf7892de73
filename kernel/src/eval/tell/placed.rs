//! Whether what a call names is what a row of the table has in that place: `DataLoader(d, 4, collate_fn=f)` is no
//! `DataLoader(d, 4, k)`.
use super::ours::same;
use super::signatures::{SIGNATURES, Torch};
use super::words::Words;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Torch's signatures by the last part of their names.
static BY_LAST: LazyLock<HashMap<&str, Vec<&Torch>>> = LazyLock::new(|| {
    let mut out: HashMap<&str, Vec<&Torch>> = HashMap::new();
    for (name, all) in SIGNATURES.iter() {
        out.entry(name.rsplit('.').next().unwrap_or(name)).or_default().extend(all);
    }
    out
});

/// Whether all that is named in the call that a row was found for stands where torch has it.
pub(super) fn fits(pattern: &Words, user: &Words, range: &Range<usize>) -> bool {
    let is = |words: &Words, i: usize| words.word(i + 1) == "(" && BY_LAST.contains_key(words.word(i));
    let Some(of) = (0..pattern.len()).find(|i| is(pattern, *i)) else { return true };
    let (name, method) = (pattern.word(of), pattern.meta(0).is_some());
    let here = |i: &usize| user.word(*i) == name && range.start <= user.tokens[*i].range.start;
    let Some(call) = (0..user.len()).find(here) else { return true };
    let (Some(row), Some(given)) = (pattern.arguments(of), user.arguments(call)) else { return true };
    let row = pattern.between_commas(row.start, row.end);
    let given = user.between_commas(given.start, given.end);
    row.iter().zip(&given).enumerate().all(|(place, (row, one))| {
        let named = user.word(one.start + 1) == "=" && user.word(one.start + 2) != "=";
        !named || pattern.word(row.start + 1) == "=" || may_be(name, user.word(one.start), place, method)
    })
}

/// Whether a parameter of that name may stand in that place; what has to be named is in none.
fn may_be(function: &str, parameter: &str, place: usize, method: bool) -> bool {
    let place_of = |torch: &&Torch| {
        let all = torch.0.iter().take_while(|(name, _)| *name != "*");
        all.enumerate().find(|(_, (name, _))| *name == parameter || same(name, parameter)).map(|(i, _)| i)
    };
    let all: Vec<usize> = BY_LAST[function].iter().filter_map(place_of).collect();
    // A function's first argument is what the method is called of.
    all.is_empty() || all.iter().any(|i| *i == place || method && *i == place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_torch_has_them() {
        for (row, line, wanted) in [
            ("DataLoader(d, 4, k)", "DataLoader(ds, batch_size=2, shuffle=True)", true),
            ("DataLoader(d, 4, k)", "DataLoader(ds, 2, collate_fn=f)", false),
            ("torch.topk(x, 4, 0)", "torch.topk(x, 4, dim=0)", true),
            ("torch.topk(x, 4, 0)", "torch.topk(x, 4, largest=False)", false),
            ("x.mean(0, k)", "y.mean(dim=0, keepdim=True)", true),
            ("x.std(0, k)", "y.std(dim=0, keepdim=True)", true),
            ("f(x)", "f(y=3)", true),
        ] {
            assert_eq!(fits(&Words::of(row), &Words::of(line), &(0..line.len())), wanted, "{row} {line}");
        }
    }
}
