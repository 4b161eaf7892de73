//! The process that loads libtpu: a request comes in on stdin, a report goes out on stdout. libtpu may end this process at
//! any time, which costs whoever asked one error message.
use super::chips::chip;
use super::estimate::{Estimate, estimate};
use super::hlo::Module;
use super::lines::lines;
use super::links::moved;
use super::program;
use super::report::{Fit, Report, Time};
use crate::json::json;
use crate::{Error, Result};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use xlazy_pjrt::{Code, CompileOptions, Plugin, Program, Topology, Value};

/// What to compile.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub plugin: PathBuf,
    pub topology: String,
    pub slices: u64,
    pub replicas: u64,
    pub partitions: u64,
    pub level: u64,
    /// Whether the answer is to hold the optimised program line by line.
    pub lines: bool,
    pub program: Vec<u8>,
}

impl Request {
    /// All but the plugin and the program, as lines.
    pub fn head(&self) -> String {
        let lines = if self.lines { "lines 1\n" } else { "" };
        let Request { topology, slices, replicas, partitions, level, .. } = self;
        format!(
            "topology {topology}\nslices {slices}\nreplicas {replicas}\npartitions {partitions}\nlevel {level}\n{lines}"
        )
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = format!("plugin {}\n{}\n", self.plugin.display(), self.head()).into_bytes();
        out.extend_from_slice(&self.program);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Request> {
        let end = bytes.windows(2).position(|w| w == b"\n\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let field = |name: &str| head.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        Some(Request {
            plugin: field("plugin")?.into(),
            topology: field("topology")?.to_owned(),
            slices: field("slices")?.parse().ok()?,
            replicas: field("replicas")?.parse().ok()?,
            partitions: field("partitions")?.parse().ok()?,
            level: field("level")?.parse().ok()?,
            lines: field("lines").is_some(),
            program: bytes[end + 2..].to_vec(),
        })
    }
}

/// Comes before the answer: whatever a plugin printed stands ahead of it.
const MARK: &str = "\nxlazy-aot-answer ";

/// Set for the child alone.
pub(super) const IS_CHILD: &str = "XLAZY_AOT_IS_CHILD";

/// Whether this process was started to compile.
pub fn is_child() -> bool {
    std::env::var_os(IS_CHILD).is_some()
}

/// Answers one request and ends the process.
pub fn main() -> ! {
    xlazy_core::sys::die_with_parent();
    // The first to go when memory runs out, and no core dump of half a gigabyte in the user's folder.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    xlazy_core::sys::no_core_dump();
    let mut bytes = Vec::new();
    let read = std::io::stdin().read_to_end(&mut bytes).ok().and_then(|_| Request::decode(&bytes));
    let Some(request) = read else {
        eprintln!("this is a part of xlazy and of no use alone");
        std::process::exit(2);
    };
    let answer = match compile(&request) {
        Ok(report) => json!({ "report": report.value() }),
        Err(e) => {
            let (call, code) = match &e {
                Error::Pjrt { call, code, .. } => (*call, code.as_str()),
                _ => ("", ""),
            };
            let message = match &e {
                Error::Pjrt { message, .. } => message.clone(),
                other => other.to_string(),
            };
            json!({ "error": { "call": call, "code": code, "message": message } })
        }
    };
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{MARK}{answer}").and_then(|()| out.flush());
    // A plugin's exit handlers have nothing to add, and may hang.
    xlazy_core::sys::exit_now(0)
}

/// The answer in what the child printed; `None` where there is none.
pub(super) fn answer(stdout: &[u8]) -> Option<Result<Report>> {
    let text = String::from_utf8_lossy(stdout);
    let json = crate::json::parse(text.rsplit_once(MARK)?.1).ok()?;
    if let Some(report) = json.get("report") {
        return Report::read(report).map(Ok);
    }
    let word = |key: &str| json["error"][key].as_str();
    Some(Err(said(word("call")?, word("code")?, word("message")?.to_owned())))
}

/// An error of the child in words for people.
fn said(call: &str, code: &str, message: String) -> Error {
    let message = match call {
        "" => message,
        "PJRT_TopologyDescription_Create" => format!("libtpu does not take this topology: {message}"),
        "PJRT_Compile" => format!("the TPU compiler refused the program ({code}): {message}"),
        "dlopen" | "dlsym" | "GetPjrtApi" => format!("this is no libtpu that xlazy can use: {message}"),
        _ if message.contains("lockfile") || message.contains("already in use") => {
            format!("another process holds libtpu's lock: {message}")
        }
        _ => format!("libtpu: {call} failed ({code}): {message}"),
    };
    Error::Usage { message }
}

fn compile(request: &Request) -> Result<Report> {
    let plugin = Plugin::load(&request.plugin)?;
    let slices: &[(&str, Value)] =
        if request.slices > 1 { &[("num_slices", Value::Int(request.slices as i64))] } else { &[] };
    let topology = plugin.topology(&request.topology, slices)?;
    let devices = topology.devices()?;
    let Some(device) = devices.first() else {
        return Err(Error::Usage { message: format!("libtpu says that {} has no devices", request.topology) });
    };
    let wanted = request.partitions.saturating_mul(request.replicas);
    if wanted > devices.len() as u64 {
        let message = format!(
            "{wanted} {} need as many devices, and {} has {}",
            if request.replicas > 1 { "replicas" } else { "partitions" },
            request.topology,
            devices.len()
        );
        return Err(Error::Usage { message });
    }
    let mut report = Report {
        topology: request.topology.clone(),
        device: device.kind().to_owned(),
        devices: devices.len() as u64,
        partitions: wanted,
        slices: request.slices,
        level: request.level,
        compiler: compiler(&topology, &request.plugin),
        ..Report::default()
    };
    let limit = limit(&topology)?;
    let spmd = request.partitions > 1;
    // Over slices the plugin has no assignment of its own. Where fewer devices are wanted, each slice gives as many.
    let per_slice = wanted as usize / request.slices.max(1) as usize;
    let assignment = (request.slices > 1).then(|| {
        let of_slice = devices.chunks(devices.len() / request.slices as usize);
        of_slice.flat_map(|all| &all[..per_slice.min(all.len())]).map(|d| i64::from(d.id())).collect::<Vec<i64>>()
    });
    if let Some(all) = assignment.as_ref().filter(|all| all.len() as u64 != wanted) {
        let message =
            format!("{wanted} devices are no even share of {} slices: {} would be", request.slices, all.len());
        return Err(Error::Usage { message });
    }
    let options = CompileOptions {
        replicas: request.replicas as i64,
        partitions: request.partitions as i64,
        assignment,
        spmd,
        shardy: spmd && uses_shardy(&request.program),
        optimization_level: Some(
            [CompileOptions::O0, CompileOptions::O1, CompileOptions::O2, CompileOptions::O3]
                [request.level.min(3) as usize],
        ),
        ..CompileOptions::default()
    };
    let start = Instant::now();
    let compiled = plugin.compile(&topology, &Program { format: "mlir", code: &request.program }, &options);
    report.compile_seconds = start.elapsed().as_secs_f64();
    let executable = match compiled {
        Ok(executable) => executable,
        Err(e) if e.code == Code::ResourceExhausted || e.message.contains("E1000") || e.message.contains("E1001") => {
            report.fit = too_large(&request.program, limit, e.message);
            return Ok(report);
        }
        Err(e) => return Err(e.into()),
    };
    let memory = executable.memory_stats()?;
    let size = |n: i64| n.max(0) as u64;
    let (format, code) = executable.optimized_program()?;
    let module = Module::read(&format, &code);
    let Estimate { rows, without, largest, hbm_bytes } = module.as_ref().map(estimate).unwrap_or_default();
    if wanted > 1 {
        report.collectives = moved(&format, &code, module.as_ref(), &request.topology, wanted);
    }
    if request.lines {
        report.program = lines(&format, &code).unwrap_or_default();
    }
    report.fit = Fit {
        fits: limit == 0 || size(memory.peak_memory) <= limit,
        limit,
        peak: size(memory.peak_memory),
        arguments: size(memory.argument_size),
        outputs: size(memory.output_size),
        aliased: size(memory.alias_size),
        temporaries: size(memory.temp_size),
        code: size(memory.generated_code_size),
        words: String::new(),
        largest,
    };
    let flops = executable.cost_analysis().ok().and_then(|c| {
        c.into_iter().find_map(|(name, value)| match value {
            Value::Float(x) if name == "flops" => Some(x as f64),
            _ => None,
        })
    });
    report.time = time(&request.topology, flops.unwrap_or(0.0), hbm_bytes, Time { rows, without, ..Time::default() });
    Ok(report)
}

fn time(topology: &str, flops: f64, hbm_bytes: u64, time: Time) -> Time {
    let chip = chip(topology);
    let bound = chip.map_or("", |c| match flops / c.flops >= hbm_bytes as f64 / c.bandwidth {
        true => "compute",
        false => "memory",
    });
    let cycles = time.rows.iter().fold(0u64, |sum, r| sum.saturating_add(r.total()));
    Time { cycles, clock: chip.map_or(0.0, |c| c.clock), flops, hbm_bytes, bound: bound.to_owned(), ..time }
}

/// `built Oct 21 2026`, or what the plugin says instead.
fn compiler(topology: &Topology, plugin: &Path) -> String {
    let version = topology.platform_version().unwrap_or_default();
    let built = version.lines().find_map(|l| l.strip_prefix("Built on ")).and_then(|l| l.split(" (").next());
    let name = plugin.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match (built, version.lines().next()) {
        (Some(when), _) => format!("{name}, built {when}"),
        (None, Some(line)) => format!("{name}, {line}"),
        (None, None) => name,
    }
}

/// Bytes of HBM that programs may use.
fn limit(topology: &Topology) -> Result<u64> {
    let of = |attributes: &[(String, Value)]| {
        attributes.iter().find_map(|(name, value)| match value {
            Value::Int(n) if name == "device_memory_bytes_limit" => Some((*n).max(0) as u64),
            _ => None,
        })
    };
    Ok(of(&topology.attributes()?).unwrap_or(0))
}

/// Which of the two ways to say how a program is split it uses.
fn uses_shardy(program: &[u8]) -> bool {
    match program::text(program) {
        Some(text) => text.contains("sdy."),
        None => program.windows(4).any(|w| w == b"sdy\0"),
    }
}

fn too_large(program: &[u8], limit: u64, words: String) -> Fit {
    let sizes = program::text(program).map(program::sizes).unwrap_or_default();
    Fit {
        fits: false,
        limit,
        peak: needed(&words).unwrap_or(0),
        arguments: sizes.arguments,
        outputs: sizes.outputs,
        words,
        largest: sizes.largest,
        ..Fit::default()
    }
}

/// The first size in the compiler's words (`112.00G`), which is what the program needs.
fn needed(words: &str) -> Option<u64> {
    words.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).find_map(|word| {
        let word = word.trim_end_matches('.');
        let unit = match word.chars().last()? {
            'K' => 1u64 << 10,
            'M' => 1 << 20,
            'G' => 1 << 30,
            'T' => 1 << 40,
            _ => return None,
        };
        let number: f64 = word[..word.len() - 1].parse().ok()?;
        Some((number * unit as f64) as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_survive_the_way() {
        let request = Request {
            plugin: "/a b/libtpu.so".into(),
            topology: "v5e:2x2".into(),
            slices: 2,
            replicas: 1,
            partitions: 4,
            level: 2,
            lines: true,
            program: b"module {\n\n}\xff".to_vec(),
        };
        assert_eq!(Request::decode(&request.encode()), Some(request));
        assert_eq!(Request::decode(b"plugin x"), None);
        let noise = format!("a line of a plugin\n{MARK}{{\"report\":{}}}\n", Report::default().json());
        assert_eq!(answer(noise.as_bytes()), Some(Ok(Report::default())));
        let error =
            format!("{MARK}{{\"error\":{{\"call\":\"PJRT_Compile\",\"code\":\"INTERNAL\",\"message\":\"m\"}}}}");
        assert!(
            answer(error.as_bytes()).unwrap().unwrap_err().to_string().contains("refused the program (INTERNAL): m")
        );
        assert_eq!(answer(b"nothing"), None);
    }

    #[test]
    fn the_compilers_words_hold_a_size() {
        let words = "E1000: … memory required for HLO temporaries (112.00G) exceeds available HBM (15.75G).";
        assert_eq!(needed(words), Some(112 << 30));
        assert_eq!(needed("no size"), None);
        assert_eq!(needed("needs 1.5M."), Some(3 << 19));
    }
}
