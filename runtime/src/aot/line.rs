//! A line of an optimised program, and how it travels: as JSON between processes and on the disk.
use crate::json::{Value, json};

/// An instruction, or the head of a body that one runs. What a fusion or a loop holds stands behind it, further in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub text: String,
    pub depth: u64,
    /// The number of the mark that it is from; `None` for what XLA made of its own.
    pub mark: Option<usize>,
    /// Which parameter of the program it is.
    pub parameter: Option<usize>,
    pub kernel: Option<Kernel>,
}

/// What is started as one piece of work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kernel {
    pub name: String,
    pub opcode: String,
    /// How often it runs; `None` in a loop that does not tell.
    pub times: Option<u64>,
    /// Of one run, as XLA counts them; transcendental functions are apart.
    pub flops: u64,
    pub transcendentals: u64,
    /// Bytes to and from memory of one run, as if every operand were read whole.
    pub bytes: u64,
    /// The compiler's estimate of one run, where it has one.
    pub cycles: Option<u64>,
}

impl Line {
    pub fn value(&self) -> Value {
        let kernel = self.kernel.as_ref().map(|k| {
            json!({
                "name": k.name,
                "opcode": k.opcode,
                "times": k.times,
                "flops": k.flops,
                "transcendentals": k.transcendentals,
                "bytes": k.bytes,
                "cycles": k.cycles,
            })
        });
        json!({
            "text": self.text,
            "depth": self.depth,
            "mark": self.mark,
            "parameter": self.parameter,
            "kernel": kernel,
        })
    }

    pub fn read(json: &Value) -> Option<Line> {
        let place = |key: &str| json[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let k = &json["kernel"];
        let kernel = match k.is_null() {
            true => None,
            false => Some(Kernel {
                name: k["name"].as_str()?.to_owned(),
                opcode: k["opcode"].as_str()?.to_owned(),
                times: k["times"].as_u64(),
                flops: k["flops"].as_u64()?,
                transcendentals: k["transcendentals"].as_u64()?,
                bytes: k["bytes"].as_u64()?,
                cycles: k["cycles"].as_u64(),
            }),
        };
        Some(Line {
            text: json["text"].as_str()?.to_owned(),
            depth: json["depth"].as_u64()?,
            mark: place("mark"),
            parameter: place("parameter"),
            kernel,
        })
    }
}
