//! Sequences of several lengths through a recurrent layer: packed, given to it and padded again in torch, one call here.
use super::instead::{ANSWER, given};
use super::ours::Ours;
use super::words::{Words, receiver};
use crate::eval::text::scan::Kind;
use std::ops::Range;

/// What is told where no layer is found that takes what is packed.
pub(super) const IN_WORDS: &str =
    "recurrent layers take the padded batch and the lengths, and give it padded: `lstm.packed(&x, &lengths, None)`";

/// The statements around a place that pack a batch, give it to a layer and pad what that gives, as one: where they are, what is
/// told, and what is written, the likeliest first.
pub(super) fn told(text: &str, at: &Range<usize>, ours: &Ours) -> Option<(Range<usize>, Vec<String>)> {
    if !text.contains("pack_padded_sequence") {
        return None;
    }
    let words = Words::of(text);
    let pack = (0..words.len()).find(|i| words.word(*i) == "pack_padded_sequence" && words.word(i + 1) == "(")?;
    let packs = Statement::around(&words, pack)?;
    let layer = Layer::of(&words, &packs, pack)?;
    let pads = (layer.statement.end..words.len())
        .find(|i| words.word(*i) == "pad_packed_sequence" && words.word(i + 1) == "(")
        .and_then(|i| Statement::around(&words, i));
    let last = pads.as_ref().unwrap_or(&layer.statement);
    let place = words.tokens[packs.first].range.start..words.tokens[last.end - 1].range.end;
    if at.end < place.start || place.end < at.start {
        return None;
    }
    // What stands between them has to stay.
    let between = |one: &Statement, next: &Statement| one.first == next.first || one.end == next.first;
    let chained = between(&packs, &layer.statement) && pads.as_ref().is_none_or(|p| between(&layer.statement, p));
    let names = layer.statement.targets(&words)?;
    let output = match &pads {
        Some(pads) => pads.targets(&words)?.first()?.clone(),
        None => names.first()?.clone(),
    };
    let state = names.get(1).cloned().unwrap_or("_".to_owned());
    let arguments = words.arguments(pack)?;
    let given = given(&words, arguments, ours);
    let named = |name: &str| given.named.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone());
    let batch = given.plain.first().cloned().or_else(|| named("input"))?;
    let lengths = given.plain.get(1).cloned().or_else(|| named("lengths"))?;
    let lengths = lengths.trim_end_matches(".cpu()").trim_start_matches('&');
    let code = |lengths: String| {
        format!(
            "let ({output}, {state}) = {}.packed(&{}, {lengths}, {});",
            layer.of,
            receiver(&batch),
            layer.first.as_deref().map_or("None".to_owned(), |first| format!("Some({first})"))
        )
    };
    let all = vec![code(format!("&{}", receiver(lengths))), code(format!("&tensor({})", receiver(lengths)))];
    chained.then_some((place, all))
}

/// The statement around a place that packs or pads, where no layer is found that takes that.
pub(super) fn around(text: &str, at: &Range<usize>) -> Option<Range<usize>> {
    let words = Words::of(text);
    let call = |i: &usize| {
        matches!(words.word(*i), "pack_padded_sequence" | "pad_packed_sequence") && words.word(i + 1) == "("
    };
    let place = |i: usize| {
        let of = Statement::around(&words, i)?;
        Some(words.tokens[of.first].range.start..words.tokens[of.end - 1].range.end)
    };
    (0..words.len()).filter(call).filter_map(place).find(|place| place.start <= at.start && at.end <= place.end)
}

/// As it is said, with a note.
pub(super) fn said(code: &str) -> String {
    format!("{ANSWER}`{code}` (the batch stays padded, and the layer is told the lengths)")
}

/// The tokens of a statement: of its lines.
struct Statement {
    first: usize,
    /// Behind its last one, and the sign that ends it.
    end: usize,
}

impl Statement {
    fn around(words: &Words, at: usize) -> Option<Statement> {
        let breaks = |i: usize| {
            let to = words.tokens.get(i + 1).map_or(words.text.len(), |t| t.range.start);
            words.text[words.tokens[i].range.end..to].contains('\n')
        };
        // What is an argument of something is in the statement of that.
        let around = |at: usize| {
            let opens =
                |i: &usize| matches!(words.word(*i), "(" | "[") && words.behind_brackets(*i).is_some_and(|e| e > at);
            (0..at).rev().find(opens)
        };
        let at = std::iter::successors(Some(at), |at| around(*at)).last()?;
        let begins = |i: usize| {
            i == 0
                || matches!(words.word(i - 1), ";" | "{" | "}" | ":") && words.word(i) != ":"
                || breaks(i - 1) && words.within(i, at)
        };
        let first = (0..=at).rev().find(|i| begins(*i) && words.within(*i, at))?;
        let mut end = at;
        while end < words.len() {
            match words.kind(end)? {
                Kind::Open(_) => end = words.behind_brackets(end)?,
                Kind::Punct(';') => return Some(Statement { first, end: end + 1 }),
                Kind::Close(_) => break,
                _ => end += 1,
            }
            if breaks(end - 1) && words.within(first, end) {
                break;
            }
        }
        // What stands behind it on its line.
        Some(Statement { first, end: end + usize::from(words.word(end) == ";") })
    }

    /// What its value is bound to, one by one: `let (out, (h, c))`.
    fn targets(&self, words: &Words) -> Option<Vec<String>> {
        let from = self.first + usize::from(words.word(self.first) == "let");
        let sign = (from..self.end).find(|i| words.word(*i) == "=" && words.within(from, *i))?;
        let whole = words.word(from) == "(" && words.behind_brackets(from) == Some(sign);
        let (from, to) = if whole { (from + 1, sign - 1) } else { (from, sign) };
        words.listed(from..to)
    }
}

/// The layer that takes what was packed.
struct Layer {
    statement: Statement,
    of: String,
    /// The state that it begins with.
    first: Option<String>,
}

impl Layer {
    fn of(words: &Words, packs: &Statement, pack: usize) -> Option<Layer> {
        // `lstm(pack_padded_sequence(…))`, or the name that it is bound to further down.
        let mut path = pack;
        while path > 1 && matches!(words.word(path - 1), "." | ":") {
            path -= if words.word(path - 1) == "." { 2 } else { 3 };
        }
        let given_at_once = words.word(path.checked_sub(1)?) == "(" && path > 1;
        let open = match given_at_once {
            true => path - 1,
            false => {
                let name = packs.targets(words)?.first()?.clone();
                (packs.end..words.len()).find(|i| words.word(*i) == name && words.word(i - 1) == "(")? - 1
            }
        };
        let callee = words.operand_before(open)?;
        let forward = words.word(open - 1) == "forward" && words.word(open.checked_sub(2)?) == ".";
        let (of, _) = words.part(callee, if forward { open - 2 } else { open })?;
        let end = words.behind_brackets(open)? - 1;
        let rest = words.between_commas(open + 1, end);
        let first = rest.get(1).and_then(|one| words.part(one.start, one.end)).map(|(text, _)| text);
        let first = first.filter(|text| text != "None");
        let first =
            first.map(|text| text.strip_prefix("Some(").and_then(|t| t.strip_suffix(')')).unwrap_or(&text).to_owned());
        Some(Layer { statement: Statement::around(words, open)?, of, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_for_a_layer_is_one_call() {
        let ours = Ours::new(&String::new);
        let code = |text: &str| {
            told(text, &(text.find("pack_").unwrap()..text.len() - 1), &ours)
                .map(|(at, all)| (text[at].to_owned(), all[0].clone()))
        };
        for (python, rust) in [
            (
                "packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)\nout, (h, c) = self.lstm(packed)\nout, _ = pad_packed_sequence(out)",
                "let (out, (h, c)) = self.lstm.packed(&x, &lengths, None);",
            ),
            (
                "let p = pack_padded_sequence(&x, lengths=n.cpu()); let (y, h) = gru.forward(p, h0);",
                "let (y, h) = gru.packed(&x, &n, Some(h0));",
            ),
            ("_, h = gru(pack_padded_sequence(e(x), n))", "let (_, h) = gru.packed(&e(x), &n, None);"),
        ] {
            assert_eq!(code(python), Some((python.to_owned(), rust.to_owned())), "{python}");
        }
        assert_eq!(code("p = pack_padded_sequence(x, n)"), None);
        assert_eq!(code("p = pack_padded_sequence(x, n)\nf(1)\ny, h = gru(p)"), None);
    }
}
