//! Python's `/`, which divides whole numbers as if they had points.
use super::literals::is_whole;
use super::words::Words;
use crate::eval::text::scan::Kind;
use std::ops::Range;

const AS: &str = " as f64";

/// Code that was Python with its divisions as Rust has them of numbers. What may be a tensor is told apart by [`others`].
pub(super) fn of_floats(code: &str) -> String {
    let words = Words::of(code);
    let mut edits: Vec<(usize, &str)> = Vec::new();
    for i in divisions(&words) {
        let Some((left, right)) = operands(&words, i) else { continue };
        if ![&left, &right].iter().all(|side| may_be_whole(&words, side)) {
            continue;
        }
        for side in [left, right] {
            let end = words.tokens[side.end - 1].range.end;
            // A product is divided as a whole.
            let several = words.operand(side.start) != Some(side.end);
            if several {
                edits.push((words.tokens[side.start].range.start, "("));
            }
            edits.extend(match words.kind(side.start) {
                Some(Kind::Number) if side.len() == 1 => vec![(end, ".0")],
                _ if several => vec![(end, ")"), (end, AS)],
                _ => vec![(end, AS)],
            });
        }
    }
    edits.sort_by_key(|(at, _)| *at);
    let mut out = code.to_owned();
    edits.iter().rev().for_each(|(at, text)| out.insert_str(*at, text));
    out
}

/// What such code may be besides: of tensors and of floats, the likeliest first.
pub(super) fn others(code: &str) -> Vec<String> {
    let left = code.replace(&format!("{AS} / "), " / ");
    let words = Words::of(&left);
    let cast = |i: usize| {
        let end = words.operand(i + 1).filter(|end| words.word(*end) == "as" && words.word(end + 1) == "f64")?;
        Some(words.tokens[end - 1].range.end..words.tokens[end + 1].range.end)
    };
    let mut none = left.clone();
    let casts: Vec<Range<usize>> = divisions(&words).filter_map(cast).collect();
    casts.into_iter().rev().for_each(|at| none.replace_range(at, ""));
    let mut all = vec![left, none];
    all.dedup();
    all.retain(|other| other != code);
    all
}

fn divisions<'a>(words: &'a Words) -> impl Iterator<Item = usize> + 'a {
    let alone = |i: usize| !["/", "=", "*"].contains(&words.word(i + 1)) && i > 0 && words.word(i - 1) != "/";
    (0..words.len()).filter(move |&i| words.word(i) == "/" && alone(i))
}

/// What stands before a `*` or `/`, with all that it is a product of, and what behind.
pub(super) fn operands(words: &Words, i: usize) -> Option<(Range<usize>, Range<usize>)> {
    let mut from = words.operand_before(i)?;
    while from > 1 && ["*", "/", "%"].contains(&words.word(from - 1)) {
        from = words.operand_before(from - 1)?;
    }
    Some((from..i, i + 1..words.operand(i + 1)?))
}

/// What stands before a `+` or `-`, with all that it is a sum of, and the product behind.
pub(super) fn terms(words: &Words, i: usize) -> Option<(Range<usize>, Range<usize>)> {
    let last = words.tokens[words.operand_before(i)?].range.start;
    let from = words.at(words.sum_before(last))?;
    let mut end = words.operand(i + 1)?;
    while ["*", "/", "%"].contains(&words.word(end)) {
        end = words.operand(end + 1)?;
    }
    Some((from..i, i + 1..end))
}

/// Whether it may be a whole number: no float is in it, nothing that was divided, and nothing is called that is not one for sure.
fn may_be_whole(words: &Words, side: &Range<usize>) -> bool {
    const COUNTS: [&str; 6] = ["len", "size", "numel", "count", "item_i64", "samples"];
    side.clone().all(|i| match words.kind(i) {
        Some(Kind::Number) => is_whole(words.word(i)),
        Some(Kind::Ident) if ["as", "f32", "f64"].contains(&words.word(i)) => false,
        Some(Kind::Ident) => words.word(i + 1) != "(" || COUNTS.contains(&words.word(i)),
        Some(Kind::Literal) => false,
        _ => !["/", "[", "{", "!", ":"].contains(&words.word(i)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_divided_as_python_divides_them() {
        for (python, rust) in [
            ("(it + 1) / 10", "(it + 1) as f64 / 10.0"),
            ("correct / total", "correct as f64 / total as f64"),
            ("1 / n", "1.0 / n as f64"),
            ("2 * a / x.len()", "(2 * a) as f64 / x.len() as f64"),
            ("(0..4).map(|i| i / 4)", "(0..4).map(|i| i as f64 / 4.0)"),
            ("0.5 * step / 100", "0.5 * step / 100"),
            ("loss.item() / n", "loss.item() / n"),
            ("x.sum() / 2", "x.sum() / 2"),
            ("a / 2.0", "a / 2.0"),
            ("a as f64 / b as f64", "a as f64 / b as f64"),
            ("a /= b", "a /= b"),
            ("\"a / b\"", "\"a / b\""),
        ] {
            assert_eq!(of_floats(python), rust);
        }
    }

    #[test]
    fn of_tensors_it_stays_a_division() {
        assert_eq!(others("loss as f64 / n as f64"), ["loss / n as f64", "loss / n"]);
        assert_eq!(others("(it + 1) as f64 / 10.0"), ["(it + 1) / 10.0"]);
        assert_eq!(others("x.sum() / 2"), Vec::<String>::new());
    }
}
