//! What a variable holds, as a tree that JSON can carry exactly.
use crate::json::{Json, list, string};

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
const EXACT: i128 = 1 << 53;

impl Tree {
    pub fn json(&self) -> String {
        let tagged = |tag: &str, value: String| format!("{{\"{tag}\":{value}}}");
        let pairs = |p: &[(String, String)]| list(p.iter().map(|(n, e)| format!("[{},{}]", string(n), string(e))));
        match self {
            Tree::Null => "null".into(),
            Tree::Bool(b) => b.to_string(),
            Tree::Int(n) if n.unsigned_abs() <= EXACT.unsigned_abs() => n.to_string(),
            Tree::Int(n) => tagged("int", string(&n.to_string())),
            // Shortest text that reads back as the same number; where that looks like a whole number, it says so.
            Tree::Float(v) if v.is_finite() && v.fract() != 0.0 => format!("{v:?}"),
            Tree::Float(v) => tagged("float", string(&format!("{v:?}"))),
            Tree::Text(s) => string(s),
            Tree::List(items) => list(items.iter().map(Tree::json)),
            Tree::Map(items) => tagged("map", list(items.iter().map(|(k, v)| format!("[{},{}]", k.json(), v.json())))),
            Tree::Array(entry) => tagged("array", string(entry)),
            Tree::Tensor { entry, requires_grad } => {
                format!("{{\"tensor\":{},\"requires_grad\":{requires_grad}}}", string(entry))
            }
            Tree::Module(state) => tagged("module", pairs(state)),
            Tree::Optimizer(state) => tagged("optimizer", pairs(state)),
        }
    }

    pub(crate) fn of(json: &Json) -> Option<Tree> {
        let text = |j: &Json| match j {
            Json::Text(s) => Some(s.clone()),
            _ => None,
        };
        let pairs = |j: &Json| -> Option<Vec<(String, String)>> {
            let Json::List(items) = j else { return None };
            let pair = |j: &Json| match j {
                Json::List(p) if p.len() == 2 => Some((text(&p[0])?, text(&p[1])?)),
                _ => None,
            };
            items.iter().map(pair).collect()
        };
        Some(match json {
            Json::Null => Tree::Null,
            Json::Bool(b) => Tree::Bool(*b),
            Json::Number(n) if n.fract() == 0.0 && n.abs() <= EXACT as f64 => Tree::Int(*n as i128),
            Json::Number(n) => Tree::Float(*n),
            Json::Text(s) => Tree::Text(s.clone()),
            Json::List(items) => Tree::List(items.iter().map(Tree::of).collect::<Option<_>>()?),
            Json::Object(fields) => {
                let (tag, value) = fields.first()?;
                match tag.as_str() {
                    "int" => Tree::Int(text(value)?.parse().ok()?),
                    "float" => Tree::Float(text(value)?.parse().ok()?),
                    "array" => Tree::Array(text(value)?),
                    "tensor" => Tree::Tensor { entry: text(value)?, requires_grad: json.flag("requires_grad")? },
                    "module" => Tree::Module(pairs(value)?),
                    "optimizer" => Tree::Optimizer(pairs(value)?),
                    "map" => {
                        let Json::List(items) = value else { return None };
                        let pair = |j: &Json| match j {
                            Json::List(p) if p.len() == 2 => Some((Tree::of(&p[0])?, Tree::of(&p[1])?)),
                            _ => None,
                        };
                        Tree::Map(items.iter().map(pair).collect::<Option<_>>()?)
                    }
                    _ => return None,
                }
            }
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
        assert_eq!(Tree::of(&Json::parse(&tree.json()).unwrap()), Some(tree));
        let again = |v: f64| match Tree::of(&Json::parse(&Tree::Float(v).json()).unwrap()) {
            Some(Tree::Float(v)) => v.to_bits(),
            other => panic!("{other:?}"),
        };
        assert_eq!(again(-0.0), (-0.0f64).to_bits());
        assert!(f64::from_bits(again(f64::NAN)).is_nan());
        assert_eq!(Tree::of(&Json::parse("{\"nonsense\":1}").unwrap()), None);
    }
}
