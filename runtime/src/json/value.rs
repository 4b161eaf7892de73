//! A value, what becomes one, and `json!`.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Map),
}

/// By their keys.
pub type Map = BTreeMap<String, Value>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of 64 bits, with a sign or without.
    Whole(i128),
    /// Finite.
    Float(f64),
}

impl Number {
    pub fn as_u64(self) -> Option<u64> {
        self.as_i128().and_then(|n| n.try_into().ok())
    }

    pub fn as_i128(self) -> Option<i128> {
        match self {
            Number::Whole(n) => Some(n),
            Number::Float(_) => None,
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Float(v) => v,
        }
    }
}

impl Value {
    /// What `json!` fills.
    pub fn none() -> Vec<Value> {
        Vec::new()
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    pub fn as_u64(&self) -> Option<u64> {
        self.number().and_then(Number::as_u64)
    }

    pub fn as_i64(&self) -> Option<i64> {
        self.number().and_then(Number::as_i128).and_then(|n| n.try_into().ok())
    }

    pub fn as_f64(&self) -> Option<f64> {
        self.number().map(Number::as_f64)
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The value, in whose place is null now.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    fn number(&self) -> Option<Number> {
        match self {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }
}

static NULL: Value = Value::Null;

/// Null where there is none.
impl Index<&str> for Value {
    type Output = Value;
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }
}

/// Null where there is none.
impl Index<usize> for Value {
    type Output = Value;
    fn index(&self, at: usize) -> &Value {
        self.as_array().and_then(|items| items.get(at)).unwrap_or(&NULL)
    }
}

/// A field that was not there is null. What is no object becomes one.
impl IndexMut<&str> for Value {
    fn index_mut(&mut self, key: &str) -> &mut Value {
        if !matches!(self, Value::Object(_)) {
            *self = Value::Object(Map::new());
        }
        let Value::Object(fields) = self else { unreachable!("it has become one") };
        fields.entry(key.to_owned()).or_default()
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Value {
        Value::Array(items.into_iter().collect())
    }
}

impl FromIterator<(String, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Value {
        Value::Object(fields.into_iter().collect())
    }
}

/// What is a value of JSON. A number that JSON lacks is null.
pub trait Json {
    fn to_json(&self) -> Value;
}

impl Json for Value {
    fn to_json(&self) -> Value {
        self.clone()
    }
}

impl Json for str {
    fn to_json(&self) -> Value {
        Value::String(self.to_owned())
    }
}

impl<T: Json> Json for [T] {
    fn to_json(&self) -> Value {
        self.iter().map(T::to_json).collect()
    }
}

impl<T: Json> Json for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }
}

impl<T: Json> Json for BTreeMap<String, T> {
    fn to_json(&self) -> Value {
        self.iter().map(|(key, value)| (key.clone(), value.to_json())).collect()
    }
}

impl<A: Json, B: Json> Json for (A, B) {
    fn to_json(&self) -> Value {
        [self.0.to_json(), self.1.to_json()].into_iter().collect()
    }
}

impl<T: Json + ?Sized> Json for &T {
    fn to_json(&self) -> Value {
        (**self).to_json()
    }
}

impl<T: Json, const N: usize> Json for [T; N] {
    fn to_json(&self) -> Value {
        self[..].to_json()
    }
}

macro_rules! as_what_it_holds {
    ($($t:ty),*) => {$(
        impl Json for $t {
            fn to_json(&self) -> Value {
                (**self).to_json()
            }
        }
    )*};
}
as_what_it_holds!(String, Arc<str>, Cow<'_, str>);

impl<T: Json> Json for Vec<T> {
    fn to_json(&self) -> Value {
        self[..].to_json()
    }
}

macro_rules! plain {
    ($($t:ty: $value:expr;)*) => {$(
        impl Json for $t {
            fn to_json(&self) -> Value {
                let value: fn($t) -> Value = $value;
                value(*self)
            }
        }
        impl From<$t> for Value {
            fn from(value: $t) -> Value {
                value.to_json()
            }
        }
    )*};
}
plain! {
    bool: Value::Bool;
    i8: whole; i16: whole; i32: whole; i64: whole; u8: whole; u16: whole; u32: whole; u64: whole;
    isize: |n| whole(n as i64); usize: |n| whole(n as u64);
    f32: |v| f64::from(v).to_json();
    f64: |v| if v.is_finite() { Value::Number(Number::Float(v)) } else { Value::Null };
}

fn whole(n: impl Into<i128>) -> Value {
    Value::Number(Number::Whole(n.into()))
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        text.to_json()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, T::into)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text)
    }
}

/// `null`, lists and objects as JSON has them, and in them whatever is [`Json`].
macro_rules! json {
    (@list $list:ident) => {};
    (@list $list:ident null $(, $($rest:tt)*)?) => {
        $list.push($crate::json::Value::Null); $crate::json::json!(@list $list $($($rest)*)?);
    };
    (@list $list:ident [$($value:tt)*] $(, $($rest:tt)*)?) => {
        $list.push($crate::json::json!([$($value)*])); $crate::json::json!(@list $list $($($rest)*)?);
    };
    (@list $list:ident {$($value:tt)*} $(, $($rest:tt)*)?) => {
        $list.push($crate::json::json!({$($value)*})); $crate::json::json!(@list $list $($($rest)*)?);
    };
    (@list $list:ident $value:expr $(, $($rest:tt)*)?) => {
        $list.push($crate::json::Json::to_json(&$value)); $crate::json::json!(@list $list $($($rest)*)?);
    };
    (@object $object:ident) => {};
    (@object $object:ident $key:literal : null $(, $($rest:tt)*)?) => {
        $object.insert($key.to_owned(), $crate::json::Value::Null); $crate::json::json!(@object $object $($($rest)*)?);
    };
    (@object $object:ident $key:literal : [$($value:tt)*] $(, $($rest:tt)*)?) => {
        $object.insert($key.to_owned(), $crate::json::json!([$($value)*])); $crate::json::json!(@object $object $($($rest)*)?);
    };
    (@object $object:ident $key:literal : {$($value:tt)*} $(, $($rest:tt)*)?) => {
        $object.insert($key.to_owned(), $crate::json::json!({$($value)*})); $crate::json::json!(@object $object $($($rest)*)?);
    };
    (@object $object:ident $key:literal : $value:expr $(, $($rest:tt)*)?) => {
        $object.insert($key.to_owned(), $crate::json::Json::to_json(&$value)); $crate::json::json!(@object $object $($($rest)*)?);
    };
    (null) => { $crate::json::Value::Null };
    ([$($values:tt)*]) => {{
        #[allow(unused_mut)]
        let mut list = $crate::json::Value::none();
        $crate::json::json!(@list list $($values)*);
        $crate::json::Value::Array(list)
    }};
    ({$($fields:tt)*}) => {{
        #[allow(unused_mut)]
        let mut object = $crate::json::Map::new();
        $crate::json::json!(@object object $($fields)*);
        $crate::json::Value::Object(object)
    }};
    ($value:expr) => { $crate::json::Json::to_json(&$value) };
}
pub(crate) use json;
