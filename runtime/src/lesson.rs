//! Lessons that answer: a guess before a cell runs (`predict!`), and a solution's score (`check!`).
use crate::insight::{Mark, Quantity, guess};
use crate::{Error, aot};
use std::fmt::{Debug, Formatter};
use xlazy_core::run::last_program;
use xlazy_mime::{Bundle, Rich, Table, columns, units};

/// Takes a guess before the cell runs; when it has ended, the guess, the truth and the reasons for it are shown. What is counted is in the
/// question: programs (that are compiled), syncs, ops, or bytes (that go to the device and back).
///
/// ```
/// use xlazy::prelude::*;
/// predict!("how many programs does this compile?", 1);
/// let y = (Tensor::ones([2]) * 2.0).sum().item();
/// # assert_eq!(y, 4.0);
/// ```
#[macro_export]
macro_rules! predict {
    ($question:expr, $guess:expr $(,)?) => {
        $crate::lesson::predict($question, ($guess) as f64)
    };
}

/// Runs a solution and scores it: how many programs it compiled, how many syncs it took, how many bytes went to the device and back, how
/// many cycles a TPU's compiler reckons with for its last program. Behind the solution stands what the best known one has.
///
/// ```
/// use xlazy::prelude::*;
/// let x = Tensor::arange(0.0, 8.0, 1.0);
/// let score = check!((&x * 2.0).sum().item(), compilations: 1, syncs: 1);
/// assert!(score.is_best(), "{score:?}");
/// ```
///
/// Of cycles it says which chip: `cycles on "v5e": 5000`. Where TPUs' compiler is not installed, they are left out.
#[macro_export]
macro_rules! check {
    ($work:expr $(, $what:ident $(on $chip:literal)? : $best:expr)* $(,)?) => {
        $crate::lesson::check(
            || { let _ = $work; },
            &[$($crate::lesson::Best::new(stringify!($what), &[$($chip)?], ($best) as f64)),*],
        )
    };
}

#[doc(hidden)]
#[track_caller]
pub fn predict(question: &str, number: f64) {
    guess(question, number).unwrap_or_else(|e| e.raise())
}

/// What the best known solution has of one thing.
#[doc(hidden)]
pub struct Best {
    what: &'static str,
    chip: &'static str,
    best: f64,
}

impl Best {
    pub fn new(what: &'static str, chip: &[&'static str], best: f64) -> Best {
        Best { what, chip: chip.first().copied().unwrap_or_default(), best }
    }
}

/// A solution's score: shows itself as a table.
#[derive(Clone)]
pub struct Score {
    rows: Vec<Row>,
    passed_over: Vec<String>,
}

#[derive(Clone)]
struct Row {
    what: String,
    yours: u64,
    best: Option<f64>,
}

/// What is counted, in the order of the table.
const COUNTED: [(&str, Quantity); 4] = [
    ("compilations", Quantity::Programs),
    ("syncs", Quantity::Syncs),
    ("ops", Quantity::Ops),
    ("bytes", Quantity::Bytes),
];

#[doc(hidden)]
#[track_caller]
pub fn check(work: impl FnOnce(), best: &[Best]) -> Score {
    if let Some(b) = best.iter().find(|b| b.what != "cycles" && !COUNTED.iter().any(|(name, _)| *name == b.what)) {
        let message = format!("check! counts compilations, syncs, ops, bytes and cycles, not `{}`", b.what);
        Error::Usage { message }.raise();
    }
    let from = Mark::now();
    work();
    let since = from.since();
    let known = |name: &str| best.iter().find(|b| b.what == name).map(|b| b.best);
    let row = |&(what, of): &(&str, Quantity)| Row { what: what.to_owned(), yours: since.count(of), best: known(what) };
    let mut rows: Vec<Row> = COUNTED.iter().map(row).collect();
    let mut passed_over = Vec::new();
    for b in best.iter().filter(|b| b.what == "cycles") {
        let chip = if b.chip.is_empty() { "v5e" } else { b.chip };
        match cycles(chip) {
            Ok(yours) => rows.push(Row { what: format!("cycles on {chip}"), yours, best: Some(b.best) }),
            Err(why) => passed_over.push(format!("cycles on {chip} (best known: {}): {why}", b.best)),
        }
    }
    Score { rows, passed_over }
}

/// What TPUs' compiler reckons with for the program that ran last.
fn cycles(chip: &str) -> Result<u64, Error> {
    let program = last_program().ok_or_else(|| Error::Usage { message: "no program has run".into() })?;
    Ok(aot::compile_program(program.text.as_bytes(), chip, &aot::Options::default())?.cycles())
}

impl Row {
    fn verdict(&self) -> String {
        match self.best {
            None => String::new(),
            Some(best) if (self.yours as f64) < best => "better than the best known".into(),
            Some(best) if self.yours as f64 == best => "as the best known".into(),
            Some(best) => format!("{} more than the best known", self.yours as f64 - best),
        }
    }

    fn texts(&self) -> [String; 4] {
        let number = |n: u64| if self.what == "bytes" { units::bytes(n) } else { units::thousands(n) };
        [self.what.clone(), number(self.yours), self.best.map_or("–".into(), |b| number(b as u64)), self.verdict()]
    }
}

impl Score {
    /// Whether nothing is worse than in the best known solution.
    pub fn is_best(&self) -> bool {
        self.rows.iter().all(|r| r.best.is_none_or(|best| r.yours as f64 <= best))
    }

    fn head(&self) -> &'static str {
        match (self.is_best(), self.rows.iter().any(|r| r.best.is_some())) {
            (_, false) => "what it took",
            (true, _) => "✓ as good as the best known solution",
            (false, _) => "✗ the best known solution does with less",
        }
    }
}

impl Debug for Score {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let head = ["", "yours", "best known", ""].map(str::to_owned);
        let rows: Vec<[String; 4]> = std::iter::once(head).chain(self.rows.iter().map(Row::texts)).collect();
        write!(f, "{}\n{}", self.head(), columns(&rows, &[1, 2]).trim_end())?;
        self.passed_over.iter().try_for_each(|p| write!(f, "\n{p}"))
    }
}

impl Rich for Score {
    fn rich(&self) -> Bundle {
        let mut table = Table::new("font-family:monospace");
        table.head(["", "yours", "best known", ""]);
        self.rows.iter().for_each(|r| table.row(r.texts().iter().map(String::as_str)));
        let over: String =
            self.passed_over.iter().map(|p| format!("<div>{}</div>", xlazy_mime::escape_html(p))).collect();
        let html = format!("<div><div><b>{}</b></div>{}{over}</div>", self.head(), table.html());
        Bundle::html(html, format!("{self:?}")).passing()
    }
}
