//! Values that travel across the C API: named options and attributes, and element types.
use crate::api::{self, Slice};
use crate::c::{self, Struct, named_value};
use crate::{Error, Result};
use std::ffi::c_char;
use std::fmt;

/// An option for the plugin or an attribute from it (`PJRT_NamedValue`).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Str(String),
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A float.
    Float(f32),
    /// A truth value.
    Bool(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Str(s) => f.write_str(s),
            Value::Int(i) => write!(f, "{i}"),
            Value::Ints(l) => write!(f, "{l:?}"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Bool(b) => write!(f, "{b}"),
        }
    }
}

/// The C form of options; its pointers lead into `options`.
pub(crate) fn to_c(options: &[(&str, Value)]) -> Vec<c::PJRT_NamedValue> {
    let value = |(name, value): &(&str, Value)| {
        let (r#type, size, int64_value) = match value {
            Value::Str(s) => {
                (named_value::STRING, s.len(), c::PJRT_NamedValue_Union { string_value: s.as_ptr() as *const c_char })
            }
            Value::Int(i) => (named_value::INT64, 1, c::PJRT_NamedValue_Union { int64_value: *i }),
            Value::Ints(l) => {
                (named_value::INT64_LIST, l.len(), c::PJRT_NamedValue_Union { int64_array_value: l.as_ptr() })
            }
            Value::Float(x) => (named_value::FLOAT, 1, c::PJRT_NamedValue_Union { float_value: *x }),
            Value::Bool(b) => (named_value::BOOL, 1, c::PJRT_NamedValue_Union { bool_value: *b as u8 }),
        };
        c::PJRT_NamedValue {
            name: name.as_ptr() as *const c_char,
            name_size: name.len(),
            r#type,
            int64_value,
            value_size: size,
            ..Struct::zeroed()
        }
    };
    options.iter().map(value).collect()
}

/// Reads a plugin's list of named values.
///
/// # Safety
/// `values` and what it points to came from the plugin, in answer to `call`, and are still alive.
pub(crate) unsafe fn from_c(
    call: &'static str,
    values: *const c::PJRT_NamedValue,
    count: usize,
) -> Result<Vec<(String, Value)>> {
    // SAFETY: the caller's promise.
    let values = unsafe { api::list(Slice { call, what: "attributes", at: values, len: count }) }?;
    if let Some(v) = values.iter().find(|v| v.struct_size > c::PJRT_NamedValue::STRUCT_SIZE) {
        return Err(Error::answer(call, format!("attributes of {} bytes, a layout of a newer API", v.struct_size)));
    }
    // SAFETY: the caller's promise.
    values.iter().map(|v| unsafe { one_from_c(call, v) }).collect()
}

/// # Safety
/// As for `from_c`.
unsafe fn one_from_c(call: &'static str, v: &c::PJRT_NamedValue) -> Result<(String, Value)> {
    // SAFETY: the plugin's text, alive by the caller's promise.
    let name = unsafe { api::text(Slice { call, what: "attribute name", at: v.name, len: v.name_size }) }?;
    // SAFETY: reading any member of the union is sound for the bits (none has invalid ones); `type` says which is meant.
    let value = unsafe {
        match v.r#type {
            named_value::STRING => {
                let at = v.int64_value.string_value;
                Value::Str(api::text(Slice { call, what: "attribute text", at, len: v.value_size })?)
            }
            named_value::INT64 => Value::Int(v.int64_value.int64_value),
            named_value::INT64_LIST => {
                let at = v.int64_value.int64_array_value;
                Value::Ints(api::list(Slice { call, what: "attribute list", at, len: v.value_size })?.to_vec())
            }
            named_value::FLOAT => Value::Float(v.int64_value.float_value),
            named_value::BOOL => Value::Bool(v.int64_value.bool_value != 0),
            other => return Err(Error::answer(call, format!("attribute {name:?} has unknown type {other}"))),
        }
    };
    Ok((name, value))
}

macro_rules! buffer_types {
    ($($name:ident $c:literal = $number:literal, $size:literal;)*) => {
        /// Element types of buffers (`PJRT_Buffer_Type`), with the C API's numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum BufferType { $($name = $number,)* }

        impl BufferType {
            /// Every element type.
            pub const ALL: &[BufferType] = &[$(BufferType::$name),*];

            /// Bytes that one element takes on the host; types below eight bits take one byte, a token none.
            pub const fn size(self) -> usize {
                match self { $(BufferType::$name => $size,)* }
            }

            /// The name in the C API, such as `BF16`.
            pub const fn name(self) -> &'static str {
                match self { $(BufferType::$name => $c,)* }
            }

            pub(crate) fn from_c(call: &'static str, number: u32) -> Result<BufferType> {
                match number {
                    $($number => Ok(BufferType::$name),)*
                    other => Err(Error::answer(call, format!("unknown element type {other}"))),
                }
            }
        }
    };
}

buffer_types! {
    Pred "PRED" = 1, 1;
    S8 "S8" = 2, 1;
    S16 "S16" = 3, 2;
    S32 "S32" = 4, 4;
    S64 "S64" = 5, 8;
    U8 "U8" = 6, 1;
    U16 "U16" = 7, 2;
    U32 "U32" = 8, 4;
    U64 "U64" = 9, 8;
    F16 "F16" = 10, 2;
    F32 "F32" = 11, 4;
    F64 "F64" = 12, 8;
    BF16 "BF16" = 13, 2;
    C64 "C64" = 14, 8;
    C128 "C128" = 15, 16;
    F8E5M2 "F8E5M2" = 16, 1;
    F8E4M3FN "F8E4M3FN" = 17, 1;
    F8E4M3B11FNUZ "F8E4M3B11FNUZ" = 18, 1;
    F8E5M2FNUZ "F8E5M2FNUZ" = 19, 1;
    F8E4M3FNUZ "F8E4M3FNUZ" = 20, 1;
    S4 "S4" = 21, 1;
    U4 "U4" = 22, 1;
    Token "TOKEN" = 23, 0;
    S2 "S2" = 24, 1;
    U2 "U2" = 25, 1;
    F8E4M3 "F8E4M3" = 26, 1;
    F8E3M4 "F8E3M4" = 27, 1;
    F8E8M0FNU "F8E8M0FNU" = 28, 1;
    F4E2M1FN "F4E2M1FN" = 29, 1;
}

impl fmt::Display for BufferType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
