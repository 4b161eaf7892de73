//! What a variable holds, as a tree that JSON can carry exactly.
use crate::json::{Value, json};

/// A value without its type. Tensors and arrays of numbers lie beside it, in the file's entries.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    /// The numbers of a vector: the name of an entry.
    Array(String),
    Tensor {
        entry: String,
        requires_grad: bool,
    },
    /// What a module or an optimizer is restored from: names in its `state_dict()`, and entries.
    Module(Vec<(String, String)>),
    Optimizer(Vec<(String, String)>),
}

/// Whole numbers that JSON readers keep exactly.
const EXACT: u128 = 1 << 53;

impl Tree {
    pub(crate) fn json(&self) -> Value {
        match self {
            Tree::Null => Value::Null,
            Tree::Bool(b) => json!(b),
            Tree::Int(n) if n.unsigned_abs() <= EXACT => json!(*n as i64),
            Tree::Int(n) => json!({ "int": n.to_string() }),
            // Shortest text that reads back as the same number; where that looks like a whole number, it says so.
            Tree::Float(v) if v.is_finite() && v.fract() != 0.0 => json!(v),
            Tree::Float(v) => json!({ "float": format!("{v:?}") }),
            Tree::Text(s) => json!(s),
            Tree::List(items) => items.iter().map(Tree::json).collect(),
            Tree::Map(items) => {
                json!({ "map": items.iter().map(|(k, v)| json!([k.json(), v.json()])).collect::<Value>() })
            }
            Tree::Array(entry) => json!({ "array": entry }),
            Tree::Tensor { entry, requires_grad } => json!({ "tensor": entry, "requires_grad": requires_grad }),
            Tree::Module(state) => json!({ "module": state }),
            Tree::Optimizer(state) => json!({ "optimizer": state }),
        }
    }

    pub(crate) fn of(json: &Value) -> Option<Tree> {
        let text = |j: &Value| j.as_str().map(str::to_owned);
        Some(match json {
            Value::Null => Tree::Null,
            Value::Bool(b) => Tree::Bool(*b),
            Value::Number(n) => match n.as_i128() {
                Some(n) => Tree::Int(n),
                None => Tree::Float(n.as_f64()),
            },
            Value::String(s) => Tree::Text(s.clone()),
            Value::Array(items) => Tree::List(items.iter().map(Tree::of).collect::<Option<_>>()?),
            Value::Object(fields) if fields.len() == 2 => Tree::Tensor {
                entry: text(fields.get("tensor")?)?,
                requires_grad: fields.get("requires_grad")?.as_bool()?,
            },
            Value::Object(fields) if fields.len() == 1 => {
                let (tag, value) = fields.iter().next()?;
                match tag.as_str() {
                    "int" => Tree::Int(text(value)?.parse().ok()?),
                    "float" => Tree::Float(text(value)?.parse().ok()?),
                    "array" => Tree::Array(text(value)?),
                    "module" => Tree::Module(pairs(value, text)?),
                    "optimizer" => Tree::Optimizer(pairs(value, text)?),
                    "map" => Tree::Map(pairs(value, Tree::of)?),
                    _ => return None,
                }
            }
            Value::Object(_) => return None,
        })
    }

    /// What the kernel does with it: `module` and `optimizer` go into a variable that is there.
    pub fn kind(&self) -> &'static str {
        match self {
            Tree::Tensor { .. } => "tensor",
            Tree::Module(_) => "module",
            Tree::Optimizer(_) => "optimizer",
            _ => "value",
        }
    }

    /// Every entry that it refers to.
    pub fn entries<'a>(&'a self, out: &mut Vec<&'a str>) {
        match self {
            Tree::Array(entry) | Tree::Tensor { entry, .. } => out.push(entry),
            Tree::Module(state) | Tree::Optimizer(state) => out.extend(state.iter().map(|(_, e)| e.as_str())),
            Tree::List(items) => items.iter().for_each(|t| t.entries(out)),
            Tree::Map(items) => items.iter().for_each(|(k, v)| {
                k.entries(out);
                v.entries(out);
            }),
            _ => {}
        }
    }
}

/// `[[a, b], …]`
pub(crate) fn pairs<T>(json: &Value, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<(T, T)>> {
    let pair = |j: &Value| match j.as_array()?.as_slice() {
        [a, b] => Some((one(a)?, one(b)?)),
        _ => None,
    };
    json.as_array()?.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_survive_json_to_the_last_bit() {
        let pair = |a: &str, b: &str| vec![(a.to_owned(), b.to_owned())];
        let tree = Tree::List(vec![
            Tree::Null,
            Tree::Bool(true),
            Tree::Int(-7),
            Tree::Int(i128::from(u64::MAX)),
            Tree::Int(i128::MIN),
            Tree::Float(0.1 + 0.2),
            Tree::Float(3.0),
            Tree::Float(f64::MIN_POSITIVE / 8.0),
            Tree::Float(1e300),
            Tree::Float(f64::NEG_INFINITY),
            Tree::Text("a\"\n\u{1}é😀".into()),
            Tree::Map(vec![(Tree::Int(1), Tree::Text("x".into()))]),
            Tree::Array("x.0".into()),
            Tree::Tensor { entry: "t".into(), requires_grad: true },
            Tree::Module(pair("fc.weight", "net.fc.weight")),
            Tree::Optimizer(pair("lr", "opt.lr")),
        ]);
        let again = |tree: &Tree| Tree::of(&crate::json::parse(tree.json().to_string()).unwrap());
        assert_eq!(again(&tree), Some(tree));
        let again = |v: f64| match again(&Tree::Float(v)) {
            Some(Tree::Float(v)) => v.to_bits(),
            other => panic!("{other:?}"),
        };
        assert_eq!(again(-0.0), (-0.0f64).to_bits());
        assert!(f64::from_bits(again(f64::NAN)).is_nan());
        // Drawn at random (xorshift): a reader that is off by one in the last place is so for few numbers.
        let mut bits = 0x2545_f491_4f6c_dd1du64;
        for _ in 0..100_000 {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            let v = f64::from_bits(bits);
            assert!(v.is_nan() || again(v) == bits, "{v:e}");
        }
        for other in
            [json!({ "nonsense": 1 }), json!({ "tensor": "t" }), json!({ "int": "1", "float": "1" }), json!({})]
        {
            assert_eq!(Tree::of(&other), None, "{other}");
        }
    }
}
