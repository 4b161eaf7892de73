//! `%compare`: what every op of the last program gives, against what was written down of another run.
use super::last::{Spot, parameter_name, refuse_gone};
use super::ulps::{Difference, difference};
use crate::json::{self, Value, json};
use crate::nn::safetensors::{Part, read, write};
use crate::{Error, Result};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use xlazy_core::device::{device_name, download};
use xlazy_core::run::{Run, last_runs};
use xlazy_core::text::{location, quote};
use xlazy_core::ty::Type;
use xlazy_mime::{Bundle, Table, columns, count, escape_html};

/// Bytes of results that are computed and fetched at a time.
const AT_ONCE: usize = 256 << 20;

/// What the file's metadata has it under.
const KEY: &str = "xlazy.reference";

/// `FILE`, `--save FILE`, `--ulps N FILE`, with `--json`.
pub(crate) fn compare(args: &str) -> Result<Bundle> {
    let (mut save, mut as_json, mut ulps, mut path) = (false, false, 0, None);
    let mut words = args.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--save" => save = true,
            "--json" => as_json = true,
            "--ulps" => {
                let number = words.next().and_then(|n| n.parse().ok());
                ulps = number.ok_or_else(|| refused("--ulps takes a whole number: how much may differ".into()))?;
            }
            other if other.starts_with("--") => return Err(refused(format!("%compare has no option {other}"))),
            other if path.is_none() => path = Some(Path::new(other)),
            other => return Err(refused(format!("%compare takes one file, and `{other}` is a second one"))),
        }
    }
    let path = path.ok_or_else(|| refused("%compare needs a file: %compare --save a.safetensors writes one".into()))?;
    let run = last_runs().into_iter().next();
    let run = run.ok_or_else(|| refused("no program has run yet whose values could be compared".into()))?;
    if save { keep(&run, path, as_json) } else { against(&run, path, ulps, as_json) }
}

/// What is known of an op, here or in a file.
struct Known {
    op: String,
    ty: String,
    shape: String,
    at: String,
    line: String,
}

fn known(run: &Arc<Run>) -> Vec<Known> {
    let one = |step: u32| {
        let spot = Spot { run: run.clone(), step };
        let shape = run.program.steps[step as usize].ty.shape.to_string();
        let line = quote(spot.at()).unwrap_or_default();
        Known { op: spot.op().to_owned(), ty: spot.ty(), shape, at: spot.place(), line }
    };
    (0..run.lines.len() as u32).map(one).collect()
}

/// Steps whose values a file can hold.
fn kept(run: &Run) -> Vec<u32> {
    let fits = |s: &u32| !run.program.steps[*s as usize].ty.dtype.is_complex();
    (0..run.lines.len() as u32).filter(fits).collect()
}

/// Hands over the values of these steps in order, as many at a time as fit.
fn values(run: &Run, steps: &[u32], mut take: impl FnMut(u32, Vec<u8>) -> Result<()>) -> Result<()> {
    let mut rest = steps;
    while !rest.is_empty() {
        let (mut n, mut bytes) = (0, 0);
        while n < rest.len() && (n == 0 || bytes < AT_ONCE) {
            bytes += run.program.steps[rest[n] as usize].ty.bytes();
            n += 1;
        }
        for (&step, data) in rest[..n].iter().zip(run.again(&rest[..n])?) {
            take(step, download(&data)?)?;
        }
        rest = &rest[n..];
    }
    Ok(())
}

fn made_with(run: &Run) -> String {
    format!("{}, precision {}", device_name().unwrap_or_default(), run.program.options.precision.name())
}

fn keep(run: &Arc<Run>, path: &Path, as_json: bool) -> Result<Bundle> {
    let steps = kept(run);
    refuse_gone(run, &steps, "the program")?;
    let all = known(run);
    let mut parts = Vec::with_capacity(steps.len());
    for (i, data) in run.parameters().into_iter().enumerate() {
        if let Some(data) = data.filter(|d| !d.ty.dtype.is_complex()) {
            parts.push(Part { name: parameter(i), ty: data.ty.get().clone(), bytes: download(&data)? });
        }
    }
    values(run, &steps, |step, bytes| {
        let ty = run.program.steps[step as usize].ty.get().clone();
        parts.push(Part { name: result(step), ty, bytes });
        Ok(())
    })?;
    let op = |k: &Known| json!({ "op": k.op, "type": k.ty, "shape": k.shape, "at": k.at, "line": k.line });
    let about = json!({ "with": made_with(run), "ops": all.iter().map(op).collect::<Value>() }).to_string();
    write(path, None, &[(KEY, &about)], &parts)?;
    let bytes: usize = parts.iter().map(|p| p.bytes.len()).sum();
    let said = format!(
        "{}: {} of sync {} ({}), {}",
        path.display(),
        count(steps.len(), "result"),
        run.number,
        made_with(run),
        xlazy_mime::units::bytes(bytes as u64)
    );
    Ok(if as_json {
        json::bundle(json!({ "file": path.display().to_string(), "results": steps.len() }))
    } else {
        Bundle::text(said).passing()
    })
}

fn parameter(i: usize) -> String {
    format!("parameter {i}")
}

fn result(step: u32) -> String {
    format!("result {step}")
}

/// What differs, and how.
struct Found {
    /// Of a step; or of a parameter.
    step: std::result::Result<u32, usize>,
    there: Type,
    by: Difference,
}

fn against(run: &Arc<Run>, path: &Path, ulps: u64, as_json: bool) -> Result<Bundle> {
    let contents = read(path).map_err(|what| refused(format!("cannot read {}: {what}", path.display())))?;
    let about = contents.metadata.iter().find(|(key, _)| key == KEY).map(|(_, text)| text.as_str());
    let about = about.and_then(|text| json::parse(text).ok()).ok_or_else(|| {
        let path = path.display();
        refused(format!(
            "{path} is no reference: it was not written by `%compare --save`, which says what each tensor is"
        ))
    })?;
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let there = |v: &Value| Known {
        op: text(v, "op"),
        ty: text(v, "type"),
        shape: text(v, "shape"),
        at: text(v, "at"),
        line: text(v, "line"),
    };
    let then: Vec<Known> = about["ops"].as_array().into_iter().flatten().map(there).collect();
    let now = known(run);
    let pairs = matched(&then, &now);
    let entries: HashMap<&str, &crate::nn::safetensors::Entry> =
        contents.entries.iter().map(|e| (e.name.as_str(), e)).collect();
    let mut found: Vec<Found> = Vec::new();
    for (i, data) in run.parameters().into_iter().enumerate() {
        let entry = entries.get(parameter(i).as_str());
        if let (Some(data), Some(entry)) = (data, entry)
            && data.ty.shape == entry.ty.shape
        {
            let by = difference((&data.ty, &download(&data)?), (&entry.ty, contents.bytes(entry)));
            found.extend(by.above(ulps).map(|by| Found { step: Err(i), there: entry.ty.clone(), by }));
        }
    }
    let names: HashMap<u32, String> = pairs.iter().map(|&(old, new)| (new as u32, result(old as u32))).collect();
    let held = |s: &u32| names.get(s).is_some_and(|name| entries.contains_key(name.as_str()));
    let steps: Vec<u32> = kept(run).into_iter().filter(held).collect();
    refuse_gone(run, &steps, "the program")?;
    values(run, &steps, |step, bytes| {
        let entry = entries[names[&step].as_str()];
        let ty = &run.program.steps[step as usize].ty;
        if ty.shape == entry.ty.shape {
            let by = difference((ty, &bytes), (&entry.ty, contents.bytes(entry)));
            found.extend(by.above(ulps).map(|by| Found { step: Ok(step), there: entry.ty.clone(), by }));
        }
        Ok(())
    })?;
    let apart = (then.len() - pairs.len(), now.len() - pairs.len());
    let report =
        Report { run, now: &now, found: &found, compared: steps.len(), apart, ulps, with: text(&about, "with") };
    Ok(if as_json { json::bundle(report.json()) } else { report.bundle() })
}

/// Which ops of the two are the same, in their order: the longest common row of op and shape, after what both begin and end with.
fn matched(then: &[Known], now: &[Known]) -> Vec<(usize, usize)> {
    let same = |i: usize, j: usize| then[i].op == now[j].op && then[i].shape == now[j].shape;
    let (mut from, mut ends) = (0, (then.len(), now.len()));
    while from < ends.0.min(ends.1) && same(from, from) {
        from += 1;
    }
    let mut tail = Vec::new();
    while ends.0 > from && ends.1 > from && same(ends.0 - 1, ends.1 - 1) {
        ends = (ends.0 - 1, ends.1 - 1);
        tail.push(ends);
    }
    let mut pairs: Vec<(usize, usize)> = (0..from).map(|i| (i, i)).collect();
    let (rows, width) = (ends.0 - from, ends.1 - from);
    // More than that differs so much that what is left is no comparison.
    if rows * width <= 1 << 22 {
        let mut best = vec![0u32; (rows + 1) * (width + 1)];
        let at = |i: usize, j: usize| i * (width + 1) + j;
        for i in (0..rows).rev() {
            for j in (0..width).rev() {
                best[at(i, j)] = match same(from + i, from + j) {
                    true => best[at(i + 1, j + 1)] + 1,
                    false => best[at(i + 1, j)].max(best[at(i, j + 1)]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < rows && j < width {
            if same(from + i, from + j) {
                pairs.push((from + i, from + j));
                (i, j) = (i + 1, j + 1);
            } else if best[at(i + 1, j)] >= best[at(i, j + 1)] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    pairs.extend(tail.into_iter().rev());
    pairs
}

struct Report<'a> {
    run: &'a Run,
    now: &'a [Known],
    found: &'a [Found],
    compared: usize,
    apart: (usize, usize),
    ulps: u64,
    with: String,
}

impl Report<'_> {
    /// What and where.
    fn place(&self, f: &Found) -> (String, String) {
        match f.step {
            Ok(step) => {
                let k = &self.now[step as usize];
                let ty = if f.there.dtype == self.run.program.steps[step as usize].ty.dtype {
                    String::new()
                } else {
                    format!(" (there {})", f.there)
                };
                (format!("op {} {} {}{ty}", step + 1, k.op, k.ty), k.at.clone())
            }
            Err(i) => {
                let name = parameter_name(self.run, i).map_or_else(|| i.to_string(), |name| format!("`{name}`"));
                (format!("parameter {name} {}", f.there), self.run.made_at(i).map(location).unwrap_or_default())
            }
        }
    }

    fn bundle(&self) -> Bundle {
        let mut lines = Vec::new();
        let first = self.found.iter().find(|f| f.step.is_ok());
        let worst = self.found.iter().filter(|f| f.step.is_ok()).max_by_key(|f| f.by.ulps);
        let given = self.found.iter().filter(|f| f.step.is_err()).count();
        if given > 0 {
            lines.push(
                format!("the run was given something else: {} differs", count(given, "parameter"))
                    .replace("parameters differs", "parameters differ"),
            );
        }
        let line = |step: u32| match self.now[step as usize].line.as_str() {
            "" => String::new(),
            line => format!("\n    {line}"),
        };
        match first {
            None if self.ulps > 0 => {
                lines.push(format!("none of {} differs by more than {} ULP", count(self.compared, "result"), self.ulps))
            }
            None => lines.push(format!("all {} are equal, to the last bit", count(self.compared, "result"))),
            Some(f) => {
                let (what, at) = self.place(f);
                let source = f.step.map(line).unwrap_or_default();
                lines.push(format!("the first that differs is {what} at {at}: {}{source}", f.by.said()));
            }
        }
        if let (Some(worst), Some(first)) = (worst, first)
            && worst.step != first.step
        {
            let (what, at) = self.place(worst);
            let source = worst.step.map(line).unwrap_or_default();
            lines.push(format!("most differs {what} at {at}: {}{source}", worst.by.said()));
        }
        match self.apart {
            (0, 0) => {}
            (gone, new) => lines.push(format!(
                "the programs are not the same: {} of the reference and {} of this one have no counterpart",
                count(gone, "op"),
                count(new, "op")
            )),
        }
        lines.push(format!("there {}; here {}", self.with, made_with(self.run)));
        let plain = lines.join("\n");
        let rows: Vec<[String; 4]> = self
            .found
            .iter()
            .take(LISTED)
            .map(|f| {
                let (what, at) = self.place(f);
                [what, at, f.by.ulps_text(), format!("{} of {}", f.by.elements, f.by.of)]
            })
            .collect();
        if rows.len() < 2 {
            return Bundle::html(
                format!("<pre style=\"color:inherit;background:none\">{}</pre>", escape_html(&plain)),
                plain,
            )
            .passing();
        }
        let heads = ["differs", "at", "ULP", "elements"];
        let mut table = Table::new("font-family:monospace");
        table.head(heads);
        rows.iter().for_each(|r| table.row(r.iter().map(String::as_str)));
        let texts = std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows.iter().map(|r| r.to_vec()));
        let texts = columns(&texts.collect::<Vec<_>>(), &[2]);
        let more = match self.found.len() - rows.len() {
            0 => String::new(),
            n => format!("\n… and {n} more"),
        };
        let html = format!(
            "<div><pre style=\"color:inherit;background:none\">{}</pre>{}{more}</div>",
            escape_html(&plain),
            table.html()
        );
        Bundle::html(html, format!("{plain}\n{texts}{more}")).passing()
    }

    fn json(&self) -> Value {
        let one = |f: &Found| {
            let (what, at) = self.place(f);
            let ulps = if f.by.ulps == u64::MAX { Value::Null } else { json!(f.by.ulps) };
            json!({ "what": what, "at": at, "ulps": ulps, "elements": f.by.elements, "of": f.by.of })
        };
        json!({
            "compared": self.compared,
            "unmatched_there": self.apart.0,
            "unmatched_here": self.apart.1,
            "there": self.with,
            "here": made_with(self.run),
            "differences": self.found.iter().map(one).collect::<Value>(),
        })
    }
}

/// Differences that are listed.
const LISTED: usize = 12;

fn refused(message: String) -> Error {
    Error::Usage { message }
}
