//! PJRT's words as they travel.
use super::wire::{Attribute, DeviceInfo, Failure, Options};
use xlazy_pjrt::{Code, CompileOptions, CompiledMemoryStats, Device, Error, MemoryStats, Value};

pub fn failure(e: &Error) -> Failure {
    Failure { call: e.call.to_owned(), code: e.code.number().into(), message: e.message.clone() }
}

/// The calls whose failures travel: an error names its call by a text that lives for ever.
const CALLS: &[&str] = &[
    "PJRT_Client_Compile",
    "PJRT_Client_Create",
    "PJRT_Client_BufferFromHostBuffer",
    "PJRT_Executable_DeserializeAndLoad",
    "PJRT_Executable_Serialize",
    "PJRT_Executable_OptimizedProgram",
    "PJRT_LoadedExecutable_Execute",
    "PJRT_Buffer_ToHostBuffer",
    "PJRT_Buffer_CopyToDevice",
    "PJRT_Buffer_ReadyEvent",
    "PJRT_Event_Await",
    "PJRT_Event_OnReady",
];

/// A worker's failure, with who it was where there are several.
pub fn error(of: &Failure, who: Option<&str>) -> Error {
    let call = CALLS.iter().copied().find(|c| *c == of.call).unwrap_or("worker");
    let code = Code::from_number(of.code.try_into().unwrap_or(i32::MAX));
    let message = who.map_or_else(|| of.message.clone(), |who| format!("{who}: {}", of.message));
    Error { call, code, message }
}

pub fn value(v: Value) -> Attribute {
    match v {
        Value::Str(s) => Attribute::Str { s },
        Value::Int(i) => Attribute::Int { i },
        Value::Ints(l) => Attribute::Ints { l },
        Value::Float(x) => Attribute::Float { x },
        Value::Bool(b) => Attribute::Bool { b },
    }
}

pub fn plain(v: Attribute) -> Value {
    match v {
        Attribute::Str { s } => Value::Str(s),
        Attribute::Int { i } => Value::Int(i),
        Attribute::Ints { l } => Value::Ints(l),
        Attribute::Float { x } => Value::Float(x),
        Attribute::Bool { b } => Value::Bool(b),
    }
}

pub fn info(d: &Device) -> DeviceInfo {
    let attributes = d.attributes().unwrap_or_default().into_iter().map(|(name, v)| (name, value(v))).collect();
    DeviceInfo { id: d.id().into(), kind: d.kind(), attributes }
}

pub fn travelling(o: &CompileOptions, assignment: Vec<i64>) -> Options {
    Options {
        replicas: o.replicas,
        partitions: o.partitions,
        assignment: Some(assignment),
        spmd: o.spmd,
        shardy: o.shardy,
        level: o.optimization_level,
        flags: o.overrides.iter().map(|(name, v)| (name.clone(), value(v.clone()))).collect(),
    }
}

pub fn options(o: &Options) -> CompileOptions {
    CompileOptions {
        replicas: o.replicas,
        partitions: o.partitions,
        assignment: o.assignment.clone(),
        spmd: o.spmd,
        shardy: o.shardy,
        optimization_level: o.level,
        overrides: o.flags.iter().map(|(name, v)| (name.clone(), plain(v.clone()))).collect(),
    }
}

macro_rules! counts {
    ($($field:ident)*) => {
        /// What a program needs, in this order.
        pub fn needs(m: &CompiledMemoryStats) -> Vec<i64> {
            vec![$(m.$field),*]
        }

        pub fn needed(of: &[i64]) -> Option<CompiledMemoryStats> {
            let &[$($field),*] = of else { return None };
            Some(CompiledMemoryStats { $($field),* })
        }
    };
}

counts! {
    generated_code_size argument_size output_size alias_size temp_size
    host_generated_code_size host_argument_size host_output_size host_alias_size host_temp_size
    peak_memory total_size
}

/// In use, the most that was, the limit.
pub type Held = (i64, (Option<i64>, Option<i64>));

/// What a device holds, has held at most and can hold.
pub fn memory(m: &MemoryStats) -> Held {
    (m.bytes_in_use, (m.peak_bytes_in_use, m.bytes_limit))
}

pub fn counted((bytes_in_use, (peak_bytes_in_use, bytes_limit)): Held) -> MemoryStats {
    MemoryStats {
        bytes_in_use,
        peak_bytes_in_use,
        bytes_limit,
        num_allocs: None,
        largest_alloc_size: None,
        bytes_reserved: None,
        peak_bytes_reserved: None,
        bytes_reservable_limit: None,
        largest_free_block_bytes: None,
        pool_bytes: None,
        peak_pool_bytes: None,
    }
}
