//! The collectives of an optimised program: what the devices tell one another, how much, in which groups, what that would cost,
//! and which line of the user's is behind it.
use super::rates;
use super::transfers::{Transfer, transfers};
use crate::json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use xlazy_core::device::client_if_open;
use xlazy_core::mesh::Mesh;
use xlazy_core::run::Program;
use xlazy_core::text::{Source, location};
use xlazy_mime::units::{bytes, measured};
use xlazy_mime::{Bundle, Cell, Table, columns, count};

/// One collective of a program.
pub(crate) struct Collective {
    pub is: Transfer,
    pub why: Why,
    /// The op it is for and its line, where XLA says that.
    pub of: Option<(&'static str, &'static Source)>,
}

/// What a collective is there for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Why {
    /// The code has it: `spmd::all_reduce` and its kin.
    Asked,
    /// Each device has a part of a sum.
    PartsOfASum,
    /// What one op gives is not split as another one takes it.
    Resharding,
    /// The same, and XLA found no other way than the whole on each device.
    Whole,
}

impl Why {
    fn says(self) -> &'static str {
        match self {
            Why::Asked => "asked for",
            Why::PartsOfASum => "sum of parts",
            Why::Resharding => "resharding",
            Why::Whole => "resharding, whole",
        }
    }
}

/// The collectives of a program, in its order.
pub(crate) fn of(program: &Program, format: &str, proto: &[u8]) -> Vec<Collective> {
    // There XLA has none of its own.
    let ranks = Mesh::at(program.device).is_some_and(Mesh::is_ranks);
    let one = |is: Transfer| {
        let of = mark_of(program, &is.op);
        let why = match &*is.kind {
            _ if ranks || of.is_some_and(|(op, _)| op == "manual") => Why::Asked,
            "all-reduce" | "reduce-scatter" => Why::PartsOfASum,
            _ if is.cut_again => Why::Whole,
            _ => Why::Resharding,
        };
        Collective { is, why, of }
    };
    transfers(format, proto).into_iter().map(one).collect()
}

/// What XLA compiles has the number of a part behind the name of its op.
fn mark_of(program: &Program, name: &str) -> Option<(&'static str, &'static Source)> {
    // One made of several ops has their names.
    let first = name.split([';', '/']).find(|n| n.contains('#'))?;
    let mark = program.marks.get(first.rsplit_once('#')?.1.parse::<usize>().ok()?)?;
    Some((mark.op.torch_name(), mark.at))
}

/// What is said where a program has none.
fn none(program: &Program) -> String {
    match Mesh::at(program.device) {
        None => "no collectives: the program is for one device, which has nobody to tell anything".into(),
        Some(mesh) => {
            format!("no collectives: on {mesh} each device computes its part by itself")
        }
    }
}

/// The chips for whose links is estimated, and whether the program's devices are such.
fn chips(program: &Program) -> (&'static str, bool) {
    let kind = || Some(client_if_open()?.devices.first()?.kind());
    let own = Mesh::at(program.device).and_then(|_| rates::generation(&kind()?));
    (own.unwrap_or("v5e"), own.is_some())
}

/// How long each takes on such chips, by our own estimate.
fn estimates(program: &Program, all: &[Collective], chip: &str) -> Vec<f64> {
    let devices = Mesh::at(program.device).map_or(1, |m| m.size() as u64);
    all.iter().map(|c| rates::seconds(&c.is, chip, devices)).collect()
}

const NAMES: [&str; 8] = ["kind", "gives", "bytes", "groups", "how", "estimate", "for", "op and line"];

/// As a table.
pub(crate) fn bundle(program: &Program, all: &[Collective]) -> Bundle {
    if all.is_empty() {
        return Bundle::text(none(program)).passing();
    }
    let total: u64 = all.iter().map(|c| c.is.bytes).sum();
    let head = format!(
        "{} on {}: each device gets {}",
        count(all.len(), "collective"),
        xlazy_core::device::name_of(program.device),
        bytes(total),
    );
    let (chip, is_own) = chips(program);
    let rows: Vec<[String; 8]> = all.iter().zip(estimates(program, all, chip)).map(|(c, s)| row(c, s)).collect();
    let lines: Vec<[String; 8]> = std::iter::once(NAMES.map(str::to_owned)).chain(rows.iter().cloned()).collect();
    let mut text = format!("{head}\n");
    for line in columns(&lines, &[]).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let mut table = Table::new("font-family:monospace");
    table.head(NAMES);
    rows.iter().for_each(|r| table.row(r.iter().map(|c| Cell::text(c).left())));
    let mut html = format!("<div>{}</div>{}", xlazy_mime::escape_html(&head), table.html());
    let links = match is_own {
        true => format!("the links of {chip}"),
        false => format!("the links of {chip} chips, which these devices are not"),
    };
    let label =
        format!("estimate: the bytes at the rate that is published for {links}; what starts a transfer is not in it");
    for says in std::iter::once(label).chain(fixes(all)) {
        let _ = writeln!(text, "{says}");
        let _ = write!(html, "<div>{}</div>", xlazy_mime::prose_html(&says));
    }
    Bundle::html(html, text).passing()
}

/// What could be saved, each with what to do.
fn fixes(all: &[Collective]) -> Vec<String> {
    let at = |c: &Collective| c.of.map_or(String::new(), |(op, at)| format!(" for `{op}` at {}", location(at)));
    let of = |why: Why| all.iter().filter(move |c| c.why == why);
    let mut out = Vec::new();
    if let Some(worst) = of(Why::Resharding).max_by_key(|c| c.is.bytes) {
        out.push(format!(
            "{} moved only because what one op gives is not split as another takes it; the most, {}, is moved{}: \
             `mark_sharding` of one of the two as the other is may save it",
            bytes(of(Why::Resharding).map(|c| c.is.bytes).sum()),
            bytes(worst.is.bytes),
            at(worst),
        ));
    }
    if let Some(worst) = of(Why::Whole).max_by_key(|c| c.is.bytes) {
        out.push(format!(
            "{} put together whole on each device and cut again{}: XLA found no other way from one split to the next (its logs \
             call that an involuntary full rematerialization). `mark_sharding` of what comes before, split as what comes behind, \
             saves it; or change one dimension at a time",
            bytes(worst.is.bytes),
            at(worst),
        ));
    }
    out
}

fn row(c: &Collective, seconds: f64) -> [String; 8] {
    let t = &c.is;
    let how = if t.is_async { "async" } else { "sync" };
    let how = if t.algorithm.is_empty() { how.to_owned() } else { format!("{how}, {}", t.algorithm) };
    let of = c.of.map_or_else(|| "XLA does not say".to_owned(), |(op, at)| format!("{op} at {}", location(at)));
    let cost = match seconds {
        s if s <= 0.0 => "–".into(),
        s if s < 5e-9 => "under 0.01 µs".into(),
        s => measured(Duration::from_secs_f64(s)),
    };
    [t.kind.clone(), t.shape.clone(), bytes(t.bytes), t.groups.clone(), how, cost, c.why.says().to_owned(), of]
}

/// As data.
pub(crate) fn data(program: &Program, all: &[Collective]) -> Value {
    let chip = chips(program).0;
    let one = |(c, seconds): (&Collective, f64)| {
        let t = &c.is;
        let at = c.of.map(|(_, at)| json!({ "file": at.file(), "line": at.line() }));
        json!({
            "kind": t.kind, "gives": t.shape, "bytes": t.bytes, "groups": t.groups, "group_size": t.size,
            "algorithm": t.algorithm, "async": t.is_async, "for": c.why.says(), "op": c.of.map(|(op, _)| op), "at": at,
            "estimate": { "seconds": seconds, "links_of": chip },
        })
    };
    all.iter().zip(estimates(program, all, chip)).map(one).collect()
}
