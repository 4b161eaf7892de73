//! What to compile and how: the program and the options, which are encoded as XLA's `CompileOptionsProto` by hand.
use crate::c::{self, Struct};
use crate::{Error, Result, Value};

/// A program for the compiler.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// `mlir` (StableHLO text or bytecode), `hlo` (HloModuleProto) or `hlo_with_config`.
    pub format: &'a str,
    /// The program itself.
    pub code: &'a [u8],
}

impl<'a> Program<'a> {
    /// A program in StableHLO text.
    pub fn mlir(text: &'a str) -> Program<'a> {
        Program { format: "mlir", code: text.as_bytes() }
    }

    /// The C form; its pointers lead into the program.
    pub(crate) fn to_c(self) -> c::PJRT_Program {
        c::PJRT_Program {
            // The struct serves both directions; as an input the plugin does not write to it.
            code: self.code.as_ptr() as *mut _,
            code_size: self.code.len(),
            format: self.format.as_ptr().cast(),
            format_size: self.format.len(),
            ..Struct::zeroed()
        }
    }
}

/// How to compile; the default is one replica of one partition on the plugin's first device.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileOptions {
    /// Copies of the program that run on different data.
    pub replicas: i64,
    /// Parts that the program is split into.
    pub partitions: i64,
    /// Device ids by replica, then partition (`replicas * partitions` of them); `None` leaves the choice to the plugin.
    pub assignment: Option<Vec<i64>>,
    /// Let XLA split the program by its sharding annotations.
    pub spmd: bool,
    /// Propagate shardings with Shardy instead of GSPMD.
    pub shardy: bool,
    /// XLA's effort level: one of [`CompileOptions::O0`] to [`CompileOptions::O3`]; `None` is the plugin's default.
    pub optimization_level: Option<i64>,
    /// XLA flags for this compile, such as `xla_dump_to` (`env_option_overrides`); lists are sent as `1,2,3`.
    pub overrides: Vec<(String, Value)>,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            replicas: 1,
            partitions: 1,
            assignment: None,
            spmd: false,
            shardy: false,
            optimization_level: None,
            overrides: vec![],
        }
    }
}

impl CompileOptions {
    /// `EFFORT_O0`.
    pub const O0: i64 = 9;
    /// `EFFORT_O1`.
    pub const O1: i64 = 19;
    /// `EFFORT_O2`.
    pub const O2: i64 = 29;
    /// `EFFORT_O3`.
    pub const O3: i64 = 39;

    /// One replica of one partition on the device with this id.
    pub fn on_device(id: i32) -> CompileOptions {
        CompileOptions { assignment: Some(vec![id as i64]), ..CompileOptions::default() }
    }

    /// The options as a serialised `CompileOptionsProto`; the order is fixed, so equal options give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut build = Proto::default();
        build.int(1, -1); // device_ordinal: none, the assignment decides
        build.int(4, self.replicas);
        build.int(5, self.partitions);
        if self.spmd {
            build.int(6, 1);
        }
        if let Some(ids) = &self.assignment {
            build.message(9, &device_assignment(ids, self.replicas, self.partitions));
        }
        if self.shardy {
            build.int(19, 1);
        }
        if let Some(level) = self.optimization_level {
            build.int(24, level);
        }
        let mut options = Proto::default();
        options.message(3, &build);
        for (name, value) in &self.overrides {
            let mut entry = Proto::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &override_value(value));
            options.message(7, &entry);
        }
        options.0
    }

    /// `to_bytes`, after refusing counts and assignments that do not fit together.
    pub(crate) fn checked_bytes(&self, call: &'static str) -> Result<Vec<u8>> {
        let (replicas, partitions) = (self.replicas, self.partitions);
        let most = 1 << 20;
        if !(1..=most).contains(&replicas) || !(1..=most).contains(&partitions) {
            return Err(Error::argument(call, format!("{replicas} replicas of {partitions} partitions")));
        }
        match &self.assignment {
            Some(ids) if ids.len() as i64 != replicas * partitions => Err(Error::argument(
                call,
                format!("{} device ids for {replicas} replicas of {partitions} partitions", ids.len()),
            )),
            _ => Ok(self.to_bytes()),
        }
    }
}

/// `DeviceAssignmentProto`: for every partition, the device of every replica.
fn device_assignment(ids: &[i64], replicas: i64, partitions: i64) -> Proto {
    let mut proto = Proto::default();
    proto.int(1, replicas);
    proto.int(2, partitions);
    let partitions = partitions.max(1) as usize;
    for partition in 0..partitions {
        let mut packed = Proto::default();
        for id in ids.iter().skip(partition).step_by(partitions) {
            packed.varint(*id as u64);
        }
        let mut devices = Proto::default();
        devices.message(1, &packed);
        proto.message(3, &devices);
    }
    proto
}

/// `OptionOverrideProto`.
fn override_value(value: &Value) -> Proto {
    let mut proto = Proto::default();
    match value {
        Value::Str(s) => proto.bytes(1, s.as_bytes()),
        Value::Bool(b) => proto.int(2, *b as i64),
        Value::Int(i) => proto.int(3, *i),
        Value::Float(x) => proto.double(4, *x as f64),
        Value::Ints(l) => {
            let list: Vec<String> = l.iter().map(i64::to_string).collect();
            proto.bytes(1, list.join(",").as_bytes());
        }
    }
    proto
}

/// A protobuf message being written.
#[derive(Default)]
struct Proto(Vec<u8>);

impl Proto {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn int(&mut self, field: u64, n: i64) {
        self.varint(field << 3);
        self.varint(n as u64);
    }

    fn double(&mut self, field: u64, x: f64) {
        self.varint(field << 3 | 1);
        self.0.extend(x.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, message: &Proto) {
        self.bytes(field, &message.0);
    }
}
