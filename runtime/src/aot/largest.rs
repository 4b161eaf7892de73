//! The largest batch that fits: doubling, then closing in on the limit, with a compilation for each try.
use super::batch::{Batch, Sizes};
use super::driver::{Effort, ask};
use super::options::Options;
use super::report::{Report, Source};
use super::traced::{Outputs, Program};
use super::{program, remesh};
use crate::insight::live;
use crate::json::{Value, json};
use crate::{Error, Result};
use xlazy_mime::{Bundle, Rich, count, escape_html, units};

/// The largest batch for which a program fits, and what the compiler says of it.
#[derive(Clone, Debug)]
pub struct Largest {
    /// The batch; 0 where not even the smallest fits.
    pub batch: u64,
    /// Whose leading dimension that is, such as `input 1, f32[64,784]`; empty for a closure.
    pub inputs: Vec<String>,
    /// How many compilations it took to find it; those that were on the disk are among them.
    pub compilations: usize,
    /// Of that batch; of the smallest one where none fits.
    pub report: Report,
    /// The smallest batch tried that does not fit, and why: what it needs, in the compiler's words where it has any.
    pub beyond: Option<(u64, String)>,
    /// The batch is a multiple of that: the parts that a mesh splits it in.
    pub multiple_of: u64,
}

/// Beyond that no chip holds a row of anything.
const MOST: u64 = 1 << 40;
/// A limit is known well enough to one part in so many.
const CLOSE: u64 = 1000;
/// Tries after which what was found is good enough.
const TRIES: usize = 64;

struct Tried {
    batch: u64,
    peak: u64,
}

/// What a try gave: a report, or why there is none.
type Try = std::result::Result<Report, String>;

/// Looks for the limit from `start` on, in steps of `step`.
fn search(start: u64, step: u64, mut ask: impl FnMut(u64, usize) -> Result<Try>) -> Result<Largest> {
    let mut compilations = 0;
    let mut fits: Vec<(Tried, Report)> = Vec::new();
    let mut beyond: Option<(Tried, String)> = None;
    let mut smallest: Option<Report> = None;
    let whole = |n: u64| (n / step).max(1) * step;
    let mut next = whole(start);
    while compilations < TRIES {
        compilations += 1;
        match ask(next, compilations)? {
            Ok(report) if report.fits() => {
                fits.push((Tried { batch: next, peak: report.fit.peak }, report));
            }
            Ok(report) => {
                let why = format!("needs {} of {}", units::memory(report.fit.peak), units::memory(report.fit.limit));
                beyond = Some((Tried { batch: next, peak: report.fit.peak }, why));
                smallest = Some(report);
            }
            Err(why) => beyond = Some((Tried { batch: next, peak: 0 }, why)),
        }
        fits.sort_by_key(|(t, _)| t.batch);
        let limit = fits.last().map_or(0, |(_, r)| r.fit.limit);
        // Memory grows by the batch, so that two sizes tell where it ends.
        let line = |a: &Tried, b: &Tried| {
            let slope = b.peak.checked_sub(a.peak).filter(|s| *s > 0)? as f64 / (b.batch - a.batch).max(1) as f64;
            Some(b.batch as f64 + (limit as f64 - b.peak as f64) / slope)
        };
        next = match (&fits[..], &beyond) {
            ([], None) => break,
            ([], Some((t, _))) if t.batch <= step => break,
            ([], Some((t, _))) => whole(t.batch / 2),
            ([.., (last, _)], None) if last.batch >= MOST => break,
            ([.., (before, _), (last, _)], None) => {
                let guess = line(before, last).map_or(0, |n| n as u64);
                whole(guess.clamp(2 * last.batch, 1024 * last.batch).min(MOST))
            }
            ([.., (last, _)], None) => whole(2 * last.batch),
            ([.., (last, _)], Some((t, _))) if t.batch <= last.batch + step.max(last.batch / CLOSE) => break,
            ([rest @ .., (last, _)], Some((t, _))) => {
                let middle = last.batch + (t.batch - last.batch) / 2;
                let guess = match rest {
                    _ if compilations % 3 == 0 => None,
                    _ if t.peak > 0 => line(last, t),
                    [.., (before, _)] => line(before, last),
                    [] => None,
                };
                let guess = guess.map_or(middle, |n| n as u64);
                whole(guess).clamp(last.batch + step, whole(t.batch - 1).max(last.batch + step))
            }
        };
    }
    let (batch, report) = match fits.pop() {
        Some((t, report)) => (t.batch, report),
        None => match smallest {
            Some(report) => (0, report),
            None => {
                let why = beyond.map_or(String::new(), |(_, why)| why);
                return Err(Error::Usage { message: why });
            }
        },
    };
    let beyond = beyond.map(|(t, why)| (t.batch, why));
    Ok(Largest { batch, inputs: vec![], compilations, report, beyond, multiple_of: step })
}

impl Program {
    /// The largest leading dimension of the data for which the program fits.
    pub(super) fn largest(&self, topology: &str, options: &Options) -> Result<Largest> {
        let Some(text) = program::text(&self.text) else {
            let message = "a program as bytecode has no text in which to change its batch".to_owned();
            return Err(Error::Usage { message });
        };
        if text.contains("sdy.manual_computation") {
            let message = "the program has code for each device (`spmd::manual`), whose shapes are its own: give a closure, as \
                           `|batch| loss_of(batch)`";
            return Err(Error::Usage { message: message.into() });
        }
        let sizes = Sizes::read(text)?;
        let Some(batch) = &sizes.batch() else {
            let message = "no input of the program leads with a batch of 2 or more that goes through it: give a closure, as `|batch| loss_of(batch)`";
            return Err(Error::Usage { message: message.into() });
        };
        let step = batch.inputs.iter().map(|(n, _)| remesh::parts(text, *n, &options.mesh)).max().unwrap_or(1);
        let over = |n: u64| sizes.over(batch, n).map_err(|(line, why)| self.refused(&line, batch, &why));
        // What cannot be is said before anything is compiled.
        over(batch.size.next_multiple_of(step) * 2)?;
        let live = live::estimating(String::new());
        let mut found = search(batch.size.next_multiple_of(step), step, |n, tries| {
            live.says(format!("{topology} at -O{}, batch {n} (try {tries})", options.level));
            let program = Program { text: over(n)?.into_bytes(), marks: self.marks.clone() };
            told(program.report(topology, options), n)
        })?;
        found.inputs = batch.inputs.iter().map(|(n, ty)| format!("input {}, {}", n + 1, short(ty))).collect();
        Ok(found)
    }

    /// Why a program has no other batch: the op and its line.
    fn refused(&self, line: &str, batch: &Batch, why: &str) -> Error {
        let mut source = Source { op: "an op".into(), at: String::new() };
        if let Some((_, place)) = line.rsplit_once(" loc(\"") {
            let at = place.split("(\"").nth(1).unwrap_or_default().split('"');
            let number = place.rsplit(':').nth(1).unwrap_or_default();
            source.op = place.split('"').next().unwrap_or_default().to_owned();
            source.at = format!("{}:{number}", at.clone().next().unwrap_or_default());
            program::resolve(std::iter::once(&mut source), &self.marks);
        }
        let place = if source.at.is_empty() { String::new() } else { format!(" ({})", source.at) };
        let of = batch.inputs.iter().map(|(_, ty)| short(ty)).collect::<Vec<_>>().join(", ");
        let message = format!(
            "the batch cannot be changed in the recorded program: `{}`{place} {why}. The batch was taken to be the leading dimension of \
             {of}. Give a closure instead, as `|batch| loss_of(batch)`, which is recorded anew for each size.",
            source.op
        );
        Error::Usage { message }
    }
}

/// A refusal for a larger batch is a limit, too; that the compiler is not there is none.
fn told(answer: Result<Report>, batch: u64) -> Result<Try> {
    match answer {
        Ok(report) => Ok(Ok(report)),
        Err(e) if batch > 1 && e.to_string().contains("the TPU compiler") && !e.to_string().contains("to parse") => {
            Ok(Err(e.to_string()))
        }
        Err(e) => Err(e),
    }
}

/// What `%tpu TPU --largest-batch |batch| …` shows.
pub(super) fn of_closure<O: Outputs>(f: impl Fn(usize) -> O, topology: &str, options: &Options) -> Result<Largest> {
    const START: u64 = 8;
    let live = live::estimating(String::new());
    let parts: u64 = options.mesh.iter().map(|(_, size)| size).product();
    search(START, parts.max(1), |n, tries| {
        live.says(format!("{topology} at -O{}, batch {n} (try {tries})", options.level));
        let program = Program::of(&f(n as usize))?;
        let mut report = match ask(program.text.clone(), topology, options, Effort::Compile) {
            Ok(Some(report)) => report,
            Ok(None) => return Err(Error::Usage { message: "the compiler gave no report".into() }),
            Err(e) => return told(Err(e), n),
        };
        program::resolve(report.sources_mut(), &program.marks);
        Ok(Ok(report))
    })
}

/// `64x784xf32` as `f32[64,784]`
fn short(ty: &str) -> String {
    match ty.rsplit_once('x').filter(|(sizes, _)| sizes.starts_with(|c: char| c.is_ascii_digit())) {
        Some((sizes, dtype)) => format!("{dtype}[{}]", sizes.replace('x', ",")),
        None => ty.to_owned(),
    }
}

impl Largest {
    /// As data: what `--json` prints.
    pub fn json(&self) -> String {
        let beyond = self.beyond.as_ref().map(|(batch, why)| json!({ "batch": batch, "why": why }));
        json!({
            "largest_batch": self.batch,
            "inputs": self.inputs.iter().map(|i| Value::from(i.as_str())).collect::<Value>(),
            "compilations": self.compilations,
            "beyond": beyond,
            "multiple_of": self.multiple_of,
            "report": self.report.value(),
        })
        .to_string()
    }

    fn head(&self) -> String {
        let whose = match &self.inputs[..] {
            [] => "the closure's batch".to_owned(),
            all => format!("the leading dimension of {}", all.join("; ")),
        };
        let multiple = match self.multiple_of {
            0 | 1 => String::new(),
            n => format!(", a multiple of the {n} parts it is split in"),
        };
        let found = match self.batch {
            0 => "No batch fits".to_owned(),
            n => format!("The largest batch that fits is {}{multiple}", units::thousands(n)),
        };
        let beyond = match &self.beyond {
            Some((batch, why)) => format!("; {} {why}", units::thousands(*batch)),
            None => "; no limit was met".into(),
        };
        let level = self.report.level;
        format!("{found} ({whose}){beyond}. Found in {} at -O{level}.", count(self.compilations, "compilation"))
    }
}

impl Rich for Largest {
    fn rich(&self) -> Bundle {
        let report = self.report.rich();
        let html = format!(
            "<div style=\"margin-bottom:6px\"><b>{}</b></div>{}",
            escape_html(&self.head()),
            report.get("text/html").unwrap_or_default()
        );
        Bundle::html(html, format!("{}\n\n{}", self.head(), report.plain())).lasting(format!(
            "{}\n\n{}",
            self.head(),
            self.report
        ))
    }
}

impl std::fmt::Display for Largest {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}\n\n{}", self.head(), self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Fit;
    use super::*;

    #[test]
    fn the_limit_is_found_wherever_it_is() {
        for step in [1, 4, 48] {
            for per_row in [1, 3, 1000, 123_457] {
                for fixed in [0, 1 << 30, (16 << 30) - 1] {
                    let limit: u64 = 16 << 30;
                    let ask = |n: u64, _| {
                        // In tiles of 8 rows.
                        let peak = fixed + n.next_multiple_of(8) * per_row;
                        Ok(Ok(Report {
                            fit: Fit { fits: peak <= limit, limit, peak, ..Fit::default() },
                            ..Report::default()
                        }))
                    };
                    let found = search(64, step, ask).unwrap();
                    let most = (limit - fixed) / per_row / 8 * 8 / step * step;
                    let close = (most / CLOSE).max(step);
                    assert!(found.batch <= most && most - found.batch <= close, "{} of {most}, {step}", found.batch);
                    assert!(found.compilations < 40, "{} for {most}", found.compilations);
                }
            }
        }
        let refused = search(64, 1, |n, _| {
            if n > 100 {
                Ok(Err("the TPU compiler refused it".into()))
            } else {
                Ok(Ok(Report { fit: Fit { fits: true, limit: 0, ..Fit::default() }, ..Report::default() }))
            }
        });
        assert_eq!(refused.unwrap().batch, 100);
    }
}
