//! An optimised program as the compiler gives it, as far as a report needs it: computations, instructions, where they are from.
use super::flops::{Work, work};
use crate::display::hlo::{element_type, shape_text};
use crate::json::Value;
use std::collections::HashMap;
use xlazy_core::proto::Message;

pub(super) struct Module {
    pub entry: i64,
    pub computations: HashMap<i64, Computation>,
}

#[derive(Default)]
pub(super) struct Computation {
    pub instructions: Vec<Instruction>,
    pub root: i64,
    at: HashMap<i64, usize>,
}

impl Computation {
    pub fn get(&self, id: i64) -> Option<&Instruction> {
        self.at.get(&id).map(|&i| &self.instructions[i])
    }
}

pub(super) struct Instruction {
    pub id: i64,
    pub name: String,
    pub opcode: String,
    pub shape: String,
    /// Bytes in HBM, with what the tiles pad; fast memory on the chip is not counted.
    pub hbm_bytes: u64,
    pub operands: Vec<i64>,
    pub called: Vec<i64>,
    /// The name of the op of the user's program that this came from, and where that op stands; both may be empty.
    pub op: String,
    pub at: String,
    /// The compiler's estimate of one run, where it has one.
    pub cycles: Option<u64>,
    /// How often a loop runs, where the compiler notes it.
    pub known_trip_count: Option<u64>,
    /// Index of a get-tuple-element.
    pub index: i64,
    /// The value of an integer constant of one element.
    pub constant: Option<i64>,
    /// Of a compare: `LT`…
    pub direction: String,
    /// Of a parameter: which one.
    pub parameter: usize,
    pub work: Work,
}

/// A number of the compiler's notes, which are protocol buffers in JSON: wide numbers are texts there.
fn noted(config: &Value, path: &str) -> Option<u64> {
    let number = path.split('/').skip(1).try_fold(config, |v, key| v.get(key))?;
    number.as_u64().or_else(|| number.as_str()?.parse().ok())
}

impl Module {
    /// Reads `hlo_with_config` or `hlo`.
    pub fn read(format: &str, bytes: &[u8]) -> Option<Module> {
        let message = Message::read(bytes)?;
        let module = match format {
            "hlo_with_config" => message.message(1),
            "hlo" => message,
            _ => return None,
        };
        let frames = Frames::read(&module.message(17));
        let mut computations = HashMap::new();
        for c in module.messages(3) {
            let all = c.messages(2);
            let shapes: HashMap<i64, Message> = all.iter().map(|i| (i.int(35), i.message(3))).collect();
            let instructions: Vec<Instruction> = all.iter().map(|i| instruction(i, &frames, &shapes)).collect();
            let at = instructions.iter().enumerate().map(|(n, i)| (i.id, n)).collect();
            computations.insert(c.int(5), Computation { instructions, root: c.int(6), at });
        }
        Some(Module { entry: module.int(6), computations })
    }

    pub fn computation(&self, id: i64) -> Option<&Computation> {
        self.computations.get(&id)
    }
}

fn instruction(i: &Message, frames: &Frames, shapes: &HashMap<i64, Message>) -> Instruction {
    let operands = i.ints(36);
    let shape = i.message(3);
    let meta = i.message(7);
    let at = match (meta.str(3), meta.int(4)) {
        ("" | "-", _) => frames.place(meta.int(15)).unwrap_or_default(),
        (file, line) => format!("{file}:{line}"),
    };
    // Not every backend's notes are JSON, nor has every instruction any.
    let config = crate::json::parse(i.bytes(43)).unwrap_or_default();
    let at = match (at.is_empty(), meta.int(4)) {
        (true, line) if line > 0 => format!("line {line}"),
        _ => at,
    };
    Instruction {
        id: i.int(35),
        name: i.str(1).to_owned(),
        opcode: i.str(2).to_owned(),
        shape: shape_text(&shape, true),
        hbm_bytes: hbm_bytes(&shape),
        work: work(i, |n| shapes.get(operands.get(n)?)),
        operands,
        called: i.ints(38),
        op: meta.str(2).to_owned(),
        at,
        cycles: noted(&config, "/window_config/estimated_cycles").filter(|&c| c > 0),
        known_trip_count: noted(&config, "/known_trip_count/n"),
        index: i.int(13),
        constant: constant(i),
        direction: i.str(63).to_owned(),
        parameter: usize::try_from(i.int(9)).unwrap_or_default(),
    }
}

fn constant(i: &Message) -> Option<i64> {
    let literal = i.message(8);
    let field = match literal.message(1).int(2) {
        4 => 4,
        5 => 5,
        8 => 6,
        _ => return None,
    };
    match literal.ints(field)[..] {
        [one] => Some(if field == 4 { one as i32 as i64 } else { one }),
        _ => None,
    }
}

/// The stack frames that instructions point to: file and line of the op's own frame.
struct Frames {
    files: Vec<String>,
    /// File and line.
    locations: Vec<(i64, i64)>,
    frames: Vec<i64>,
}

impl Frames {
    fn read(index: &Message) -> Frames {
        Frames {
            files: index.strings(1),
            locations: index.messages(3).iter().map(|l| (l.int(1), l.int(3))).collect(),
            frames: index.messages(4).iter().map(|f| f.int(1)).collect(),
        }
    }

    fn place(&self, frame: i64) -> Option<String> {
        // All of them count from 1.
        let nth = |n: i64| usize::try_from(n - 1).ok();
        let (file, line) = self.locations.get(nth(*self.frames.get(nth(frame)?)?)?)?;
        let file = self.files.get(nth(*file)?)?;
        (file != "-").then(|| format!("{file}:{line}"))
    }
}

const TUPLE: i64 = 13;

/// Bytes of a shape in HBM (memory space 0), each array padded to its tiles.
fn hbm_bytes(shape: &Message) -> u64 {
    if shape.int(2) == TUPLE {
        return shape.messages(4).iter().map(hbm_bytes).sum();
    }
    let layout = shape.message(5);
    if layout.int(8) != 0 {
        return 0;
    }
    let mut dims: Vec<u64> = shape.ints(3).iter().map(|&d| d.max(0) as u64).collect();
    let tile = layout.messages(6).first().map(|t| t.ints(1)).unwrap_or_default();
    for (&dim, &tile) in layout.ints(1).iter().zip(tile.iter().rev()) {
        if let Some(d) = usize::try_from(dim).ok().and_then(|d| dims.get_mut(d)) {
            *d = d.next_multiple_of(tile.max(1) as u64);
        }
    }
    let elements = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
    elements.saturating_mul(element_type(shape.int(2)).1).div_ceil(8)
}
