//! What an ahead-of-time compile found, and how it travels: as JSON between processes, on the disk and to whoever asks.
use super::line::Line;
use crate::json::{Value, json};

/// What XLA's TPU compiler says of a program: whether it fits, and what it would take. All figures are the compiler's
/// estimates; nothing ran.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let w = Tensor::randn([1024, 1024]);
/// let report = xlazy::aot::compile(&w.matmul(&w), "v5e:1x1");
/// assert!(report.fits());
/// println!("{} cycles", report.cycles());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The devices compiled for, such as `v5e:2x2`.
    pub topology: String,
    /// The chip's name in libtpu, such as `TPU v5 lite`.
    pub device: String,
    /// How many devices the topology has.
    pub devices: u64,
    /// How many slices of these there are.
    pub slices: u64,
    /// Parts that the program was split into, or copies of it that run.
    pub partitions: u64,
    /// Optimisation level, 0 to 3.
    pub level: u64,
    /// The compiler's version, in its own words.
    pub compiler: String,
    /// Seconds that the compile took.
    pub compile_seconds: f64,
    /// Whether the answer came from the disk.
    pub cached: bool,
    /// Memory of one device.
    pub fit: Fit,
    /// Cycles of one device.
    pub time: Time,
    /// What the devices tell one another.
    pub collectives: Vec<Moved>,
    /// The optimised program, where it was asked for.
    pub(crate) program: Vec<Line>,
}

/// Memory, in bytes of one device's HBM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fit {
    /// Whether the program fits.
    pub fits: bool,
    /// What a device has for programs.
    pub limit: u64,
    /// The most that is in use at once; of a program that does not fit, what the compiler says it needs.
    pub peak: u64,
    /// Parameters of the program.
    pub arguments: u64,
    /// Results.
    pub outputs: u64,
    /// Of these, what takes over the memory of an argument.
    pub aliased: u64,
    /// Values in between.
    pub temporaries: u64,
    /// The program itself.
    pub code: u64,
    /// The compiler's own words when it does not fit.
    pub words: String,
    /// The largest values, the largest first.
    pub largest: Vec<Held>,
}

/// A value in HBM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Its name in the program.
    pub name: String,
    /// With layout, tiles and memory space where the compiler has chosen them.
    pub shape: String,
    /// With what its tiles pad.
    pub bytes: u64,
    /// Where it comes from.
    pub sources: Vec<Source>,
}

/// An op of the user's program, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// Such as `matmul`; empty where the program does not say.
    pub op: String,
    /// Such as `cell 7, line 3`; empty where the program does not say.
    pub at: String,
}

/// Time, as the compiler estimates it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Time {
    /// Estimated cycles of all that has an estimate, loops multiplied out.
    pub cycles: u64,
    /// The clock assumed, in hertz; 0 for a chip that xlazy does not know.
    pub clock: f64,
    /// What has an estimate, the dearest first.
    pub rows: Vec<Row>,
    /// What has none: copies between memories, collectives, custom calls.
    pub without: Vec<Row>,
    /// Floating-point operations, as XLA counts them.
    pub flops: f64,
    /// Bytes to and from HBM, as if every operand were read whole.
    pub hbm_bytes: u64,
    /// `compute` or `memory`: which of the two takes longer at the chip's peak rates; empty for an unknown chip.
    pub bound: String,
}

/// One collective of the optimised program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// `all-reduce`…
    pub kind: String,
    /// What it gives each device.
    pub shape: String,
    /// Of that.
    pub bytes: u64,
    /// Which devices it goes over, as XLA writes groups.
    pub groups: String,
    /// The compiler's way to do it, where it tells.
    pub algorithm: String,
    /// It runs beside other work.
    pub is_async: bool,
    /// It goes over the network between slices.
    pub between_slices: bool,
    /// Our estimate over published link rates, no figure of the compiler's; 0 where none is published.
    pub seconds: f64,
    /// The user's ops that it is for.
    pub sources: Vec<Source>,
}

/// One instruction of the optimised program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its name in the optimised program.
    pub name: String,
    /// `fusion`, `copy`, `custom-call`…
    pub opcode: String,
    /// The result, with layout, tiles `T(8,128)` and memory space (`S(1)` is the fast memory on the chip).
    pub shape: String,
    /// The operands.
    pub operands: Vec<String>,
    /// How often it runs; `None` in a loop that does not tell.
    pub times: Option<u64>,
    /// Estimated cycles of one run.
    pub cycles: Option<u64>,
    /// The user's ops in it.
    pub sources: Vec<Source>,
}

impl Row {
    /// Estimated cycles of all its runs.
    pub fn total(&self) -> u64 {
        self.cycles.unwrap_or(0).saturating_mul(self.times.unwrap_or(1))
    }
}

impl Report {
    /// Whether the program fits on the chip.
    pub fn fits(&self) -> bool {
        self.fit.fits
    }

    /// The compiler's estimate in cycles, of all that it has an estimate of.
    pub fn cycles(&self) -> u64 {
        self.time.cycles
    }

    /// The same in seconds, at the clock assumed.
    pub fn seconds(&self) -> f64 {
        if self.time.clock > 0.0 { self.time.cycles as f64 / self.time.clock } else { 0.0 }
    }

    /// Seconds that the program takes at least, at the chip's published peak rates: what is loaded ahead of time, by copies beside
    /// other work, has no estimate of the compiler's, but it goes through the same memory. 0 for a chip that xlazy does not know.
    pub fn least_seconds(&self) -> f64 {
        let least = |c: &super::chips::Chip| (self.time.flops / c.flops).max(self.time.hbm_bytes as f64 / c.bandwidth);
        super::chips::chip(&self.topology).map_or(0.0, least)
    }

    /// The report as one JSON object: what `--json` prints.
    pub fn json(&self) -> String {
        self.value().to_string()
    }

    pub(super) fn value(&self) -> Value {
        let (f, t) = (&self.fit, &self.time);
        let mut value = json!({
            "topology": self.topology,
            "device": self.device,
            "devices": self.devices,
            "slices": self.slices,
            "partitions": self.partitions,
            "level": self.level,
            "compiler": self.compiler,
            "compile_seconds": finite(self.compile_seconds),
            "cached": self.cached,
            "fit": {
                "fits": f.fits,
                "limit": f.limit,
                "peak": f.peak,
                "arguments": f.arguments,
                "outputs": f.outputs,
                "aliased": f.aliased,
                "temporaries": f.temporaries,
                "code": f.code,
                "words": f.words,
                "largest": f.largest.iter().map(Held::value).collect::<Value>(),
            },
            "time": {
                "what": "compiler estimate",
                "cycles": t.cycles,
                "clock": finite(t.clock),
                "seconds": finite(self.seconds()),
                "least_seconds": finite(self.least_seconds()),
                "flops": finite(t.flops),
                "hbm_bytes": t.hbm_bytes,
                "bound": t.bound,
                "rows": t.rows.iter().map(Row::value).collect::<Value>(),
                "without": t.without.iter().map(Row::value).collect::<Value>(),
            },
        });
        value["collectives"] = self.collectives.iter().map(Moved::value).collect();
        if !self.program.is_empty() {
            value["program"] = self.program.iter().map(Line::value).collect();
        }
        value
    }

    pub(super) fn read(json: &Value) -> Option<Report> {
        let (fit, time) = (&json["fit"], &json["time"]);
        Some(Report {
            topology: text(json, "topology")?,
            device: text(json, "device")?,
            devices: json["devices"].as_u64()?,
            slices: json["slices"].as_u64().unwrap_or(1),
            partitions: json["partitions"].as_u64()?,
            level: json["level"].as_u64()?,
            compiler: text(json, "compiler")?,
            compile_seconds: json["compile_seconds"].as_f64()?,
            cached: json["cached"].as_bool()?,
            fit: Fit {
                fits: fit["fits"].as_bool()?,
                limit: fit["limit"].as_u64()?,
                peak: fit["peak"].as_u64()?,
                arguments: fit["arguments"].as_u64()?,
                outputs: fit["outputs"].as_u64()?,
                aliased: fit["aliased"].as_u64()?,
                temporaries: fit["temporaries"].as_u64()?,
                code: fit["code"].as_u64()?,
                words: text(fit, "words")?,
                largest: list(fit, "largest", Held::read)?,
            },
            time: Time {
                cycles: time["cycles"].as_u64()?,
                clock: time["clock"].as_f64()?,
                rows: list(time, "rows", Row::read)?,
                without: list(time, "without", Row::read)?,
                flops: time["flops"].as_f64()?,
                hbm_bytes: time["hbm_bytes"].as_u64()?,
                bound: text(time, "bound")?,
            },
            collectives: list(json, "collectives", Moved::read).unwrap_or_default(),
            program: list(json, "program", Line::read).unwrap_or_default(),
        })
    }

    /// Every source in the report, to be put in the user's terms.
    pub(super) fn sources_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        let rows = self.time.rows.iter_mut().chain(&mut self.time.without).flat_map(|r| &mut r.sources);
        let moved = self.collectives.iter_mut().flat_map(|m| &mut m.sources);
        rows.chain(self.fit.largest.iter_mut().flat_map(|h| &mut h.sources)).chain(moved)
    }
}

impl Held {
    fn value(&self) -> Value {
        let sources: Value = self.sources.iter().map(Source::value).collect();
        json!({ "name": self.name, "shape": self.shape, "bytes": self.bytes, "sources": sources })
    }

    fn read(json: &Value) -> Option<Held> {
        Some(Held {
            name: text(json, "name")?,
            shape: text(json, "shape")?,
            bytes: json["bytes"].as_u64()?,
            sources: list(json, "sources", Source::read)?,
        })
    }
}

impl Source {
    fn value(&self) -> Value {
        json!({ "op": self.op, "at": self.at })
    }

    fn read(json: &Value) -> Option<Source> {
        Some(Source { op: text(json, "op")?, at: text(json, "at")? })
    }
}

impl Moved {
    fn value(&self) -> Value {
        let sources: Value = self.sources.iter().map(Source::value).collect();
        json!({
            "kind": self.kind,
            "shape": self.shape,
            "bytes": self.bytes,
            "groups": self.groups,
            "algorithm": self.algorithm,
            "async": self.is_async,
            "between_slices": self.between_slices,
            "estimated_seconds": finite(self.seconds),
            "sources": sources,
        })
    }

    fn read(json: &Value) -> Option<Moved> {
        Some(Moved {
            kind: text(json, "kind")?,
            shape: text(json, "shape")?,
            bytes: json["bytes"].as_u64()?,
            groups: text(json, "groups")?,
            algorithm: text(json, "algorithm")?,
            is_async: json["async"].as_bool()?,
            between_slices: json["between_slices"].as_bool()?,
            seconds: json["estimated_seconds"].as_f64()?,
            sources: list(json, "sources", Source::read)?,
        })
    }
}

impl Row {
    fn value(&self) -> Value {
        json!({
            "name": self.name,
            "opcode": self.opcode,
            "shape": self.shape,
            "operands": self.operands,
            "times": self.times,
            "cycles": self.cycles,
            "sources": self.sources.iter().map(Source::value).collect::<Value>(),
        })
    }

    fn read(json: &Value) -> Option<Row> {
        Some(Row {
            name: text(json, "name")?,
            opcode: text(json, "opcode")?,
            shape: text(json, "shape")?,
            operands: list(json, "operands", |operand| operand.as_str().map(str::to_owned))?,
            times: json["times"].as_u64(),
            cycles: json["cycles"].as_u64(),
            sources: list(json, "sources", Source::read)?,
        })
    }
}

fn text(json: &Value, key: &str) -> Option<String> {
    json[key].as_str().map(str::to_owned)
}

fn list<T>(json: &Value, key: &str, one: impl FnMut(&Value) -> Option<T>) -> Option<Vec<T>> {
    json[key].as_array()?.iter().map(one).collect()
}

/// A number that JSON can hold.
fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::line::Kernel;
    use super::*;

    #[test]
    fn a_report_survives_its_json() {
        let source = Source { op: "matmul".into(), at: "cell 7, line 3".into() };
        let row = Row {
            name: "fusion.1".into(),
            opcode: "fusion".into(),
            shape: "f32[8]{0:T(128)}".into(),
            operands: vec!["\"quoted\"".into()],
            times: None,
            cycles: Some(12),
            sources: vec![source.clone()],
        };
        let held = Held { name: "x".into(), shape: "f32[8]".into(), bytes: 32, sources: vec![source] };
        let report = Report {
            topology: "v5e:1x1".into(),
            compile_seconds: 0.25,
            fit: Fit { fits: true, limit: 1 << 40, largest: vec![held], ..Fit::default() },
            time: Time { cycles: 12, clock: 1.5e9, rows: vec![row.clone()], without: vec![row], ..Time::default() },
            collectives: vec![Moved { kind: "all-reduce".into(), bytes: 7, seconds: 0.5, ..Moved::default() }],
            program: vec![
                Line {
                    text: "%a".into(),
                    depth: 1,
                    mark: Some(3),
                    kernel: Some(Kernel { name: "a".into(), times: None, flops: 7, ..Kernel::default() }),
                    ..Line::default()
                },
                Line { parameter: Some(0), ..Line::default() },
            ],
            ..Report::default()
        };
        let json = report.json();
        assert_eq!(Report::read(&crate::json::parse(&json).unwrap()).as_ref(), Some(&report));
        assert!((report.seconds() - 8e-9).abs() < 1e-12);
        assert_eq!(Report::read(&json!({})), None);
    }
}
