//! Reading the cases: cases.jsonl and the safetensors files beside it.
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::Path;
use xlazy::prelude::*;

/// A tensor's elements on the host, wide enough to compare.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    Floats(Vec<f64>),
    Ints(Vec<i64>),
}

#[derive(Clone, Debug)]
pub struct Host {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub data: Numbers,
    /// Its elements are pairs, a complex number each.
    pub pairs: bool,
}

impl Host {
    /// What a tensor of ours holds; runs what it needs.
    pub fn of(t: &Tensor) -> Host {
        if t.dtype().is_complex() {
            // pairs, as the files hold them
            return Host { pairs: true, ..Host::of(&t.view_as_real()) };
        }
        let floats = |v: Vec<f32>| Numbers::Floats(v.into_iter().map(f64::from).collect());
        let data = match t.dtype() {
            F64 => Numbers::Floats(t.to_vec()),
            F32 | F16 | BF16 => floats(t.to_vec()),
            _ => Numbers::Ints(t.long().to_vec()),
        };
        Host { dtype: t.dtype(), shape: t.shape().to_vec(), data, pairs: false }
    }

    fn upload(&self) -> Tensor {
        match &self.data {
            Numbers::Floats(v) if self.dtype == F64 => Tensor::from_slice(v, self.shape.as_slice()),
            Numbers::Floats(v) => {
                Tensor::from_vec(v.iter().map(|&x| x as f32).collect(), self.shape.as_slice()).to(self.dtype)
            }
            Numbers::Ints(v) => match self.dtype {
                Bool => Tensor::from_vec(v.iter().map(|&x| x != 0).collect(), self.shape.as_slice()),
                dtype => Tensor::from_slice(v, self.shape.as_slice()).to(dtype),
            },
        }
    }
}

/// An argument of a call.
#[derive(Clone)]
pub enum Arg {
    Tensor(Tensor),
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    None,
    List(Vec<Arg>),
    Slice([Option<i64>; 3]),
    Ellipsis,
    DType(DType),
}

pub struct Case {
    /// Op and variant: `max.reduction_no_dim`.
    pub name: String,
    /// The input, then the positional arguments.
    pub args: Vec<Arg>,
    pub kwargs: HashMap<String, Arg>,
    pub outputs: Vec<Host>,
    /// Which outputs have a weight: those that gradients flow to.
    pub weighted: Vec<bool>,
    /// 1: what comes first, 2: what then.
    pub tier: usize,
    pub weights: Vec<Host>,
    /// One for each leaf; `None` where the output does not depend on it.
    pub grads: Option<Vec<Option<Host>>>,
    /// The inputs that require gradients, in order of appearance.
    pub leaves: Vec<Tensor>,
}

fn dtype(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|d| d.torch_name() == name)
}

/// One safetensors file: a header in JSON, then the bytes.
struct File {
    header: Json,
    bytes: Vec<u8>,
}

impl File {
    fn open(path: &Path) -> File {
        let all = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let n = u64::from_le_bytes(all[..8].try_into().unwrap()) as usize;
        File { header: serde_json::from_slice(&all[8..8 + n]).unwrap(), bytes: all[8 + n..].to_vec() }
    }

    fn tensor(&self, key: &str) -> Option<Host> {
        let entry = &self.header[key];
        let edge = |i: usize| entry["data_offsets"][i].as_u64().unwrap() as usize;
        let bytes = &self.bytes[edge(0)..edge(1)];
        let shape = entry["shape"].as_array()?.iter().map(|d| d.as_u64().unwrap() as usize).collect();
        macro_rules! read {
            ($t:ty as $wide:ty) => {
                bytes
                    .chunks_exact(size_of::<$t>())
                    .map(|b| <$t>::from_le_bytes(b.try_into().unwrap()) as $wide)
                    .collect()
            };
        }
        let (dtype, data) = match entry["dtype"].as_str()? {
            "F32" => (F32, Numbers::Floats(read!(f32 as f64))),
            "F64" => (F64, Numbers::Floats(read!(f64 as f64))),
            "F16" => (F16, Numbers::Floats(halves(bytes, F16))),
            "BF16" => (BF16, Numbers::Floats(halves(bytes, BF16))),
            "I64" => (I64, Numbers::Ints(read!(i64 as i64))),
            "I32" => (I32, Numbers::Ints(read!(i32 as i64))),
            "U8" => (U8, Numbers::Ints(read!(u8 as i64))),
            "I8" => (I8, Numbers::Ints(read!(i8 as i64))),
            "I16" => (I16, Numbers::Ints(read!(i16 as i64))),
            "BOOL" => (Bool, Numbers::Ints(read!(u8 as i64))),
            _ => return None,
        };
        Some(Host { dtype, shape, data, pairs: false })
    }
}

/// Numbers of two bytes, as their values: a sign, an exponent, a fraction.
fn halves(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let (fraction, bias) = if dtype == F16 { (10, 15) } else { (7, 127) };
    let one = |b: &[u8]| {
        let bits = u16::from_le_bytes(b.try_into().unwrap());
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let (exponent, rest) = ((bits & 0x7fff) >> fraction, f64::from(bits & ((1 << fraction) - 1)));
        let unit = 2f64.powi(-fraction);
        sign * match i32::from(exponent) {
            0 => rest * unit * 2f64.powi(1 - bias),
            e if e == 2 * bias + 1 => {
                if rest == 0.0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            e => (1.0 + rest * unit) * 2f64.powi(e - bias),
        }
    };
    bytes.chunks_exact(2).map(one).collect()
}

/// All cases, grouped as in the file; `None` in place of a case with a dtype that xlazy does not have.
pub fn read(folder: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(folder.join("cases.jsonl")).expect("the cases are part of the repository");
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

pub fn name(case: &Json) -> String {
    match (case["op"].as_str().unwrap(), case["variant"].as_str().unwrap()) {
        (op, "") => op.to_owned(),
        (op, variant) => format!("{op}.{variant}"),
    }
}

/// Files stay open between cases, which come in order.
#[derive(Default)]
pub struct Reader {
    open: Option<(String, File)>,
}

impl Reader {
    /// Uploads a case's tensors. `None` where it needs a dtype that xlazy does not have.
    pub fn case(&mut self, folder: &Path, case: &Json) -> Option<Case> {
        let file = case["file"].as_str().unwrap();
        if self.open.as_ref().is_none_or(|(name, _)| name != file) {
            self.open = Some((file.to_owned(), File::open(&folder.join(file))));
        }
        let file = &self.open.as_ref().unwrap().1;
        let mut leaves = Vec::new();
        let narrow = !matches!(case["dtype"].as_str(), Some("float64" | "complex128"));
        let mut args = vec![arg(file, &case["input"], &mut leaves, narrow)?];
        for a in case["args"].as_array().unwrap() {
            args.push(arg(file, a, &mut leaves, narrow)?);
        }
        // gradients are listed in the order in which the case was written, which the numbers of its tensors tell
        let mut named: Vec<(&String, &Json)> = case["kwargs"].as_object().unwrap().iter().collect();
        named.sort_by_key(|(_, a)| number(a));
        let mut kwargs = HashMap::new();
        for (name, a) in named {
            kwargs.insert(name.clone(), arg(file, a, &mut leaves, narrow)?);
        }
        let mut outputs = Vec::new();
        // of what is refused there is none
        if !case["error"].is_string() {
            flatten(file, &case["output"], &mut outputs)?;
        }
        let hosts = |v: &Json| {
            let list = v.as_array().cloned().unwrap_or_default();
            list.iter().map(|t| t["tensor"].as_str().and_then(|k| file.tensor(k))).collect::<Vec<_>>()
        };
        let grads = case["grads"].is_array().then(|| hosts(&case["grads"]));
        Some(Case {
            name: name(case),
            args,
            kwargs,
            outputs,
            weighted: flags(&case["output"]),
            tier: case["tier"].as_u64().unwrap_or(1) as usize,
            weights: hosts(&case["weights"]).into_iter().flatten().collect(),
            grads,
            leaves,
        })
    }
}

// The n of a tensor's key `c0.n`.
fn number(a: &Json) -> u32 {
    a["tensor"].as_str().and_then(|k| k.rsplit('.').next()?.parse().ok()).unwrap_or(0)
}

// The tensors and numbers of an output, however nested.
fn flatten(file: &File, v: &Json, out: &mut Vec<Host>) -> Option<()> {
    let scalar = |dtype, data| Host { dtype, shape: vec![], data, pairs: false };
    match v {
        Json::Array(items) => items.iter().try_for_each(|v| flatten(file, v, out))?,
        Json::Bool(b) => out.push(scalar(Bool, Numbers::Ints(vec![*b as i64]))),
        Json::Number(n) => out.push(scalar(I64, Numbers::Ints(vec![n.as_i64()?]))),
        Json::Object(o) => {
            if let Some(key) = o.get("tensor") {
                out.push(file.tensor(key.as_str()?)?);
            } else if let Some(items) = o.get("tuple") {
                flatten(file, items, out)?;
            } else if let Some(x) = o.get("float") {
                out.push(scalar(F64, Numbers::Floats(vec![float(x)])));
            } else {
                return None;
            }
        }
        _ => return None,
    }
    Some(())
}

// For each tensor or number of an output, whether gradients flow to it.
fn flags(v: &Json) -> Vec<bool> {
    match v {
        Json::Array(items) => items.iter().flat_map(flags).collect(),
        Json::Object(o) if o.contains_key("tuple") => flags(&o["tuple"]),
        v => vec![v["requires_grad"] == true],
    }
}

fn float(v: &Json) -> f64 {
    v.as_f64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

fn arg(file: &File, v: &Json, leaves: &mut Vec<Tensor>, narrow: bool) -> Option<Arg> {
    Some(match v {
        Json::Null => Arg::None,
        Json::Bool(b) => Arg::Bool(*b),
        Json::Number(n) => n.as_i64().map_or_else(|| Arg::Float(n.as_f64().unwrap()), Arg::Int),
        Json::String(s) => Arg::Str(s.clone()),
        Json::Array(items) => Arg::List(items.iter().map(|v| arg(file, v, leaves, narrow)).collect::<Option<_>>()?),
        Json::Object(o) => {
            if let Some(key) = o.get("tensor") {
                let kind = dtype(o["dtype"].as_str()?)?;
                let t = file.tensor(key.as_str()?)?.upload();
                let t = if kind.is_complex() { t.view_as_complex() } else { t };
                if o.get("requires_grad").is_some_and(|r| r == true) {
                    t.requires_grad_(true);
                    leaves.push(t.clone());
                }
                Arg::Tensor(t)
            } else if let Some(items) = o.get("tuple") {
                Arg::List(items.as_array()?.iter().map(|v| arg(file, v, leaves, narrow)).collect::<Option<_>>()?)
            } else if let Some(x) = o.get("float") {
                Arg::Float(float(x))
            } else if let Some(s) = o.get("slice") {
                Arg::Slice([0, 1, 2].map(|i| s[i].as_i64()))
            } else if let Some(z) = o.get("complex") {
                // a number that xlazy takes as a tensor without dimensions, of the case's width
                let parts = [z[0].as_f64()?, z[1].as_f64()?];
                let number = Tensor::from_slice(&parts, [2]).view_as_complex();
                Arg::Tensor(if narrow { number.to(C64) } else { number })
            } else if o.contains_key("ellipsis") {
                Arg::Ellipsis
            } else {
                Arg::DType(dtype(o.get("dtype")?.as_str()?)?)
            }
        }
    })
}

/// How the mapping reads its arguments: by position (0 is the input) or by name, whichever the case uses.
impl Case {
    pub fn get(&self, i: usize, name: &str) -> Option<&Arg> {
        self.kwargs.get(name).or_else(|| self.args.get(i)).filter(|a| !matches!(a, Arg::None))
    }

    pub fn t(&self, i: usize) -> &Tensor {
        self.tensor(i, "").unwrap_or_else(|| panic!("argument {i} is no tensor"))
    }

    pub fn tensor(&self, i: usize, name: &str) -> Option<&Tensor> {
        match self.get(i, name) {
            Some(Arg::Tensor(t)) => Some(t),
            _ => None,
        }
    }

    /// A tensor or a number, as an operand.
    pub fn operand(&self, i: usize, name: &str) -> xlazy::Arg<'_> {
        match self.get(i, name) {
            Some(Arg::Tensor(t)) => t.into(),
            Some(Arg::Int(v)) => (*v).into(),
            Some(Arg::Float(v)) => (*v).into(),
            Some(Arg::Bool(v)) => (*v).into(),
            _ => panic!("argument {i} {name} is no operand"),
        }
    }

    pub fn scalar(&self, i: usize, name: &str) -> xlazy::Scalar {
        match self.get(i, name) {
            Some(Arg::Int(v)) => (*v).into(),
            Some(Arg::Float(v)) => (*v).into(),
            Some(Arg::Bool(v)) => (*v).into(),
            _ => panic!("argument {i} {name} is no number"),
        }
    }

    pub fn int(&self, i: usize, name: &str, default: i64) -> i64 {
        match self.get(i, name) {
            Some(Arg::Int(v)) => *v,
            Some(Arg::Bool(v)) => *v as i64,
            Some(Arg::Float(v)) => *v as i64,
            // Which number another one has, `item` leaves to whoever calls it.
            Some(Arg::Tensor(t)) if t.dim() == 0 && !t.dtype().is_float() && !t.dtype().is_complex() => t.item_i64(),
            Some(Arg::Tensor(t)) => panic!("{}: a tensor {} {} is no integer", self.name, t.dtype(), t.shape()),
            Some(Arg::List(l)) if l.len() == 1 => Case::of_int(&l[0]),
            _ => default,
        }
    }

    /// A number of a type that has none below 0: the compiler refuses those.
    pub fn count(&self, i: usize, name: &str, default: i64) -> usize {
        let n = self.int(i, name, default);
        usize::try_from(n).unwrap_or_else(|_| panic!("{}: {n} is no usize", self.name))
    }

    fn of_int(a: &Arg) -> i64 {
        match a {
            Arg::Int(v) => *v,
            Arg::Bool(v) => *v as i64,
            Arg::None => -1,
            _ => panic!("no integer"),
        }
    }

    pub fn float(&self, i: usize, name: &str, default: f64) -> f64 {
        match self.get(i, name) {
            Some(Arg::Int(v)) => *v as f64,
            Some(Arg::Float(v)) => *v,
            Some(Arg::Tensor(t)) => t.item(),
            _ => default,
        }
    }

    pub fn flag(&self, i: usize, name: &str, default: bool) -> bool {
        match self.get(i, name) {
            Some(Arg::Bool(v)) => *v,
            Some(Arg::Int(v)) => *v != 0,
            _ => default,
        }
    }

    pub fn str(&self, i: usize, name: &str, default: &str) -> String {
        match self.get(i, name) {
            Some(Arg::Str(s)) => s.clone(),
            _ => default.to_owned(),
        }
    }

    pub fn dtype(&self) -> Option<DType> {
        match self.kwargs.get("dtype") {
            Some(Arg::DType(d)) => Some(*d),
            _ => None,
        }
    }

    /// One integer or several; empty where the argument is missing. `None` inside a list counts as -1.
    pub fn dims(&self, i: usize, name: &str) -> Vec<i64> {
        match self.get(i, name) {
            Some(Arg::List(l)) => l.iter().map(Case::of_int).collect(),
            Some(a @ (Arg::Int(_) | Arg::Bool(_))) => vec![Case::of_int(a)],
            _ => vec![],
        }
    }

    pub fn dims_or(&self, i: usize, name: &str, default: i64) -> Vec<i64> {
        let dims = self.dims(i, name);
        if dims.is_empty() { vec![default] } else { dims }
    }

    /// All integers from argument `i` on, given one by one or as a list.
    pub fn rest(&self, i: usize) -> Vec<i64> {
        match self.args.get(i) {
            Some(Arg::List(l)) => l.iter().map(Case::of_int).collect(),
            Some(_) => self.args[i..].iter().map(Case::of_int).collect(),
            None => vec![],
        }
    }

    pub fn tensors(&self, i: usize) -> Vec<&Tensor> {
        match &self.args[i] {
            Arg::List(l) => l.iter().map(|a| if let Arg::Tensor(t) = a { t } else { panic!("no tensor") }).collect(),
            Arg::Tensor(t) => vec![t],
            _ => panic!("no tensors"),
        }
    }
}
