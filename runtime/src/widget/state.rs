//! What a widget's front end and its code share: JSON with bytes in it. On the wire the bytes go beside the JSON, each with the path to
//! its place (`buffer_paths` of the Jupyter widget messaging protocol).
use crate::Tensor;
use crate::json::{Map, Value};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::collections::BTreeMap;

/// A value of a widget's state: numbers, texts, lists and maps of them, and bytes, which the front end sees as a `DataView`. What
/// [`Widget::set`](super::Widget::set) takes becomes one.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    #[doc(hidden)]
    Plain(Value),
    /// Binary content.
    Bytes(Vec<u8>),
    List(Vec<State>),
    Map(BTreeMap<String, State>),
}

/// JSON, the paths of the bytes that were taken out of it, and the bytes.
#[derive(Debug, Default, PartialEq)]
pub struct Split {
    pub json: Value,
    pub paths: Vec<Value>,
    pub buffers: Vec<Vec<u8>>,
}

impl Split {
    pub fn base64(&self) -> Vec<String> {
        self.buffers.iter().map(|b| BASE64_STANDARD.encode(b)).collect()
    }
}

/// Takes the bytes out: of a map with their key, of a list with a null in their place.
pub fn split(state: &BTreeMap<String, State>) -> Split {
    let mut out = Split::default();
    out.json = map(state, &mut Vec::new(), &mut out);
    out
}

fn map(entries: &BTreeMap<String, State>, path: &mut Vec<Value>, out: &mut Split) -> Value {
    let mut json = Map::new();
    for (key, value) in entries {
        path.push(key.clone().into());
        if let Some(value) = one(value, path, out) {
            json.insert(key.clone(), value);
        }
        path.pop();
    }
    Value::Object(json)
}

fn one(state: &State, path: &mut Vec<Value>, out: &mut Split) -> Option<Value> {
    Some(match state {
        State::Plain(value) => value.clone(),
        State::Map(entries) => map(entries, path, out),
        State::List(items) => {
            let item = |(i, item): (usize, &State)| {
                path.push(i.into());
                let value = one(item, path, out).unwrap_or_default();
                path.pop();
                value
            };
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        State::Bytes(bytes) => {
            out.paths.push(Value::Array(path.clone()));
            out.buffers.push(bytes.clone());
            return None;
        }
    })
}

/// Puts the bytes back; a path that leads nowhere, or text that is no base64, is left out.
pub fn join(state: &Map, paths: &[Value], buffers: &[Value]) -> BTreeMap<String, State> {
    let mut whole: BTreeMap<String, State> = state.iter().map(|(k, v)| (k.clone(), State::from(v.clone()))).collect();
    for (path, buffer) in paths.iter().zip(buffers) {
        let bytes = buffer.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
        let (Some(path), Some(bytes)) = (path.as_array(), bytes) else { continue };
        let Some((Value::String(first), rest)) = path.split_first() else { continue };
        put(whole.entry(first.clone()).or_insert(State::Plain(Value::Null)), rest, bytes);
    }
    whole
}

fn put(at: &mut State, path: &[Value], bytes: Vec<u8>) {
    let Some((step, rest)) = path.split_first() else {
        *at = State::Bytes(bytes);
        return;
    };
    let inner = match (at, step) {
        (State::Map(entries), Value::String(key)) => {
            Some(entries.entry(key.clone()).or_insert(State::Plain(Value::Null)))
        }
        (State::List(items), Value::Number(i)) => i.as_u64().and_then(|i| items.get_mut(i as usize)),
        _ => None,
    };
    if let Some(inner) = inner {
        put(inner, rest, bytes);
    }
}

impl From<Value> for State {
    fn from(value: Value) -> State {
        match value {
            Value::Array(items) => State::List(items.into_iter().map(State::from).collect()),
            Value::Object(entries) => State::Map(entries.into_iter().map(|(k, v)| (k, State::from(v))).collect()),
            plain => State::Plain(plain),
        }
    }
}

macro_rules! plain {
    ($($t:ty)*) => {$(
        impl From<$t> for State {
            fn from(value: $t) -> State {
                State::Plain(value.into())
            }
        }
    )*};
}
plain!(bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 &str String);

impl<T: Into<State>> From<Option<T>> for State {
    fn from(value: Option<T>) -> State {
        value.map_or(State::Plain(Value::Null), T::into)
    }
}

impl<T: Into<State>> From<Vec<T>> for State {
    fn from(items: Vec<T>) -> State {
        State::List(items.into_iter().map(T::into).collect())
    }
}

impl<T: Into<State> + Clone> From<&[T]> for State {
    fn from(items: &[T]) -> State {
        items.to_vec().into()
    }
}

impl<T: Into<State>, const N: usize> From<[T; N]> for State {
    fn from(items: [T; N]) -> State {
        State::List(items.into_iter().map(T::into).collect())
    }
}

impl<K: Into<String>, T: Into<State>> From<BTreeMap<K, T>> for State {
    fn from(entries: BTreeMap<K, T>) -> State {
        State::Map(entries.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}

/// A tensor is read, and becomes `{shape, dtype, data}`, its elements in f32 as a `DataView` in row-major, little-endian order.
impl From<&Tensor> for State {
    #[track_caller]
    fn from(t: &Tensor) -> State {
        let data = t.to_vec::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect();
        State::Map(BTreeMap::from([
            ("shape".to_owned(), t.shape().iter().map(|&n| n as u64).collect::<Vec<_>>().into()),
            ("dtype".to_owned(), "float32".into()),
            ("data".to_owned(), State::Bytes(data)),
        ]))
    }
}

/// A type that a value of a widget's state may be read as.
pub trait FromState: Sized {
    /// The value, where it is of this type.
    fn from_state(state: &State) -> Option<Self>;
}

impl FromState for State {
    fn from_state(state: &State) -> Option<State> {
        Some(state.clone())
    }
}

macro_rules! read {
    ($($t:ty: $value:ident => $read:expr,)*) => {$(
        impl FromState for $t {
            fn from_state(state: &State) -> Option<$t> {
                let State::Plain($value) = state else { return None };
                $read
            }
        }
    )*};
}
/// JavaScript knows no whole numbers apart from others.
fn whole<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    let whole = value.as_i64().or_else(|| value.as_f64().filter(|x| x.fract() == 0.0).map(|x| x as i64));
    T::try_from(whole?).ok()
}
read! {
    bool: v => v.as_bool(),
    f64: v => v.as_f64(),
    f32: v => v.as_f64().map(|x| x as f32),
    i32: v => whole(v),
    i64: v => whole(v),
    u8: v => whole(v),
    u32: v => whole(v),
    u64: v => whole(v),
    usize: v => whole(v),
    String: v => v.as_str().map(str::to_owned),
}

impl<T: FromState> FromState for Vec<T> {
    fn from_state(state: &State) -> Option<Vec<T>> {
        match state {
            State::List(items) => items.iter().map(T::from_state).collect(),
            _ => None,
        }
    }
}

impl<T: FromState> FromState for Option<T> {
    fn from_state(state: &State) -> Option<Option<T>> {
        match state {
            State::Plain(Value::Null) => Some(None),
            some => T::from_state(some).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn state(entries: &[(&str, State)]) -> BTreeMap<String, State> {
        entries.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()
    }

    #[test]
    fn bytes_go_beside_the_json_and_come_back() {
        let bytes = || State::Bytes(b"PNGDATA".to_vec());
        let inner = BTreeMap::from([("bytes".to_owned(), bytes())]);
        let whole = state(&[
            ("img", State::Map(inner)),
            ("list", State::List(vec![1.into(), bytes()])),
            ("raw", bytes()),
            ("shape", [1, 1].into()),
        ]);
        let out = split(&whole);
        assert_eq!(out.json, json!({"img": {}, "list": [1, null], "shape": [1, 1]}));
        assert_eq!(json!(out.paths), json!([["img", "bytes"], ["list", 1], ["raw"]]));
        assert_eq!(out.base64(), ["UE5HREFUQQ=="; 3]);
        let buffers: Vec<Value> = out.base64().into_iter().map(Value::from).collect();
        assert_eq!(join(out.json.as_object().unwrap(), &out.paths, &buffers), whole);
    }

    #[test]
    fn paths_that_lead_nowhere_change_nothing() {
        let json = json!({"a": 1, "list": [1]});
        let paths = [json!(["a", "b"]), json!(["list", 5]), json!([]), json!("a"), json!([7]), json!(["a"])];
        let buffers = ["AA==", "AA==", "AA==", "AA==", "AA==", "no base64!"].map(Value::from);
        let joined = join(json.as_object().unwrap(), &paths, &buffers);
        assert_eq!(joined, state(&[("a", 1.into()), ("list", [1].into())]));
    }

    #[test]
    fn numbers_of_a_front_end_are_read_as_what_is_asked_for() {
        let two = State::from(2.0);
        assert_eq!((usize::from_state(&two), f64::from_state(&two)), (Some(2), Some(2.0)));
        assert_eq!((i32::from_state(&2.5.into()), u8::from_state(&300.into())), (None, None));
        assert_eq!(Vec::<f32>::from_state(&[1, 2].into()), Some(vec![1.0, 2.0]));
        assert_eq!(Option::<String>::from_state(&Option::<i32>::None.into()), Some(None));
        assert_eq!(bool::from_state(&"yes".into()), None);
    }
}
