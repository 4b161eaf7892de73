//! A call of torch's as it stands in a line: `torch.sort(x)`, `F.pad(x, p)`, `x.norm()`, `nn::Linear::new(2, 3)`.
use super::signatures::SIGNATURES;
use super::words::Words;
use crate::eval::text::scan::Kind;
use std::ops::Range;

/// A call of something that torch has, as it stands in a line.
pub(super) struct Call {
    /// `torch.sort`, `nn.functional.pad`, `Tensor.norm`.
    pub name: &'static str,
    /// What a method is called of.
    pub of: Option<Range<usize>>,
    pub whole: Range<usize>,
    /// The tokens between the brackets.
    pub arguments: Range<usize>,
}

/// The innermost call around a place, where it is of something that torch has.
pub(super) fn around(user: &Words, at: &Range<usize>) -> Option<Call> {
    let calls = (0..user.len()).filter_map(|open| {
        let end = user.behind_brackets(open).filter(|_| user.word(open) == "(")?;
        let mut first = open.checked_sub(1).filter(|i| user.kind(*i) == Some(Kind::Ident))?;
        // `torch.nn.functional.pad`, `nn::Linear::new`.
        let last = first;
        while first > 0 && matches!(user.word(first - 1), "." | ":") {
            let behind = if user.word(first - 1) == "." { first - 1 } else { first.checked_sub(2)? };
            match behind.checked_sub(1).filter(|i| user.kind(*i) == Some(Kind::Ident)) {
                Some(before) => first = before,
                None => break,
            }
        }
        let method = user.word(last.wrapping_sub(1)) == "." && !MODULES.contains(&user.word(first));
        let from = if method { last } else { first };
        let place = |from: usize| user.tokens[from].range.start..user.tokens[end - 1].range.end;
        let around = place(from);
        (around.start <= at.start && at.end <= around.end).then_some((around.len(), method, first, last, open, end))
    });
    let (_, method, first, last, open, end) = calls.min_by_key(|(len, ..)| *len)?;
    let start = if method { user.operand_before(last - 1)? } else { first };
    let whole = user.tokens[start].range.start..user.tokens[end - 1].range.end;
    let of = method.then(|| user.tokens[start].range.start..user.tokens[last - 2].range.end);
    let mut path: Vec<&str> =
        (first..=last).filter(|i| user.kind(*i) == Some(Kind::Ident)).map(|i| user.word(i)).collect();
    if path.len() > 1 && path.last() == Some(&"new") {
        path.pop();
    }
    let short = path.pop()?;
    let path = if path.first() == Some(&"torch") { &path[1..] } else { &path[..] };
    let called = |module: &str| SIGNATURES.get_key_value(&*format!("{module}.{short}")).map(|(name, _)| *name);
    let is_type = short.starts_with(char::is_uppercase);
    let modules: &[&str] = match path {
        _ if method => &["Tensor", "torch"],
        ["F"] | ["nn", "functional"] => &["nn.functional", "torch"],
        ["nn"] => &["nn"],
        ["optim"] => &["optim", "optim.lr_scheduler"],
        ["optim", "lr_scheduler"] | ["lr_scheduler"] => &["optim.lr_scheduler"],
        ["data"] | ["utils", "data"] => &["utils.data"],
        ["nn", "init"] | ["init"] => &["nn.init"],
        ["nn", "utils"] => &["nn.utils"],
        ["linalg"] => &["linalg"],
        ["special"] => &["special", "torch"],
        ["fft"] => &["fft"],
        ["Tensor"] => &["torch"],
        [] if is_type => &["nn", "optim", "optim.lr_scheduler", "utils.data"],
        [] if user.word(first) == "torch" => &["torch", "linalg", "special", "fft"],
        _ => return None,
    };
    let name = modules.iter().find_map(|module| called(module))?;
    Some(Call { name, of, whole, arguments: open + 1..end - 1 })
}

/// What torch's names begin with.
const MODULES: &[&str] =
    &["torch", "F", "nn", "optim", "data", "lr_scheduler", "init", "linalg", "special", "fft", "utils"];

#[cfg(test)]
mod tests {
    use super::super::ours::Ours;
    use super::super::signatures::Given;
    use super::*;

    const NAMES: &str = "sort\tmethod\tTensor::sort(&self, dim: i64, descending: bool) -> (Tensor, Tensor)
norm\tmethod\tTensor::norm(&self) -> Tensor
norm_p\tmethod\tTensor::norm_p(&self, p: f64, dim: impl Into<Dims>, keepdim: bool) -> Tensor
repeat_interleave\tmethod\tTensor::repeat_interleave(&self, repeats: usize, dim: i64) -> Tensor
cross_entropy\tmethod\tTensor::cross_entropy(&self, target: &Tensor, options: CrossEntropyOptions) -> Tensor
CrossEntropyOptions\tstruct\tCrossEntropyOptions
reduction\tfield\tCrossEntropyOptions::reduction: Reduction
Reduction\tenum\tReduction
Sum\tvariant\tReduction::Sum
Linear\tstruct\tnn::Linear
new\tfunction\tLinear::new(in_features: usize, out_features: usize) -> Linear
bias\tmethod\tLinear::bias(mut self, bias: bool) -> Linear
BatchNorm1d\tstruct\tnn::BatchNorm1d
new\tfunction\tBatchNorm1d::new(num_features: usize) -> BatchNorm
without_affine\tmethod\tBatchNorm1d::without_affine(self) -> BatchNorm
";

    #[test]
    fn a_call_is_written_as_both_signatures_say() {
        let ours = Ours::new(&|| NAMES.to_owned());
        let tensors = ["sort", "norm", "norm_p", "repeat_interleave", "cross_entropy"].map(|n| format!("Tensor::{n}"));
        let targets: Vec<String> =
            tensors.into_iter().chain(["nn::Linear".to_owned(), "nn::BatchNorm1d".to_owned()]).collect();
        let written = |line: &str, targets: &[String]| {
            let words = Words::of(line);
            let call = around(&words, &(0..1)).or_else(|| around(&words, &(2..3)))?;
            let mut given = Given::default();
            for part in words.between_commas(call.arguments.start, call.arguments.end) {
                let text = words.part(part.start, part.end)?.0;
                match text.split_once('=') {
                    Some((name, value)) => given.named.push((name.to_owned(), value.to_owned())),
                    None => given.plain.push(text),
                }
            }
            let short = call.name.rsplit('.').next()?;
            let fits = |t: &&String| t.rsplit("::").next().is_some_and(|n| n.starts_with(short));
            let targets: Vec<String> = targets.iter().filter(fits).cloned().collect();
            ours.call(call.name, call.of.map(|of| &line[of]), &given, &targets)
        };
        let cases = "torch.sort(x, descending=True) | x.sort(-1, true)
            x.sort(0, True) | x.sort(0, true)
            torch.norm(x) | x.norm()
            x.norm(p=2, dim=1) | x.norm_p(2.0, 1, false)
            torch.norm(x, dim=(0, 1), keepdim=True) | x.norm_p(2.0, [0, 1], true)
            x.repeat_interleave(2) | x.flatten().repeat_interleave(2, 0)
            F.cross_entropy(x, y, reduction='sum') | x.cross_entropy(&y, CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() })
            F.cross_entropy(x, y, reduction='mean') | x.cross_entropy(&y, CrossEntropyOptions::default())
            nn.Linear(4, 5, False) | nn::Linear::new(4, 5).bias(false)
            nn.Linear(4, out_features=5) | nn::Linear::new(4, 5)
            nn.BatchNorm1d(4, affine=False) | nn::BatchNorm1d::new(4).without_affine()
            torch.sort(x, 1, False, 5) |
            nn.Linear(4, 5, device=2, other=3) |";
        for case in cases.lines() {
            let (line, wanted) = case.trim().split_once(" |").unwrap();
            assert_eq!(written(line, &targets).unwrap_or_default(), wanted.trim(), "{line}");
        }
    }
}
