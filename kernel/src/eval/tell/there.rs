//! What there is: of torch here, by the page of all ops; and what an error says is not there.
use super::words::Words;
use crate::eval::toolchain::diagnostic::Diagnostic;

/// What of ours may be a name of torch's.
pub(super) fn targets(name: &str) -> Vec<String> {
    if let Some(of_data) = name.strip_prefix("utils.data.") {
        return vec![format!("data::{of_data}")];
    }
    let key = name.strip_prefix("torch.").or_else(|| name.strip_prefix("Tensor.")).unwrap_or(name);
    let key = SECOND_NAMES.iter().find(|(second, _)| *second == key).map_or(key, |(_, first)| first);
    let row = |key: &str| {
        let head = format!("| `{key}` | `");
        OPS.lines().find_map(|line| line.strip_prefix(&head)?.split(" | ").next())
    };
    let mut out: Vec<String> = Vec::new();
    // A module's function is often a method of tensors, too.
    let short = key.rsplit('.').next().unwrap_or(key);
    let elsewhere = ["", "linalg.", "special.", "nn.functional."].map(|module| format!("{module}{short}"));
    let of_tensors = |key: &String| row(key).filter(|calls| calls.starts_with("Tensor::"));
    // Torch's signatures have what is in `nn.utils.rnn` with the rest of `nn.utils`.
    let of_rnn = || row(&key.replace("nn.utils.", "nn.utils.rnn."));
    let line = row(key).or_else(of_rnn).or_else(|| elsewhere.iter().find_map(of_tensors));
    for called in line.into_iter().flat_map(|calls| calls.split('`').step_by(2)) {
        let alike = ["", "_dim", "_p", "_with", "_sections", "_mode"].iter().filter(|_| called.starts_with("Tensor::"));
        match called.contains("::") {
            true if called.starts_with("Tensor::") => out.extend(alike.map(|more| format!("{called}{more}"))),
            true => out.push(called.to_owned()),
            false => out.push(in_scope(called)),
        }
    }
    out
}

/// What torch has by two names, one of which no row of the page has.
const SECOND_NAMES: [(&str, &str); 10] = [
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("row_stack", "vstack"),
    ("pinverse", "linalg.pinv"),
    ("trapz", "trapezoid"),
    ("special.expit", "sigmoid"),
    ("special.gammaln", "lgamma"),
    ("special.multigammaln", "mvlgamma"),
    ("special.psi", "digamma"),
    ("nn.functional.upsample", "nn.functional.interpolate"),
];

/// A function of no module, as every cell can call it.
pub(super) fn in_scope(name: &str) -> String {
    let there = Words::of(PRELUDE).tokens.iter().any(|t| &PRELUDE[t.range.clone()] == name);
    if there { name.to_owned() } else { format!("xlazy::{name}") }
}

/// The page of all ops, which is written from their table.
pub(super) const OPS: &str = include_str!("../../../../docs/ops.md");

/// What every cell has.
const PRELUDE: &str = include_str!("../../../../runtime/src/prelude.rs");

/// The value that an error says is not there.
pub(super) fn unknown_value(error: &Diagnostic) -> Option<&str> {
    error.message.strip_prefix("cannot find value `")?.split('`').next()
}

/// Whether code has a value of that name: no field, method or path.
pub(super) fn names(code: &str, name: &str) -> bool {
    let words = Words::of(code);
    let field = |i: usize| words.word(i + 1) == ":" && words.word(i + 2) != ":";
    (0..words.len()).any(|i| words.word(i) == name && !field(i) && !matches!(words.word(i.wrapping_sub(1)), "." | ":"))
}
