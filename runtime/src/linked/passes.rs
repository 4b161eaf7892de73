//! Where compile time goes: XLA compiles the program once more and writes down what it has after each pass, and when.
use super::given::Given;
use crate::json::{Value, json, micros};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use xlazy_core::run::{Flag, compile_aside_with};
use xlazy_mime::{Bundle, Cell, Table, columns, private, units};

/// A part of the way from StableHLO to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Read,
    Passes,
    Assignment,
    Write,
    Mlir,
    Lower,
    Optimise,
    Machine,
    Rest,
}

impl Stage {
    const ALL: [Stage; 9] = [
        Stage::Read,
        Stage::Passes,
        Stage::Assignment,
        Stage::Write,
        Stage::Mlir,
        Stage::Lower,
        Stage::Optimise,
        Stage::Machine,
        Stage::Rest,
    ];

    fn name(self) -> &'static str {
        match self {
            Stage::Read => "StableHLO read",
            Stage::Passes => "HLO passes",
            Stage::Assignment => "buffers assigned",
            Stage::Write => "kernels written as MLIR",
            Stage::Mlir => "MLIR passes",
            Stage::Lower => "MLIR to LLVM",
            Stage::Optimise => "LLVM's passes",
            Stage::Machine => "machine code",
            Stage::Rest => "linked and loaded",
        }
    }
}

/// What was written at a moment.
struct Step {
    stage: Stage,
    /// The pass, or the kernel.
    name: String,
    took: Duration,
}

pub(super) struct Passes {
    what: String,
    target: String,
    /// Without writing anything down, and with it.
    plain: Duration,
    dumped: Duration,
    steps: Vec<Step>,
}

/// A stage, its time, and that of each pass or kernel in it.
type Took<'a> = (Stage, Duration, Vec<(&'a str, Duration)>);

/// A folder that goes with what is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Passes {
    pub fn of(given: &Given) -> Result<Passes> {
        let (target, device) = (given.target()?, given.device);
        let begin = Instant::now();
        compile_aside_with(&given.text, device, vec![])?;
        let plain = begin.elapsed();
        let refused = |e: std::io::Error| Error::Usage { message: format!("no folder for XLA's dump: {e}") };
        let folder = Folder(private::temporary(&std::env::temp_dir(), "xlazy-passes-").map_err(refused)?);
        let flags = vec![
            ("xla_dump_to".to_owned(), Flag::Str(folder.0.display().to_string())),
            ("xla_dump_hlo_pass_re".to_owned(), Flag::Str(".*".into())),
        ];
        let (begin, at) = (Instant::now(), SystemTime::now());
        compile_aside_with(&given.text, device, flags)?;
        let dumped = begin.elapsed();
        let steps = steps(&files(&folder.0), at, at + dumped);
        if steps.is_empty() {
            let message = format!(
                "the plugin for {target} writes down nothing of its passes: the program compiles in {}, and more is not \
                 known",
                units::time(plain)
            );
            return Err(Error::Usage { message });
        }
        Ok(Passes { what: given.what.clone(), target, plain, dumped, steps })
    }

    fn stages(&self) -> Vec<Took<'_>> {
        let of = |stage: Stage| {
            let mut names: BTreeMap<&str, Duration> = BTreeMap::new();
            for s in self.steps.iter().filter(|s| s.stage == stage) {
                *names.entry(&s.name).or_default() += s.took;
            }
            let mut names: Vec<(&str, Duration)> = names.into_iter().collect();
            names.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
            (stage, names.iter().map(|n| n.1).sum::<Duration>(), names)
        };
        Stage::ALL.into_iter().map(of).filter(|(_, took, _)| !took.is_zero()).collect()
    }

    fn headline(&self) -> String {
        format!(
            "{}: XLA compiles it for {} in {}; in {} when it writes down what each pass leaves, which the shares are of",
            self.what,
            self.target,
            units::time(self.plain),
            units::time(self.dumped)
        )
    }

    fn rows(&self) -> Vec<[String; 4]> {
        let share = |took: Duration| format!("{:.0} %", 100.0 * took.as_secs_f64() / self.dumped.as_secs_f64());
        let most = |names: &[(&str, Duration)]| {
            let named = names.iter().filter(|n| !n.0.is_empty()).take(NAMED);
            named.map(|(name, took)| format!("{name} {}", units::time(*took))).collect::<Vec<_>>().join(", ")
        };
        let row = |(stage, took, names): Took| [stage.name().to_owned(), units::time(took), share(took), most(&names)];
        self.stages().into_iter().map(row).collect()
    }

    pub fn bundle(&self) -> Bundle {
        let rows = self.rows();
        let mut text = self.headline() + "\n";
        let _ = write!(text, "{}", columns(&rows, &[1, 2]));
        let mut table = Table::new("font-size:.92em");
        table.head(["stage", "time", "share", "most of it"]);
        for [stage, time, share, most] in rows {
            table.row([
                Cell::text(&stage).left().style("white-space:nowrap"),
                Cell::text(&time).right().style("white-space:nowrap"),
                Cell::text(&share).right().style("white-space:nowrap"),
                Cell::text(&most).left(),
            ]);
        }
        let html = format!(
            "<div><div style=\"opacity:.75;font-size:.9em\">{}</div>{}</div>",
            xlazy_mime::escape_html(&self.headline()),
            table.html()
        );
        Bundle::html(html, text).passing()
    }

    pub fn json(&self) -> Value {
        let part = |(name, took): &(&str, Duration)| json!({ "name": name, "took_us": micros(*took) });
        let stage = |(stage, took, names): Took| json!({ "stage": stage.name(), "took_us": micros(took), "parts": names.iter().map(part).collect::<Value>() });
        json!({
            "what": self.what,
            "target": self.target,
            "compile_us": micros(self.plain),
            "dumped_us": micros(self.dumped),
            "stages": self.stages().into_iter().map(stage).collect::<Value>(),
        })
    }
}

const NAMED: usize = 5;

/// The files of a dump with the moments at which they were written.
fn files(folder: &Path) -> Vec<(SystemTime, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let one = |e: std::fs::DirEntry| Some((e.metadata().ok()?.modified().ok()?, e.file_name().into_string().ok()?));
    let mut all: Vec<_> = entries.filter_map(one).collect();
    all.sort();
    all
}

/// The time up to each file is of what the file holds; what writes nothing is counted with what writes next.
fn steps(files: &[(SystemTime, String)], begin: SystemTime, end: SystemTime) -> Vec<Step> {
    if files.is_empty() {
        return Vec::new();
    }
    let mut before = begin;
    let mut out = Vec::with_capacity(files.len() + 1);
    for (at, name) in files {
        let took = at.duration_since(before).unwrap_or_default();
        before = before.max(*at);
        let (stage, name) = told(name);
        out.push(Step { stage, name, took });
    }
    out.push(Step { stage: Stage::Rest, name: String::new(), took: end.duration_since(before).unwrap_or_default() });
    out
}

/// What a file of a dump is: `module_0001.xlazy.0007.simplification.after_algsimp.before_dce.txt`,
/// `module_0001.xlazy.fusion_kernel_module-post-lowering.mlir`.
fn told(file: &str) -> (Stage, String) {
    let kernel = |end: &str| {
        let rest = file.strip_suffix(end)?;
        let rest = rest.splitn(3, '.').nth(2)?;
        let rest = rest.strip_prefix("obj-file.").unwrap_or(rest);
        Some(rest.trim_end_matches("_kernel_module").trim_start_matches("__compute_module_").to_owned())
    };
    let endings = [
        ("-pre-optimization.mlir", Stage::Write),
        ("-post-optimization.mlir", Stage::Mlir),
        ("-post-lowering.mlir", Stage::Lower),
        (".ir-no-opt.ll", Stage::Lower),
        (".ir-with-opt.ll", Stage::Optimise),
        (".o", Stage::Machine),
    ];
    if let Some((stage, name)) = endings.iter().find_map(|(end, stage)| Some((*stage, kernel(end)?))) {
        return (stage, name);
    }
    if let Some((_, rest)) = file.split_once(".after_") {
        let pass = rest.split(".before_").next().unwrap_or(rest).trim_end_matches(".txt");
        // The time before a pipeline's start is of what stands around it.
        let name = if pass == "pipeline-start" { "other passes" } else { pass };
        return (Stage::Passes, name.to_owned());
    }
    match file {
        _ if file.contains("before_optimizations") => (Stage::Read, String::new()),
        _ if file.contains("after_optimizations.") => (Stage::Passes, "other passes".to_owned()),
        _ => (Stage::Assignment, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_of_a_stage() {
        let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let names = [
            (12, "module_0001.xlazy.before_optimizations.txt"),
            (15, "module_0001.xlazy.0000.simplification.after_pipeline-start.before_algsimp.txt"),
            (25, "module_0001.xlazy.0001.simplification.after_algsimp.before_dce.txt"),
            (26, "module_0001.xlazy.0002.copy-insertion.after_adding_copies_to_resolve_interference.txt"),
            (30, "module_0001.xlazy.cpu_after_optimizations.txt"),
            (31, "module_0001.xlazy.cpu_after_optimizations-buffer-assignment.txt"),
            (40, "module_0001.xlazy.a_fusion.1_kernel_module-pre-optimization.mlir"),
            (50, "module_0001.xlazy.a_fusion.1_kernel_module-post-optimization.mlir"),
            (55, "module_0001.xlazy.a_fusion.1_kernel_module-post-lowering.mlir"),
            (56, "module_0001.xlazy.__compute_module_wrapped_add.ir-no-opt.ll"),
            (66, "module_0001.xlazy.__compute_module_wrapped_add.ir-with-opt.ll"),
            (70, "module_0001.xlazy.obj-file.a_fusion.1_kernel_module.o"),
        ];
        let files: Vec<(SystemTime, String)> = names.iter().map(|(ms, n)| (at(*ms), (*n).to_owned())).collect();
        let steps = steps(&files, at(10), at(75));
        let told: Vec<String> =
            steps.iter().map(|s| format!("{:?} {} {}", s.stage, s.name, s.took.as_millis())).collect();
        expect_test::expect![[r#"
            Read  2
            Passes other passes 3
            Passes algsimp 10
            Passes adding_copies_to_resolve_interference 1
            Passes other passes 4
            Assignment  1
            Write a_fusion.1 9
            Mlir a_fusion.1 10
            Lower a_fusion.1 5
            Lower wrapped_add 1
            Optimise wrapped_add 10
            Machine a_fusion.1 4
            Rest  5"#]]
        .assert_eq(&told.join("\n"));
        assert_eq!(steps.iter().map(|s| s.took).sum::<Duration>(), Duration::from_millis(65));
        assert!(super::steps(&[], at(1), at(2)).is_empty());
    }
}
