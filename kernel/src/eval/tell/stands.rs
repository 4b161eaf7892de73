//! What the letters of a row stand for, as rustc is asked whether something is one.
use super::words::{Captured, Meta, Words};
use crate::eval::text::scan::Kind;
use std::ops::Range;

/// What a row's first letter stands for, and how rustc is asked whether what stands there is one.
const STANDS: [(&[&str], &str); 8] = [
    (&["x", "y", "t", "i", "m"], TENSOR),
    (&["model", "a", "b"], "impl<T: ::xlazy::nn::Module + ?Sized> Is for T {}"),
    (&["loss"], TENSOR),
    (&["cell"], "impl Is for ::xlazy::nn::LSTMCell {}"),
    (&["gru_cell"], "impl Is for ::xlazy::nn::GRUCell {} impl Is for ::xlazy::nn::RNNCell {}"),
    (&["criterion"], LOSS),
    (&["opt"], "impl<T: ::xlazy::optim::Optimizer + ?Sized> Is for T {}"),
    (&["v", "w"], "impl<T: ?Sized> Is for T where for<'a> &'a T: ::core::iter::IntoIterator {}"),
];
const LOSS: &str = "impl Is for ::xlazy::nn::CrossEntropyLoss {} impl Is for ::xlazy::nn::MSELoss {} impl Is for \
    ::xlazy::nn::L1Loss {} impl Is for ::xlazy::nn::NLLLoss {} impl Is for ::xlazy::nn::BCELoss {} impl Is for \
    ::xlazy::nn::BCEWithLogitsLoss {} impl Is for ::xlazy::nn::HuberLoss {} impl Is for ::xlazy::nn::SmoothL1Loss {} impl Is for \
    ::xlazy::nn::KLDivLoss {}";
pub(super) const TENSOR: &str = "impl Is for ::xlazy::Tensor {}";
const TEXT: &str = "impl<T: ::core::convert::AsRef<::std::path::Path> + ?Sized> Is for T {}";
pub(super) const LIST: &str = "impl<T: ::core::ops::Index<::core::ops::RangeFull> + ?Sized> Is for T {}";
pub(super) const NUMBER: &str = "impl<T: ::core::convert::TryInto<i128> + Copy> Is for T {}";

/// What of the text a row is about: what its first letter that says what it is stands for, or else its first number.
pub(super) fn subject(pattern: &Words, captured: &Captured) -> Option<(Range<usize>, &'static str)> {
    let metas = || (0..pattern.len()).filter(|&i| pattern.meta(i) == Some(Meta::One));
    let stands =
        |i: usize| STANDS.iter().find(|(letters, _)| letters.contains(&pattern.word(i))).map(|(_, is)| (i, *is));
    let number = || metas().find(|&i| pattern.kind(i) == Some(Kind::Number)).map(|i| (i, NUMBER));
    let text = || metas().find(|&i| pattern.kind(i) == Some(Kind::Literal)).map(|i| (i, TEXT));
    let (i, is) = metas().find_map(stands).or_else(number).or_else(text)?;
    Some((captured.get(pattern.word(i))?.1.clone(), is))
}
