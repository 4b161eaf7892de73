//! What a cause says of the differences that it explains.
use crate::insight::evidence::{Evidence, What};
use crate::insight::report::{Class, Difference, Place};
use xlazy_core::ir::OpDef;
use xlazy_core::text::Edit;

/// What to do: in words, and in code where that is all there is to it.
pub(super) struct Fix {
    pub say: String,
    pub edits: Vec<Edit>,
}

impl From<String> for Fix {
    fn from(say: String) -> Fix {
        Fix { say, edits: vec![] }
    }
}

impl From<&str> for Fix {
    fn from(say: &str) -> Fix {
        say.to_owned().into()
    }
}

impl Fix {
    /// The same in code, where the place for it is known.
    pub fn code(self, edits: Option<Vec<Edit>>) -> Fix {
        Fix { edits: edits.unwrap_or_default(), ..self }
    }
}

/// What a cause says of the differences that it explains.
pub(super) struct Claim {
    /// By their number among the roots of the evidence.
    pub covers: Vec<usize>,
    pub class: Class,
    pub at: Place,
    pub differences: Vec<Difference>,
    pub fix: Fix,
    /// The second step of a loop takes up what the first one made.
    pub warm_up: bool,
    /// It is gone for good, where others may come again: told behind them.
    pub passing: bool,
    /// Ops and lines whose changing attribute can become a parameter.
    pub healable: Vec<(&'static OpDef, Place)>,
}

impl Claim {
    pub fn new(
        covers: Vec<usize>,
        class: Class,
        at: Place,
        differences: Vec<Difference>,
        fix: impl Into<Fix>,
    ) -> Claim {
        Claim { covers, class, at, differences, fix: fix.into(), warm_up: false, passing: false, healable: vec![] }
    }
}

/// The numbers of the roots that are ops which came or went.
pub(super) fn all_ops(e: &Evidence) -> Vec<usize> {
    e.ops().map(|(r, _)| r).collect()
}

/// All that is left over by other causes once these are told: results and buffers go by them.
pub(super) fn with_results(e: &Evidence, mut covers: Vec<usize>) -> Vec<usize> {
    covers.extend(e.numbered(|what| matches!(what, What::Results | What::Donation(_))));
    covers
}
