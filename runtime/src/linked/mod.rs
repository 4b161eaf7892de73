//! One program in four forms - the cells' lines, recorded ops, StableHLO, what XLA made of it - with what belongs together. What
//! `%trace` shows; compiled aside, so that no cache, no metric and nothing pending hears of it.
mod data;
mod explorer;
mod given;
mod link;
mod page;
mod passes;
mod profile;
mod stablehlo;
mod still;
mod words;

use crate::aot::{self, Outputs};
use crate::{Error, Result};
use given::Given;
use link::Linked;
pub(crate) use profile::profile;
use xlazy_mime::Bundle;

/// What `%trace` shows for an expression; `spec` is the line without it.
#[doc(hidden)]
#[track_caller]
pub fn magic<O: Outputs + ?Sized>(spec: &str, outputs: &O) -> Bundle {
    let shown = Spec::read(spec).and_then(|spec| spec.show(Given::of(&outputs.tensors())?));
    shown.unwrap_or_else(|e| e.raise())
}

/// What `%trace` shows without one: the program that ran last.
#[doc(hidden)]
#[track_caller]
pub fn magic_last(spec: &str) -> Bundle {
    let shown = Spec::read(spec).and_then(|spec| spec.show(Given::last()?));
    shown.unwrap_or_else(|e| e.raise())
}

/// What stands between `%trace` and its expression: `--tpu v5e --line 3:4 --json`.
#[derive(Debug, Default, PartialEq)]
struct Spec {
    tpu: Option<String>,
    /// A line of a cell; without one of the latest cell that has ops on it.
    line: Option<(Option<u64>, u32)>,
    /// Where compile time goes, instead of the program.
    passes: bool,
    /// The folder that two graphs are written to.
    explorer: Option<String>,
    json: bool,
}

impl Spec {
    fn read(text: &str) -> Result<Spec> {
        let mut spec = Spec::default();
        let refused = |message: String| Err(Error::Usage { message });
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--json" => spec.json = true,
                "--passes" => spec.passes = true,
                "--model-explorer" => match words.next() {
                    Some(folder) => spec.explorer = Some(folder.to_owned()),
                    None => return refused("--model-explorer takes a folder to write to".into()),
                },
                "--tpu" => match words.next() {
                    Some(tpu) => spec.tpu = Some(tpu.to_owned()),
                    None => return refused("--tpu takes a TPU such as v5e".into()),
                },
                "--line" => {
                    let line = words.next().unwrap_or_default();
                    let (cell, number) = match line.split_once(':') {
                        Some((cell, number)) => (cell.parse().map(Some), number),
                        None => (Ok(None), line),
                    };
                    match (cell, number.parse()) {
                        (Ok(cell), Ok(number)) => spec.line = Some((cell, number)),
                        _ => return refused(format!("--line takes a line, or CELL:LINE, not `{line}`")),
                    }
                }
                other => {
                    return refused(format!(
                        "unknown option `{other}`; there are --tpu TPU, --line LINE, --passes, --model-explorer FOLDER and --json"
                    ));
                }
            }
        }
        Ok(spec)
    }

    fn show(&self, given: Given) -> Result<Bundle> {
        if self.passes {
            let passes = passes::Passes::of(&given)?;
            return Ok(if self.json { crate::json::bundle(passes.json()) } else { passes.bundle() });
        }
        let text = aot::program::with_locations(&given.text, &given.marks);
        let mut compiled = vec![given.compile(&text)?];
        if let Some(tpu) = &self.tpu {
            compiled.push(link::for_tpu(aot::traced(&text, tpu)?)?);
        }
        let linked = Linked::of(given, compiled);
        if let Some(folder) = &self.explorer {
            return explorer::write(&linked, folder);
        }
        if self.json {
            return Ok(crate::json::bundle(data::json(&linked)));
        }
        match self.line {
            Some((cell, line)) => words::of_line(&linked, cell, line),
            None => Ok(page::bundle(&linked)),
        }
    }
}

#[cfg(test)]
mod tests;
