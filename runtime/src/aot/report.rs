//! What an ahead-of-time compile found, and how it travels: as JSON between processes, on the disk and to whoever asks.
use crate::json::{Json, list, string};

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
    /// Parts that the program was split into.
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

    /// The report as one JSON object: what `--json` prints.
    pub fn json(&self) -> String {
        let (f, t) = (&self.fit, &self.time);
        let fit = format!(
            "{{\"fits\":{},\"limit\":{},\"peak\":{},\"arguments\":{},\"outputs\":{},\"aliased\":{},\"temporaries\":{},\
             \"code\":{},\"words\":{},\"largest\":{}}}",
            f.fits,
            f.limit,
            f.peak,
            f.arguments,
            f.outputs,
            f.aliased,
            f.temporaries,
            f.code,
            string(&f.words),
            list(f.largest.iter().map(Held::json))
        );
        let time = format!(
            "{{\"what\":\"compiler estimate\",\"cycles\":{},\"clock\":{},\"seconds\":{},\"flops\":{},\"hbm_bytes\":{},\
             \"bound\":{},\"rows\":{},\"without\":{}}}",
            t.cycles,
            t.clock,
            number(self.seconds()),
            number(t.flops),
            t.hbm_bytes,
            string(&t.bound),
            list(t.rows.iter().map(Row::json)),
            list(t.without.iter().map(Row::json))
        );
        format!(
            "{{\"topology\":{},\"device\":{},\"devices\":{},\"partitions\":{},\"level\":{},\"compiler\":{},\
             \"compile_seconds\":{},\"cached\":{},\"fit\":{fit},\"time\":{time}}}",
            string(&self.topology),
            string(&self.device),
            self.devices,
            self.partitions,
            self.level,
            string(&self.compiler),
            number(self.compile_seconds),
            self.cached
        )
    }

    pub(super) fn read(json: &Json) -> Option<Report> {
        let text = |key| json.text(key).map(str::to_owned);
        let (fit, time) = (json.get("fit")?, json.get("time")?);
        Some(Report {
            topology: text("topology")?,
            device: text("device")?,
            devices: json.count("devices")?,
            partitions: json.count("partitions")?,
            level: json.count("level")?,
            compiler: text("compiler")?,
            compile_seconds: json.number("compile_seconds")?,
            cached: json.flag("cached")?,
            fit: Fit {
                fits: fit.flag("fits")?,
                limit: fit.count("limit")?,
                peak: fit.count("peak")?,
                arguments: fit.count("arguments")?,
                outputs: fit.count("outputs")?,
                aliased: fit.count("aliased")?,
                temporaries: fit.count("temporaries")?,
                code: fit.count("code")?,
                words: fit.text("words")?.to_owned(),
                largest: fit.list("largest").iter().map(Held::read).collect::<Option<_>>()?,
            },
            time: Time {
                cycles: time.count("cycles")?,
                clock: time.number("clock")?,
                rows: time.list("rows").iter().map(Row::read).collect::<Option<_>>()?,
                without: time.list("without").iter().map(Row::read).collect::<Option<_>>()?,
                flops: time.number("flops")?,
                hbm_bytes: time.count("hbm_bytes")?,
                bound: time.text("bound")?.to_owned(),
            },
        })
    }

    /// Every source in the report, to be put in the user's terms.
    pub(super) fn sources_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        let rows = self.time.rows.iter_mut().chain(&mut self.time.without).flat_map(|r| &mut r.sources);
        rows.chain(self.fit.largest.iter_mut().flat_map(|h| &mut h.sources))
    }
}

impl Held {
    fn json(&self) -> String {
        format!(
            "{{\"name\":{},\"shape\":{},\"bytes\":{},\"sources\":{}}}",
            string(&self.name),
            string(&self.shape),
            self.bytes,
            list(self.sources.iter().map(Source::json))
        )
    }

    fn read(json: &Json) -> Option<Held> {
        Some(Held {
            name: json.text("name")?.to_owned(),
            shape: json.text("shape")?.to_owned(),
            bytes: json.count("bytes")?,
            sources: sources(json)?,
        })
    }
}

impl Source {
    fn json(&self) -> String {
        format!("{{\"op\":{},\"at\":{}}}", string(&self.op), string(&self.at))
    }
}

fn sources(json: &Json) -> Option<Vec<Source>> {
    let one = |j: &Json| Some(Source { op: j.text("op")?.to_owned(), at: j.text("at")?.to_owned() });
    json.list("sources").iter().map(one).collect()
}

impl Row {
    fn json(&self) -> String {
        let or_null = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
        format!(
            "{{\"name\":{},\"opcode\":{},\"shape\":{},\"operands\":{},\"times\":{},\"cycles\":{},\"sources\":{}}}",
            string(&self.name),
            string(&self.opcode),
            string(&self.shape),
            list(self.operands.iter().map(|o| string(o))),
            or_null(self.times),
            or_null(self.cycles),
            list(self.sources.iter().map(Source::json))
        )
    }

    fn read(json: &Json) -> Option<Row> {
        let operand = |j: &Json| if let Json::Text(s) = j { Some(s.clone()) } else { None };
        Some(Row {
            name: json.text("name")?.to_owned(),
            opcode: json.text("opcode")?.to_owned(),
            shape: json.text("shape")?.to_owned(),
            operands: json.list("operands").iter().map(operand).collect::<Option<_>>()?,
            times: json.count("times"),
            cycles: json.count("cycles"),
            sources: sources(json)?,
        })
    }
}

/// A number that JSON can hold.
fn number(x: f64) -> String {
    if x.is_finite() { format!("{x}") } else { "0".to_owned() }
}

#[cfg(test)]
mod tests {
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
            ..Report::default()
        };
        let json = report.json();
        assert_eq!(Report::read(&Json::parse(&json).unwrap()).as_ref(), Some(&report));
        assert!((report.seconds() - 8e-9).abs() < 1e-12);
        assert_eq!(Report::read(&Json::parse("{}").unwrap()), None);
    }
}
