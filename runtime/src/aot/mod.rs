//! Compiling for TPUs without having one: does the program fit, and what would it take? libtpu compiles for any TPU on any
//! machine; here it does so in a process of its own, which may crash, hang or be killed without harm.
mod batch;
mod cache;
mod child;
mod chips;
mod cli;
mod device;
mod driver;
mod estimate;
mod flops;
mod hlo;
mod largest;
pub(crate) mod line;
pub(crate) mod lines;
mod links;
mod options;
mod prices;
pub(crate) mod program;
mod remesh;
pub mod report;
mod roofline;
pub mod show;
mod slices;
mod traced;

pub use largest::Largest;
pub use report::{Fit, Held, Moved, Report, Row, Source, Time};
pub use show::Comparison;
pub use traced::Outputs;

#[doc(hidden)]
pub use child::{is_child, main as child_main};
#[doc(hidden)]
pub use cli::{main as cli_main, places_main};
pub(crate) use device::answer as device_answer;
#[doc(hidden)]
pub use device::device;

/// Reads a program for a report.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn fuzz(format: &str, bytes: &[u8]) {
    hlo::Module::read(format, bytes).iter().for_each(|module| drop(estimate::estimate(module)));
    drop(lines::lines(format, bytes));
}

use crate::json::bundle;
use crate::{Error, Result, Tensor, cell};
use driver::Effort;
pub use options::Options;
use std::time::Duration;
use traced::Program;
use xlazy_core::device::platform::TPU;
use xlazy_core::ir::Mark;
use xlazy_mime::{Bundle, Rich};

/// The largest values of a program of ours, with their lines; as its text has them, before anything is fused.
pub(crate) fn largest(text: &str, marks: &[Mark]) -> Vec<Held> {
    let mut largest = program::sizes(&program::with_locations(text, marks)).largest;
    program::resolve(largest.iter_mut().flat_map(|h| &mut h.sources), marks);
    largest
}

/// What XLA's TPU compiler makes of a text with locations of our own, line by line.
pub(crate) fn traced(text: &str, topology: &str) -> Result<Report> {
    let options = Options::default();
    let report = driver::ask_lines(text.as_bytes().to_vec(), &slices::slice(topology)?, &options)?;
    report.ok_or_else(|| Error::Usage { message: "the compiler gave no report".into() })
}

/// Compiles what would compute `outputs` for TPUs that need not be there, such as `"v5e:2x2"`, and reports what the compiler
/// says: whether it fits, and what it would take. Runs nothing. The program is that of a barrier on these tensors alone.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let w = Tensor::randn([512, 512]);
/// let narrow = xlazy::aot::compile(&w.to(BF16).matmul(&w.to(BF16)), "v5e");
/// assert!(narrow.cycles() < xlazy::aot::compile(&w.matmul(&w), "v5e").cycles());
/// ```
#[track_caller]
pub fn compile<O: Outputs + ?Sized>(outputs: &O, topology: &str) -> Report {
    match compile_with(outputs, topology, &Options::default()) {
        Ok(report) => report,
        Err(e) => e.raise(),
    }
}

/// As [`compile`], with options, and with errors as values.
pub fn compile_with<O: Outputs + ?Sized>(outputs: &O, topology: &str, options: &Options) -> Result<Report> {
    Program::of(outputs)?.report(topology, options)
}

/// Compiles a StableHLO program that somebody wrote: text or bytecode.
///
/// ```
/// let dynamic = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }";
/// let refused = xlazy::aot::compile_program(dynamic.as_bytes(), "v5e", &Default::default()).unwrap_err();
/// assert!(refused.to_string().contains("tensor<?xf32>"));
/// ```
pub fn compile_program(program: &[u8], topology: &str, options: &Options) -> Result<Report> {
    Program { text: program.to_vec(), marks: Vec::new() }.report(topology, options)
}

/// Compiles what would compute `outputs` for several chips, each alone, to be seen side by side: one table.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let w = Tensor::randn([512, 512]);
/// xlazy::aot::compare(&w.matmul(&w), &["v4", "v5e", "v5p", "v6e", "tpu7x"])
/// # ;
/// ```
#[track_caller]
pub fn compare<O: Outputs + ?Sized>(outputs: &O, topologies: &[&str]) -> Comparison {
    match Program::of(outputs) {
        Ok(program) => program.compare(topologies, &Options::default()),
        Err(e) => e.raise(),
    }
}

/// What `%tpu` shows for an expression; `spec` is the line without it.
#[doc(hidden)]
#[track_caller]
pub fn magic<O: Outputs + ?Sized>(spec: &str, outputs: &O) -> Bundle {
    let shown = Spec::read(spec).and_then(|spec| spec.show(&Program::of(outputs)?, Effort::Compile));
    match shown {
        Ok(bundle) => bundle.unwrap_or_default(),
        Err(e) => e.raise(),
    }
}

/// What `%tpu … last` shows: the program that ran last.
#[doc(hidden)]
#[track_caller]
pub fn magic_last(spec: &str) -> Bundle {
    match Spec::read(spec).and_then(|spec| spec.show(&Program::last()?, Effort::Compile)) {
        Ok(bundle) => bundle.unwrap_or_default(),
        Err(e) => e.raise(),
    }
}

/// The largest batch for which `program_of(batch)` fits a TPU that need not be there; each try records and compiles it anew.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let w = Tensor::randn([4096, 4096]);
/// let found = xlazy::aot::largest_batch(|n| Tensor::randn([n, 4096]).matmul(&w).relu(), "v5e");
/// assert!(found.batch > 0);
/// ```
#[track_caller]
pub fn largest_batch<O: Outputs>(program_of: impl Fn(usize) -> O, topology: &str) -> Largest {
    match largest::of_closure(program_of, topology, &Options::default()) {
        Ok(found) => found,
        Err(e) => e.raise(),
    }
}

/// What `%tpu … --largest-batch |batch| …` shows.
#[doc(hidden)]
#[track_caller]
pub fn magic_largest<O: Outputs>(spec: &str, program_of: impl Fn(usize) -> O) -> Bundle {
    let found = Spec::read(spec).and_then(|spec| {
        let found = largest::of_closure(program_of, &spec.topologies[0], &spec.options)?;
        Ok(if spec.json { bundle(found.json()) } else { found.rich() })
    });
    match found {
        Ok(bundle) => bundle,
        Err(e) => e.raise(),
    }
}

/// Answers the kernel's question `aot`: `last SPEC`, `var NAME SPEC` or `check SPEC`. Answers from the disk alone, in milliseconds; where
/// it takes a compile the bundle is empty and the kernel runs a cell, which can be interrupted.
pub(crate) fn call(args: &str) -> Result<Bundle> {
    let (program, spec) = match args.split_once(' ').unwrap_or((args, "")) {
        ("check", spec) => {
            Spec::read(spec)?;
            return TPU.library().map(|_| Bundle::default());
        }
        ("last", spec) => (Program::last()?, spec),
        ("var", rest) => {
            let (name, spec) = rest.split_once(' ').unwrap_or((rest, ""));
            match cell::peek::<Tensor>(name) {
                Some(tensor) => (Program::of(&tensor)?, spec),
                None => return Ok(Bundle::default()),
            }
        }
        _ => return Err(Error::Usage { message: "aot takes `last`, `var NAME` or `check`".into() }),
    };
    Ok(Spec::read(spec)?.show(&program, Effort::Look)?.unwrap_or_default())
}

/// What stands between `%tpu` and its expression: `v5e:2x2 -O2 --json`, `compare v4 v5e`.
#[derive(Debug, PartialEq)]
struct Spec {
    topologies: Vec<String>,
    compare: bool,
    json: bool,
    /// The largest batch is looked for.
    largest: bool,
    /// A picture of how far it is from what the chip can do.
    roofline: bool,
    options: Options,
}

impl Spec {
    fn read(text: &str) -> Result<Spec> {
        let mut spec = Spec {
            topologies: vec![],
            compare: false,
            json: false,
            largest: false,
            roofline: false,
            options: Options::default(),
        };
        let refused = |message: String| Err(Error::Usage { message });
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "compare" => spec.compare = true,
                "--json" => spec.json = true,
                "--roofline" => spec.roofline = true,
                "--largest-batch" => spec.largest = true,
                "-O0" | "-O1" | "-O2" | "-O3" => spec.options.level = (word.as_bytes()[2] - b'0') as u64,
                "--quick" => spec.options.level = 1,
                "--mesh" => spec.options.mesh = remesh::axes(words.next().unwrap_or_default())?,
                "--partitions" | "--slices" | "--timeout" => match words.next().and_then(|n| n.parse().ok()) {
                    Some(n) if word == "--partitions" => spec.options.partitions = n,
                    Some(n) if word == "--slices" => spec.options.slices = n,
                    Some(n) => spec.options.timeout = Duration::from_secs(n),
                    None => return refused(format!("{word} takes a number")),
                },
                _ if word.starts_with('-') => {
                    return refused(format!(
                        "unknown option {word}: there are -O0 to -O3, --quick, --slices, --partitions, --timeout, --largest-batch, --roofline, --json"
                    ));
                }
                topology => spec.topologies.push(slices::slice(&topology.to_lowercase())?),
            }
        }
        match (spec.compare, spec.topologies.len()) {
            (_, 0) => refused("which TPU? Write one such as v5e:2x2, or compare with several".into()),
            (true, _) if spec.largest || spec.roofline => {
                refused("--largest-batch and --roofline take one TPU, without compare".into())
            }
            _ if spec.largest && spec.roofline => {
                refused("--largest-batch and --roofline are two questions: ask one after the other".into())
            }
            (false, 2..) => refused("several TPUs are compared: write compare before them".into()),
            _ => Ok(spec),
        }
    }

    /// The report or table; `None` where it would take a compile that `effort` does not allow.
    fn show(&self, program: &Program, effort: Effort) -> Result<Option<Bundle>> {
        if self.compare {
            let names: Vec<&str> = self.topologies.iter().map(String::as_str).collect();
            if effort == Effort::Look
                && names.iter().any(|t| !matches!(program.ask(t, &self.options, effort), Ok(Some(_))))
            {
                return Ok(None);
            }
            let table = program.compare(&names, &self.options);
            return Ok(Some(if self.json { bundle(table.json()) } else { table.rich() }));
        }
        if (self.largest || self.roofline) && effort == Effort::Look {
            return Ok(None);
        }
        if self.roofline {
            let drawn = program.roofline(&self.topologies[0], &self.options)?;
            return Ok(Some(if self.json { bundle(drawn.json()) } else { drawn.rich() }));
        }
        if self.largest {
            let found = program.largest(&self.topologies[0], &self.options)?;
            return Ok(Some(if self.json { bundle(found.json()) } else { found.rich() }));
        }
        let report = program.ask(&self.topologies[0], &self.options, effort)?;
        Ok(report.map(|r| if self.json { bundle(r.json()) } else { r.rich() }))
    }
}
