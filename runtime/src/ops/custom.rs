//! Ops that the table has not: of StableHLO that users write, and calls of what a platform has registered by name.
use crate::tensor::{Arg, Entry, Grad, Tensor, refuse, result, try_trace};
use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use xlazy_core::emit::mlir_type;
use xlazy_core::ir::Role::Mode;
use xlazy_core::ir::{Attr, Kind, attr};
use xlazy_core::run::try_compile;
use xlazy_core::ty::{DType, Dims, Shape, Type};

// The attribute is the op's name with a hash of its text, which stands for it in keys.
static CUSTOM_OP: Entry = Entry::new(
    "custom_op",
    |s| {
        let op = known(&s.attrs[0]);
        let types = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        match s.inputs.iter().copied().eq(&op.takes) {
            true => Ok(op.gives[0].clone()),
            false => Err(format!("the function of `{}` takes ({})", op.name, types(&op.takes))),
        }
    },
    |l| {
        let (op, inputs) = (known(&l.attrs[0]), l.inputs.to_vec());
        l.function(&op.symbol, &op.text);
        l.call(&op.symbol, &inputs, &op.gives).swap_remove(0)
    },
)
.kind(Kind::Control)
.several()
.attrs(&[attr("op", Mode)])
.grad(|g| {
    let op = known(&g.attrs[0]);
    let Some(backward) = &op.backward else {
        let why = format!(
            "`{}` has no gradient: give it one with `register_autograd`, or `.detach()` its operands to take it for a \
             constant",
            op.name
        );
        refuse("custom_op", &[], why)
    };
    backward_of(&op, backward, g)
});

pub(super) static OPS: &[&Entry] = &[&CUSTOM_OP];

type Backward = dyn Fn(&[Tensor], &[Tensor], &[Option<Tensor>]) -> Vec<Option<Tensor>> + Send + Sync;

/// What is known of one text.
struct Custom {
    name: String,
    /// Its functions, under names that no other text has.
    text: String,
    /// The first of them.
    symbol: String,
    takes: Vec<Type>,
    gives: Vec<Type>,
    backward: Option<Arc<Backward>>,
}

/// What was called, by the attribute: nodes refer to it.
static CALLED: LazyLock<Mutex<HashMap<Box<str>, Arc<Custom>>>> = LazyLock::new(Mutex::default);

fn known(attr: &Attr) -> Arc<Custom> {
    let Attr::Name(name) = attr else { unreachable!("no name: {attr}") };
    let all = CALLED.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(name).expect("known since it was called").clone()
}

/// The name that nodes refer to an op by: of one text there may be several, of which each has a gradient of its own.
fn named(text: String, op: &Arc<Custom>) -> Box<str> {
    let mut all = CALLED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |known: &Arc<Custom>| match (&known.backward, &op.backward) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let mut name: Box<str> = text.clone().into();
    let mut others = 0;
    while all.get(&name).is_some_and(|known| !is_same(known)) {
        others += 1;
        name = format!("{text}/{others}").into();
    }
    all.entry(name.clone()).or_insert_with(|| op.clone());
    name
}

fn backward_of(op: &Custom, backward: &Arc<Backward>, g: &Grad) -> Vec<Option<Tensor>> {
    let outputs: Vec<Tensor> =
        (op.gives.iter().enumerate()).map(|(k, ty)| result(&g.output, k, ty.clone().into())).collect();
    let dy = |k: usize| g.dys.iter().find(|(i, _)| *i == k).map(|(_, dy)| dy.clone());
    let found = backward(&g.inputs, &outputs, &(0..outputs.len()).map(dy).collect::<Vec<_>>());
    if found.len() != g.inputs.len() {
        let why = format!(
            "the gradient of `{}` gives {} tensors, and the op takes {}: one for each, `None` where none flows",
            op.name,
            found.len(),
            g.inputs.len()
        );
        refuse("custom_op", &[], why);
    }
    found
}

/// Whether XLA takes the text, asked once of each.
fn compiles(hash: u128, op: &Custom) -> xlazy_core::Result<()> {
    static TAKEN: LazyLock<Mutex<HashSet<u128>>> = LazyLock::new(Mutex::default);
    if TAKEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash) {
        return Ok(());
    }
    let list = |all: Vec<String>| all.join(", ");
    let types = |all: &[Type]| list(all.iter().map(mlir_type).collect());
    let (takes, gives, n) = (types(&op.takes), types(&op.gives), op.gives.len());
    let arguments = list((0..).zip(&op.takes).map(|(k, t)| format!("%a{k}: {}", mlir_type(t))).collect());
    let given = list((0..op.takes.len()).map(|k| format!("%a{k}")).collect());
    let results = list((0..n).map(|k| format!("%r#{k}")).collect());
    try_compile(&format!(
        "module @op {{\n  func.func @main({arguments}) -> ({gives}) {{\n    %r:{n} = call @{}({given}) : ({takes}) -> ({gives})\n    \
         return {results} : {gives}\n  }}\n  {}\n}}\n",
        op.symbol, op.text
    ))?;
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
    Ok(())
}

type Write = dyn Fn(&[String]) -> String + Send + Sync;

/// An op of StableHLO text; made by [`custom_op`].
#[derive(Clone)]
pub struct CustomOp {
    name: String,
    write: Arc<Write>,
    backward: Option<Arc<Backward>>,
}

/// An op of your own, as the text of a StableHLO function, which `stablehlo` writes for operands of given types, as
/// `tensor<4xf32>` (`torch.library.custom_op`). Its signature says what the op gives; more functions may follow that it calls.
/// XLA compiles the text when the op is first called with such operands, and what it says against it is said there.
///
/// ```
/// use xlazy::prelude::*;
/// let twice = custom_op("twice", |types| {
///     let t = &types[0];
///     format!("func.func @twice(%x: {t}) -> {t} {{ %y = stablehlo.add %x, %x : {t}\n return %y : {t} }}")
/// });
/// let twice = twice.register_autograd(|_inputs, _outputs, dy| vec![dy[0].as_ref().map(|dy| dy * 2.0)]);
/// let x = tensor([1.0, 2.0]).requires_grad_(true);
/// let y = twice.call(&[&x]);
/// assert_eq!(y.to_vec::<f32>(), [2.0, 4.0]);
/// assert_eq!(grad(&y.sum(), &[&x])[0].as_ref().unwrap().to_vec::<f32>(), [2.0, 2.0]);
/// ```
pub fn custom_op(name: &str, stablehlo: impl Fn(&[String]) -> String + Send + Sync + 'static) -> CustomOp {
    CustomOp { name: name.to_owned(), write: Arc::new(stablehlo), backward: None }
}

impl CustomOp {
    /// The same op with a gradient: a function of its operands, its results, and the gradient of each result where there is
    /// one, that gives a gradient for each operand or `None` (`torch.library.register_autograd`). It is made of tensor ops.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let double = custom_op("double", |types| {
    ///     let t = &types[0];
    ///     format!("func.func @double(%x: {t}) -> {t} {{ %y = stablehlo.add %x, %x : {t}\n return %y : {t} }}")
    /// });
    /// let double = double.register_autograd(|_inputs, _outputs, dy| vec![dy[0].as_ref().map(|dy| dy * 2.0)]);
    /// let x = tensor([1.0]).requires_grad_(true);
    /// double.call(&[&x]).sum().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0]);
    /// ```
    pub fn register_autograd(
        mut self,
        backward: impl Fn(&[Tensor], &[Tensor], &[Option<Tensor>]) -> Vec<Option<Tensor>> + Send + Sync + 'static,
    ) -> CustomOp {
        self.backward = Some(Arc::new(backward));
        self
    }

    /// The first result of the op.
    #[track_caller]
    pub fn call(&self, inputs: &[&Tensor]) -> Tensor {
        self.call_all(inputs).swap_remove(0)
    }

    /// All results of the op.
    #[track_caller]
    pub fn call_all(&self, inputs: &[&Tensor]) -> Vec<Tensor> {
        let types: Vec<String> = inputs.iter().map(|t| mlir_type(&t.ty())).collect();
        let text = (self.write)(&types);
        let hash = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        let op = match read(&self.name, &text, hash) {
            Ok(op) => Arc::new(Custom { backward: self.backward.clone(), ..op }),
            Err(why) => refuse("custom_op", inputs, format!("`{}`: {why}", self.name)),
        };
        let id = named(format!("{}#{hash:032x}", self.name), &op);
        if let Err(why) = compiles(hash, &op) {
            refuse("custom_op", inputs, format!("`{}`: {why}", self.name));
        }
        let args: Vec<Arg> = inputs.iter().map(|t| Arg::Tensor(t)).collect();
        let of = try_trace(&CUSTOM_OP, &args, [Attr::Name(id)].into(), Location::caller());
        let of = of.unwrap_or_else(|e| e.raise());
        op.gives.iter().enumerate().map(|(k, ty)| result(&of, k, ty.clone().into())).collect()
    }
}

/// Calls what the platform has registered under a name (StableHLO: custom_call, `jax.ffi.ffi_call`), with results of these
/// types. `attributes` are further ones of the operation, as MLIR writes them: `backend_config = "", api_version = 2 : i32`.
/// XLA says when it is called that a name is not known. No gradient flows; [`custom_op`] can give one.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let x = Tensor::ones([4]);
/// let y = custom_call("my_kernel", &[&x], &[(F32, [4].into())], "api_version = 4 : i32, backend_config = {scale = 2 : i64}");
/// ```
#[track_caller]
pub fn custom_call(target: &str, inputs: &[&Tensor], results: &[(DType, Dims)], attributes: &str) -> Vec<Tensor> {
    if results.is_empty() {
        refuse("custom_call", inputs, "a call without a result computes nothing");
    }
    let mut gives = Vec::new();
    for (dtype, size) in results {
        let shape = Dims(size.0.clone()).shape("custom_call").unwrap_or_else(|e| e.raise());
        gives.push(mlir_type(&Type::new(*dtype, shape)));
    }
    let gives = gives.join(", ");
    let (target, attributes) = (target.to_owned(), attributes.to_owned());
    let n = results.len();
    let op = custom_op(&target.clone(), move |types| {
        let arguments: Vec<String> = (0..types.len()).map(|k| format!("%a{k}")).collect();
        let named: Vec<String> = arguments.iter().zip(types).map(|(a, t)| format!("{a}: {t}")).collect();
        let given: Vec<String> = (0..n).map(|k| format!("%r#{k}")).collect();
        let comma = if attributes.is_empty() { "" } else { ", " };
        format!(
            "func.func @call({}) -> ({gives}) {{\n    %r:{n} = \"stablehlo.custom_call\"({}) {{call_target_name = {target:?}{comma}{attributes}}} : \
             ({}) -> ({gives})\n    return {} : {gives}\n}}",
            named.join(", "),
            arguments.join(", "),
            types.join(", "),
            given.join(", "),
        )
    });
    op.call_all(inputs)
}

/// Reads the names and the signature of a text's functions.
fn read(name: &str, text: &str, hash: u128) -> Result<Custom, String> {
    const FUNCTION: &str = "func.func";
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
    let (mut functions, mut signature): (Vec<&str>, Option<&str>) = Default::default();
    for (at, _) in text.match_indices(FUNCTION) {
        let rest = text[at + FUNCTION.len()..].trim_start();
        let rest = rest.strip_prefix("public").or_else(|| rest.strip_prefix("private")).unwrap_or(rest).trim_start();
        let named = rest.strip_prefix('@').ok_or("`func.func` is followed by the function's name, as `@f`")?;
        let (function, behind) = named.split_at(named.find(|c| !is_name(c)).unwrap_or(named.len()));
        functions.push(function);
        signature.get_or_insert(behind);
    }
    let first = *functions.first().ok_or("the text has no `func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { … }`")?;
    let signature = signature.unwrap_or_default().trim_start();
    let arguments =
        enclosed(signature, '(', ')').ok_or("the function's name is followed by its arguments in parentheses")?;
    let takes = types(arguments)?;
    let results = signature[arguments.len() + 2..].trim_start();
    let results =
        results.strip_prefix("->").ok_or("the function gives nothing: its arguments are followed by `-> tensor<…>`")?;
    let results = results.trim_start();
    let gives = match enclosed(results, '(', ')') {
        Some(several) => types(several)?,
        None => types(&results[..results.find('{').unwrap_or(results.len())])?,
    };
    if gives.is_empty() {
        return Err("the function gives nothing".into());
    }
    // Every name of this text's functions gets one that no other text has.
    let suffix = format!("_{hash:032x}");
    let mut renamed = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let named = &rest[at + 1..];
        let end = named.find(|c| !is_name(c)).unwrap_or(named.len());
        renamed.push_str(&rest[..at + 1 + end]);
        if functions.contains(&&named[..end]) {
            renamed.push_str(&suffix);
        }
        rest = &named[end..];
    }
    renamed.push_str(rest);
    let mut parts = renamed.split(FUNCTION);
    let before = parts.next().unwrap_or_default().to_owned();
    let renamed = parts.fold(before, |text, rest| {
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("public").or_else(|| rest.strip_prefix("private")).unwrap_or(rest).trim_start();
        format!("{text}{FUNCTION} private {rest}")
    });
    Ok(Custom {
        name: name.to_owned(),
        text: renamed,
        symbol: format!("{first}{suffix}"),
        takes,
        gives,
        backward: None,
    })
}

/// What is between an opening sign at the start and the one that closes it.
fn enclosed(text: &str, open: char, close: char) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == open) - i32::from(c == close);
        if depth == 0 {
            return (at > 0).then(|| &text[1..at]);
        }
    }
    None
}

/// The tensor types of a list, in order.
fn types(text: &str) -> Result<Vec<Type>, String> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices("tensor<") {
        let inner = enclosed(&text[at + "tensor".len()..], '<', '>').ok_or("a `tensor<` without its end")?;
        let mut shape = Shape::default();
        let mut rest = inner;
        while let Some((size, more)) = rest.split_once('x')
            && size.bytes().all(|b| b.is_ascii_digit() || b == b'?')
        {
            shape.push(size.parse().map_err(|_| format!("sizes are numbers, `tensor<{inner}>` has none"))?);
            rest = more;
        }
        let dtype = DType::ALL.into_iter().find(|d| d.mlir() == rest);
        all.push(Type::new(dtype.ok_or_else(|| format!("`{rest}` is no dtype of a tensor here"))?, shape));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_and_names_are_made_its_own() {
        let text = "func.func public @f(%x: tensor<2x3xf32>, %k: tensor<complex<f32>>) -> (tensor<i1>, tensor<4xi64>) {\n\
                    %0 = call @g(%x) : () -> ()\n func.return }\nfunc.func @g() { return }";
        let op = read("f", text, 0xab).unwrap();
        let types = |all: &[Type]| all.iter().map(Type::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!((types(&op.takes).as_str(), types(&op.gives).as_str()), ("f32[2,3] c64[]", "bool[] i64[4]"));
        assert_eq!(op.text.matches("_000000000000000000000000000000ab").count(), 3, "{}", op.text);
        assert_eq!(op.text.matches("func.func private @").count(), 2, "{}", op.text);
        for wrong in ["", "func.func f()", "func.func @f(%x: tensor<?xf32>) -> tensor<f32> {", "func.func @f() {"] {
            assert!(read("f", wrong, 0).is_err(), "{wrong}");
        }
    }
}
