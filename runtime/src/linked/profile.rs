//! `%%profile`: what the device did while a cell ran, as the plugin's profiler measured it, with the lines that it was for.
use super::given::Given;
use super::link::{Linked, Optimised, Row};
use super::words;
use crate::aot::line::Line;
use crate::aot::lines::lines;
use crate::aot::program::with_locations;
use crate::json::{Value, json};
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use xlazy_core::device::{Profiler, client, is_dry, wait_for_all};
use xlazy_core::proto::Message;
use xlazy_core::run::last_program;
use xlazy_mime::{Bundle, Cell, Table, columns, count, escape_html, units, whole};

static TAKEN: Mutex<Option<Profiler>> = Mutex::new(None);

/// `begin`, `end`, `end --json`, `end --xspace FILE`.
pub(crate) fn profile(args: &str) -> Result<Bundle> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let usage = |message: String| Error::Usage { message };
    match args.trim() {
        "begin" => {
            // One that an interrupt left is ended first.
            drop(taken.take());
            if is_dry() {
                return Err(usage("dry mode: there is no device to profile".into()));
            }
            let plugin = client()?.pjrt.plugin().ok_or_else(|| {
                usage("a profile is of the devices of this process, and programs run on a pod's workers".into())
            })?;
            if !plugin.has_profiler() {
                let name = plugin.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Err(usage(format!(
                    "the plugin {name} has no profiler (PJRT's profiler extension), so what the device does is not measured; \
                     `%timeline` has what the host sees: launches, runs, transfers"
                )));
            }
            *taken = Some(plugin.profile()?);
            Ok(Bundle::default())
        }
        end => {
            let profiler = taken.take().ok_or_else(|| usage("no profile is being taken".into()))?;
            // What the cell started belongs to it.
            wait_for_all();
            let given = profiler.stop()?;
            // XLA's own plugins end theirs with a zero.
            let read = |bytes| Message::read(bytes).map(|space| (bytes, space));
            let (bytes, space) = read(&given[..])
                .or_else(|| read(given.strip_suffix(&[0])?))
                .ok_or_else(|| usage("the plugin gave no XSpace".into()))?;
            if let Some(file) = end.strip_prefix("end --xspace ") {
                let file = file.trim();
                whole::write(Path::new(file), bytes)
                    .map_err(|e| usage(format!("nothing was written to {file}: {e}")))?;
            }
            let profile = Profile::of(&space);
            Ok(match end {
                "end --json" => crate::json::bundle(profile.json()),
                _ => profile.bundle(),
            })
        }
    }
}

/// What a device did of one kind.
#[derive(Debug, Default, PartialEq)]
struct Did {
    op: String,
    runs: u64,
    time: Duration,
    /// `1:4, 3:2`; empty where it is not known.
    lines: String,
}

struct Profile {
    all: Vec<Did>,
}

impl Profile {
    fn of(space: &Message) -> Profile {
        let mut all: Vec<Did> = measured(space)
            .into_iter()
            .map(|(op, (runs, ps))| Did { op, runs, time: Duration::from_nanos(ps / 1000), lines: String::new() })
            .collect();
        all.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.op.cmp(&b.op)));
        if !all.is_empty()
            && let Some(of) = lines_of_last()
        {
            all.iter_mut().for_each(|did| did.lines = of.get(&did.op).cloned().unwrap_or_default());
        }
        Profile { all }
    }

    fn headline(&self) -> String {
        let total: Duration = self.all.iter().map(|d| d.time).sum();
        let runs: u64 = self.all.iter().map(|d| d.runs).sum();
        format!(
            "{} of {} on the device, {} in all; lines are those of the program that ran last",
            count(runs as usize, "run"),
            count(self.all.len(), "instruction"),
            units::measured(total)
        )
    }

    fn rows(&self) -> Vec<[String; 5]> {
        let total = self.all.iter().map(|d| d.time).sum::<Duration>().as_secs_f64().max(1e-12);
        let row = |d: &Did| {
            let share = format!("{:.0} %", 100.0 * d.time.as_secs_f64() / total);
            [d.op.clone(), d.runs.to_string(), units::measured(d.time), share, d.lines.clone()]
        };
        self.all.iter().take(MOST).map(row).collect()
    }

    fn bundle(&self) -> Bundle {
        if self.all.is_empty() {
            let told = "the profiler saw no instruction: nothing ran on the device while it was on, or the programs are too small \
                        for it to tell them apart";
            return Bundle::text(told).passing();
        }
        let rows = self.rows();
        let text = format!("{}\n{}", self.headline(), columns(&rows, &[1, 2, 3]));
        let mut table = Table::new("font-size:.92em");
        table.head(["instruction", "runs", "time", "share", "lines"]);
        for [op, runs, time, share, lines] in &rows {
            let right = |text: &String| Cell::text(text).right();
            table.row([Cell::text(op).left(), right(runs), right(time), right(share), Cell::text(lines).left()]);
        }
        let head = format!("<div style=\"opacity:.75;font-size:.9em\">{}</div>", escape_html(&self.headline()));
        Bundle::html(format!("<div>{head}{}</div>", table.html()), text).passing()
    }

    fn json(&self) -> Value {
        let one = |d: &Did| {
            let took = d.time.as_nanos() as f64 / 1e3;
            json!({ "instruction": d.op, "runs": d.runs, "took_us": took, "lines": d.lines })
        };
        json!({ "instructions": self.all.iter().map(one).collect::<Value>() })
    }
}

const MOST: usize = 60;

/// How often each instruction ran, and for how many picoseconds: the events that name one (`hlo_op`), and on devices of their own
/// those of the line `XLA Ops`.
fn measured(space: &Message) -> HashMap<String, (u64, u64)> {
    let mut out: HashMap<String, (u64, u64)> = HashMap::new();
    for plane in space.messages(1) {
        let named = |field: u64| -> HashMap<i64, String> {
            let entry = |e: &Message| (e.int(1), e.message(2).str(2).to_owned());
            plane.messages(field).iter().map(entry).collect()
        };
        let (events, stats) = (named(4), named(5));
        let is_op = |s: &&Message| stats.get(&s.int(1)).is_some_and(|name| name == "hlo_op");
        for line in plane.messages(3) {
            let ops = plane.str(2).starts_with("/device:") && line.str(2) == "XLA Ops";
            for event in line.messages(4) {
                // A text of its own, or the number of one that several share.
                let op = event.messages(4).iter().find(is_op).map(|s| match s.str(5) {
                    "" => stats.get(&s.int(7)).cloned().unwrap_or_default(),
                    text => text.to_owned(),
                });
                let name = op.or_else(|| ops.then(|| events.get(&event.int(1)).cloned().unwrap_or_default()));
                let Some(name) = name.filter(|n| !n.is_empty()) else { continue };
                // Such events are told as whole instructions.
                let name = name.split(" = ").next().unwrap_or(&name).trim_start_matches('%').to_owned();
                let sum = out.entry(name).or_default();
                sum.0 += (event.int(5).max(0) as u64).max(1);
                sum.1 += event.int(3).max(0) as u64;
            }
        }
    }
    out
}

/// The lines of each instruction of the program that ran last: it is compiled again, aside, with the lines in it; that gives the
/// same instructions under other names.
fn lines_of_last() -> Option<HashMap<String, String>> {
    let (format, bytes) = last_program()?.executable.as_ref()?.optimized_program().ok()?;
    let ran = lines(&format, &bytes)?;
    let given = Given::last().ok()?;
    let text = with_locations(&given.text, &given.marks);
    let compiled = given.compile(&text).ok()?;
    let linked = Linked::of(given, vec![compiled]);
    let Optimised { rows, kernels, .. } = linked.optimised.first()?;
    let opcodes = kernels.iter().map(|k| k.kernel.opcode.as_str());
    let same = opcodes.eq(ran.iter().filter_map(|l| l.kernel.as_ref()).map(|k| k.opcode.as_str()));
    if rows.len() != ran.len() || !same {
        return None;
    }
    let one = |(row, was): (&Row, &Line)| {
        let (name, _) = was.text.split_once(" = ")?;
        let lines: BTreeSet<usize> =
            row.ops.iter().flat_map(|&op| linked.ops[op as usize].lines.iter().copied()).collect();
        let lines: Vec<usize> = lines.into_iter().collect();
        let name = name.trim_start_matches("ROOT ").trim_start_matches('%').to_owned();
        Some((name, words::lines_of(&linked, &lines)))
    };
    Some(rows.iter().zip(&ran).filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{field, int};

    #[test]
    fn instructions_are_summed_on_hosts_and_on_devices() {
        let name = |field_number: u64, id: u64, name: &str| {
            let metadata = [int(1, id), field(2, name.as_bytes())].concat();
            field(field_number, &[int(1, id), field(2, &metadata)].concat())
        };
        let event = |id: u64, ps: u64, stat: &[u8]| field(4, &[int(1, id), int(3, ps), stat.to_vec()].concat());
        // One text is the event's own, the other one a name that several share.
        let own = field(4, &[int(1, 1), field(5, b"dot.2")].concat());
        let shared = field(4, &[int(1, 1), int(7, 2)].concat());
        let thread = [field(2, b"worker"), event(1, 3000, &own), event(1, 4000, &shared), event(1, 9, &[])].concat();
        let host = [field(2, b"/host:CPU"), field(3, &thread), name(5, 1, "hlo_op"), name(5, 2, "dot.2")].concat();
        let ops = [field(2, b"XLA Ops"), event(1, 5000, &[]), event(1, 6000, &[])].concat();
        let steps = [field(2, b"Steps"), event(1, 50_000, &[])].concat();
        let fusion = name(4, 1, "%fusion.1 = f32[8]{0} fusion(%p)");
        let device = [field(2, b"/device:TPU:0"), field(3, &ops), field(3, &steps), fusion].concat();
        let space = [field(1, &host), field(1, &device)].concat();
        let mut told: Vec<_> = measured(&Message::read(&space).unwrap()).into_iter().collect();
        told.sort();
        assert_eq!(told, [("dot.2".to_owned(), (2, 7000)), ("fusion.1".to_owned(), (2, 11_000))]);
    }
}
