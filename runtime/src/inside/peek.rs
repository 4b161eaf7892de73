//! `%peek` and `peek(&h)`: what the numbers of a result look like, computed aside.
use super::last::{Spot, Wanted, find, refuse_gone};
use super::summary::Summary;
use crate::display::Plot;
use crate::json::{self, Value, json};
use crate::tensor::{buckets_of, real_bytes};
use crate::{Error, Result, Tensor};
use std::fmt::{Debug, Formatter, Write};
use std::panic::Location;
use std::sync::Arc;
use xlazy_core::device::{DeviceData, download};
use xlazy_core::ir::{Placement, graph};
use xlazy_core::run::{self, last_runs};
use xlazy_core::text::binding;
use xlazy_core::thread::innermost;
use xlazy_mime::{Bundle, Rich, Table, columns, count, escape_html};

/// What the elements of a tensor are: shows itself with its value and a histogram. Least, greatest, mean and deviation are those
/// of the finite elements.
#[derive(Clone)]
pub struct Peek {
    /// The variable, or the op.
    pub name: String,
    /// The line that computes it.
    pub at: String,
    /// The value, which is on the device and no part of what is pending.
    pub value: Tensor,
    pub nans: usize,
    pub infinities: usize,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Of a sample, as `torch.std`; NaN of less than two elements.
    pub std: f64,
    /// How many elements lie in each of 16 equal parts between least and greatest; empty where all are one number.
    pub histogram: Vec<u64>,
    of: String,
    zeros: usize,
    elements: usize,
    blocks: String,
}

/// The value of a tensor with its least, greatest and mean element, how many are NaN, and a histogram, computed aside: the tensor
/// stays pending, the step's program stays the same, and no sync is counted. Of what is computed already nothing runs.
///
/// ```
/// use xlazy::prelude::*;
/// let h = (tensor([1.0, 2.0, 6.0]) * 2.0).log();
/// let seen = peek(&h.exp());
/// assert_eq!((seen.nans, seen.min.round(), seen.max.round()), (0, 2.0, 12.0));
/// ```
#[track_caller]
pub fn peek(of: &Tensor) -> Peek {
    let at = innermost(Location::caller());
    let seen = of.refuse_read().and_then(|()| run::aside(of.id())).and_then(|data| {
        let name = xlazy_core::host::variables().into_iter().find(|(_, id)| *id == of.id()).map(|(name, _)| name);
        let made = of.location();
        let name = name.or_else(|| binding(made)).unwrap_or_else(|| graph().node(of.id()).op.torch_name().to_owned());
        Peek::of(data, Some(of), name, xlazy_core::text::location(made), String::new(), at)
    });
    seen.unwrap_or_else(|e| e.raise())
}

impl Peek {
    fn of(
        data: Arc<DeviceData>,
        tensor: Option<&Tensor>,
        name: String,
        at: String,
        of: String,
        here: &'static Location<'static>,
    ) -> Result<Peek> {
        let mut bytes = download(&data)?;
        let buckets = tensor.map(buckets_of).unwrap_or_default();
        if !buckets.is_empty() {
            bytes = real_bytes(bytes, &data.ty, &buckets);
        }
        let dtype = data.ty.dtype;
        let value = Tensor::of_data(data.clone(), Placement::Device(data.device), here);
        let value = crate::tensor::marked(value, buckets);
        let s = Summary::of(dtype, &bytes);
        let blocks = s.blocks();
        let Summary { elements, nans, infinities, zeros, min, max, mean, std, histogram } = s;
        Ok(Peek { name, at, value, nans, infinities, min, max, mean, std, histogram, of, zeros, elements, blocks })
    }

    /// `min -1.2, max 3.4, mean 0.12, std 1.1, no NaN`.
    fn said(&self) -> String {
        let mut said = String::new();
        if self.elements == 0 {
            return "no elements".into();
        }
        if self.min.is_nan() {
            said.push_str("no finite element");
        } else {
            let [min, max, mean, std] = [self.min, self.max, self.mean, self.std].map(short);
            let _ = write!(said, "min {min}, max {max}, mean {mean}");
            if !self.std.is_nan() {
                let _ = write!(said, ", std {std}");
            }
        }
        for (n, what) in [(self.nans, "NaN"), (self.infinities, "infinite"), (self.zeros, "zero")] {
            if n > 0 {
                let _ = write!(said, ", {n} of {} {what}", self.elements);
            }
        }
        if self.nans == 0 {
            said.push_str(", no NaN");
        }
        said
    }

    fn head(&self) -> String {
        let ty = self.value.ty();
        format!("{} {ty} · {}{}", self.name, self.at, self.of)
    }

    fn json(&self) -> Value {
        let number = |v: f64| if v.is_finite() { json!(v) } else { Value::Null };
        json!({
            "name": self.name,
            "at": self.at,
            "type": self.value.ty().to_string(),
            "elements": self.elements,
            "nan": self.nans,
            "infinite": self.infinities,
            "zero": self.zeros,
            "min": number(self.min),
            "max": number(self.max),
            "mean": number(self.mean),
            "std": number(self.std),
            "histogram": self.histogram,
        })
    }
}

/// Four digits.
fn short(v: f64) -> String {
    let text = match v.abs() {
        0.0 => "0".to_owned(),
        a if !(1e-3..1e6).contains(&a) => format!("{v:.3e}"),
        a => format!("{v:.*}", (3 - a.log10().floor() as i32).clamp(0, 6) as usize),
    };
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Lines of a value that are shown as text.
const LINES: usize = 16;

impl Debug for Peek {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "{}\n{}", self.head(), self.said())?;
        if !self.blocks.is_empty() {
            write!(f, "\n{} │{}│ {}", short(self.min), self.blocks, short(self.max))?;
        }
        // What it is like is told above; of a long value both ends are enough.
        let value = self.value.to_string();
        let lines: Vec<&str> = value.lines().collect();
        match lines.len() {
            0..=LINES => write!(f, "\n{value}"),
            n => write!(f, "\n{}\n …\n{}", lines[..LINES / 2].join("\n"), lines[n - LINES / 4..].join("\n")),
        }
    }
}

impl Rich for Peek {
    fn rich(&self) -> Bundle {
        let values = self.value.rich();
        let table = values.get("text/html").map_or_else(|| escape_html(values.plain()), str::to_owned);
        let picture = match self.histogram.is_empty() {
            true => String::new(),
            false => {
                let width = (self.max - self.min) / self.histogram.len() as f64;
                let middle = |i: usize| self.min + (i as f64 + 0.5) * width;
                let names: Vec<String> = (0..self.histogram.len()).map(|i| short(middle(i))).collect();
                let counts: Vec<f64> = self.histogram.iter().map(|&n| n as f64).collect();
                let plot = Plot::new("").bars(&names, &counts).y_label("elements").size(520, 180).rich();
                plot.get("text/html").unwrap_or_default().to_owned()
            }
        };
        let html = format!(
            "<div><div><b>{}</b> <span style=\"opacity:.75\">{}</span></div><div>{}</div>{picture}{table}</div>",
            escape_html(&self.name),
            escape_html(self.head().strip_prefix(&self.name).unwrap_or_default()),
            escape_html(&self.said())
        );
        Bundle::html(html, format!("{self:?}"))
    }
}

/// Keeps what programs are given, or no longer.
pub(crate) fn keep(on: bool) -> Bundle {
    run::set_keeping(on);
    Bundle::text(match on {
        true => "what a program is given is kept until the next one runs, so that all of it can be looked at",
        false => "what programs are given is kept only as long as something else holds it",
    })
}

/// `h`, `h 2`, `12`, `3:12`, or nothing for a list of what there is; with `--json` as data.
pub(crate) fn ask(args: &str) -> Result<Bundle> {
    let as_json = args.split_whitespace().any(|w| w == "--json");
    let words: Vec<&str> = args.split_whitespace().filter(|w| *w != "--json").collect();
    let (wanted, which) = match words[..] {
        [] => return listed(as_json),
        [what] => (wanted(what), None),
        [what, which] => (wanted(what), Some(which)),
        _ => return Err(refused("%peek takes a variable or a line, and which of several".into())),
    };
    let found = find(&wanted);
    if found.is_empty() {
        return Err(refused(missing(words[0])));
    }
    let chosen = match which {
        None => found.len(),
        Some(n) => match n.parse() {
            Ok(n) if (1..=found.len()).contains(&n) => n,
            _ => {
                let message =
                    format!("`{}` was computed {} in the last program, not {n}", words[0], times(found.len()));
                return Err(refused(message));
            }
        },
    };
    let some: &[Spot] = match which {
        Some(_) => &found[chosen - 1..chosen],
        None => &found[found.len().saturating_sub(MOST)..],
    };
    let seen = look(some)?;
    let last = seen.last().expect("one at least");
    if as_json {
        return Ok(json::bundle(seen.iter().map(Peek::json).collect::<Value>()));
    }
    if seen.len() == 1 {
        return Ok(last.rich().passing());
    }
    Ok(table(&seen, found.len() - seen.len(), last))
}

/// Results of one name that are looked at together.
const MOST: usize = 24;

fn times(n: usize) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

fn wanted(what: &str) -> Wanted<'_> {
    let line = |cell: Option<u64>, line: &str| Some(Wanted::Line { cell, line: line.parse().ok()? });
    let place = match what.split_once(':') {
        Some((cell, of)) => cell.parse().ok().and_then(|cell| line(Some(cell), of)),
        None => line(None, what),
    };
    place.unwrap_or(Wanted::Name(what))
}

fn missing(what: &str) -> String {
    match last_runs().first() {
        None => "no program has run yet: show or read a tensor, or call sync(), and ask again".into(),
        Some(run) => format!(
            "no line of the last program ({}) gives `{what}`: `%peek` lists what there is",
            count(run.lines.len(), "op")
        ),
    }
}

/// Computes them together, aside.
fn look(spots: &[Spot]) -> Result<Vec<Peek>> {
    let run = &spots[0].run;
    let wanted: Vec<u32> = spots.iter().map(|s| s.step).collect();
    refuse_gone(run, &wanted, &format!("`{}`", spots[0].name()))?;
    let values = run.again(&wanted)?;
    let of = format!(" · of sync {}, computed aside", run.number);
    let one =
        |(spot, data): (&Spot, Arc<DeviceData>)| Peek::of(data, None, spot.name(), spot.place(), of.clone(), spot.at());
    spots.iter().zip(values).map(one).collect()
}

/// One line each, and the last one whole.
fn table(seen: &[Peek], before: usize, last: &Peek) -> Bundle {
    let heads = ["", "type", "min", "max", "mean", "std", "NaN", "distribution"];
    let row = |(i, p): (usize, &Peek)| {
        let [min, max, mean, std] = [p.min, p.max, p.mean, p.std].map(short);
        let n = (before + i + 1).to_string();
        [n, p.value.ty().to_string(), min, max, mean, std, p.nans.to_string(), p.blocks.clone()]
    };
    let rows: Vec<[String; 8]> = seen.iter().enumerate().map(row).collect();
    let head = format!(
        "{} was computed {}; number {} is shown below",
        last.name,
        times(before + seen.len()),
        before + seen.len()
    );
    let mut html = Table::new("font-family:monospace");
    html.head(heads);
    rows.iter().for_each(|r| html.row(r.iter().map(String::as_str)));
    let all: Vec<Vec<String>> =
        std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows.iter().map(|r| r.to_vec())).collect();
    let plain = columns(&all, &[0, 2, 3, 4, 5, 6]);
    let whole = last.rich();
    let below = whole.get("text/html").unwrap_or_default();
    Bundle::html(
        format!("<div>{}{}{below}</div>", escape_html(&head), html.html()),
        format!("{head}\n{plain}\n{}", whole.plain()),
    )
    .passing()
}

/// What there is to look at in the last program.
fn listed(as_json: bool) -> Result<Bundle> {
    let Some(run) = last_runs().into_iter().next() else { return Err(refused(missing(""))) };
    let derived = crate::insight::mode::derived_of(run.program.steps.iter().map(|s| s.seq));
    let spots: Vec<Spot> = (0..run.lines.len() as u32)
        .filter(|&i| derived[i as usize].is_none())
        .map(|step| Spot { run: run.clone(), step })
        .collect();
    let there = |s: &Spot| run.gone(&[s.step]).is_empty();
    let head = format!(
        "sync {} ran {}; {} of the {} can be computed again{}",
        run.number,
        count(run.lines.len(), "op"),
        spots.iter().filter(|s| there(s)).count(),
        count(spots.len(), "result"),
        if run::keeping() { "" } else { " (`%peek on` keeps what the next one is given)" }
    );
    if as_json {
        let one = |s: &Spot| json!({ "name": binding(s.at()), "op": s.op(), "type": s.ty(), "at": s.place(), "there": there(s) });
        return Ok(json::bundle(json!({ "sync": run.number, "results": spots.iter().map(one).collect::<Value>() })));
    }
    let row = |s: &Spot| {
        let name = binding(s.at()).unwrap_or_default();
        [name, s.op().to_owned(), s.ty(), s.place(), if there(s) { "" } else { "gone" }.to_owned()]
    };
    let shown = &spots[..spots.len().min(LISTED)];
    let rows: Vec<[String; 5]> = shown.iter().map(row).collect();
    let heads = ["variable", "op", "type", "at", ""];
    let mut html = Table::new("font-family:monospace");
    html.head(heads);
    rows.iter().for_each(|r| html.row(r.iter().map(String::as_str)));
    let all: Vec<Vec<String>> =
        std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows.iter().map(|r| r.to_vec())).collect();
    let more = match spots.len() - shown.len() {
        0 => String::new(),
        n => format!("\n… and {n} more"),
    };
    let (head_html, table) = (escape_html(&head), html.html());
    Ok(Bundle::html(format!("<div>{head_html}{table}{more}</div>"), format!("{head}\n{}{more}", columns(&all, &[])))
        .passing())
}

/// Results that are listed.
const LISTED: usize = 200;

fn refused(message: String) -> Error {
    Error::Usage { message }
}

/// What `%peek EXPRESSION` shows.
#[doc(hidden)]
#[track_caller]
pub fn show(of: &Tensor, as_json: bool) -> Bundle {
    let seen = peek(of);
    if as_json { json::bundle(seen.json()) } else { seen.rich().passing() }
}
