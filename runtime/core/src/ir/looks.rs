//! What a program looks for while it runs: elements that its ops refuse, numbers that no result may have.
use super::attr::Attr;
use super::input::Input;
use super::op::{OpDef, Refused, Sig};
use crate::emit::{Emit, FINE, GIVEN, Looks, MADE, Reducer, Val};
use crate::options::Numbers;
use crate::ty::{DType, Shape, Type};
use foldhash::HashMap;

/// What was looked at in a program, or in one body.
#[derive(Default)]
pub(super) struct Looked {
    within: bool,
    /// What each operand is looked at for already.
    refused: HashMap<Input, Vec<Refused>>,
    /// In bodies: whether what each operand is has such numbers.
    has: HashMap<Input, Val>,
}

impl Looked {
    /// In a body. A loop runs it again and again, so the first of its ops that has such a number need not have made it: there
    /// it is the one of whose operands none has any.
    pub fn within() -> Looked {
        Looked { within: true, ..Looked::default() }
    }

    /// Looks at the next step; `known` tells which leaves are the host's numbers, which it has looked at itself.
    pub fn at(&mut self, e: &mut Emit, step: Asked, known: impl Fn(u32) -> bool) {
        let looking = e.looking();
        if looking.refused {
            self.refused(e, &step, known);
        }
        let value = step.value;
        if value.ty.dtype.is_float() && value.shape().numel() > 0 && !step.op.kind.is_data() {
            match looking.numbers {
                Numbers::Any => {}
                numbers if self.within => self.made(e, &step, numbers),
                numbers => given_or_made(e, &step, numbers),
            }
        }
    }

    fn refused(&mut self, e: &mut Emit, step: &Asked, known: impl Fn(u32) -> bool) {
        let Some(checks) = step.op.checks else { return };
        let types: Vec<&Type> = step.inputs.iter().map(|v| &v.ty).collect();
        for check in checks(&Sig { inputs: &types, attrs: step.attrs }) {
            let from = step.from[check.operand];
            if matches!(from, Input::Leaf(l) if known(l)) {
                continue;
            }
            let looked = self.refused.entry(from).or_default();
            let v = &step.inputs[check.operand];
            if v.shape().numel() == 0 || looked.iter().any(|k| check.refused.is_within(*k)) {
                continue;
            }
            looked.push(check.refused);
            let found = greatest_refused(e, v, check.refused);
            e.found(found, step.op.torch_name(), step.types(), Looks::For(check.why));
        }
    }

    /// Looks for numbers that the op made of operands that have none.
    fn made(&mut self, e: &mut Emit, step: &Asked, numbers: Numbers) {
        let mut made = has(e, step.value, numbers);
        for (&from, v) in step.from.iter().zip(step.inputs).filter(|(_, v)| v.ty.dtype.is_float()) {
            let given = match self.has.get(&from) {
                Some(given) => given.clone(),
                None => has(e, v, numbers),
            };
            self.has.insert(from, given.clone());
            let not = e.unary("not", &given);
            made = e.binary("and", &made, &not);
        }
        let (by_it, fine) = (number(e, MADE), number(e, FINE));
        let found = e.select(&made, &by_it, &fine);
        e.found(found, step.op.torch_name(), step.types(), Looks::Numbers(numbers));
    }
}

/// A step that was written.
pub(super) struct Asked<'a> {
    pub op: &'static OpDef,
    pub attrs: &'a [Attr],
    pub from: &'a [Input],
    pub inputs: &'a [Val],
    pub value: &'a Val,
}

impl Asked<'_> {
    fn types(&self) -> Vec<String> {
        self.inputs.iter().map(|v| v.ty.to_string()).collect()
    }
}

fn number(e: &mut Emit, n: i64) -> Val {
    e.constant(n as f64, &Type::new(DType::I64, Shape::default()))
}

/// Looks for numbers that no result may have. Of the steps that have some the first one made them, or was given them.
fn given_or_made(e: &mut Emit, step: &Asked, numbers: Numbers) {
    let made = has(e, step.value, numbers);
    let leaves =
        step.inputs.iter().zip(step.from).filter(|(v, i)| matches!(i, Input::Leaf(_)) && v.ty.dtype.is_float());
    let mut given = None;
    for (v, _) in leaves {
        let one = has(e, v, numbers);
        given = Some(given.map_or(one.clone(), |all: Val| e.binary("or", &all, &one)));
    }
    let (fine, by_it) = (number(e, FINE), number(e, MADE));
    let found = match given {
        Some(given) => {
            let before = number(e, GIVEN);
            e.select(&given, &before, &by_it)
        }
        None => by_it,
    };
    let found = e.select(&made, &found, &fine);
    e.found(found, step.op.torch_name(), step.types(), Looks::Numbers(numbers));
}

/// Whether there are such numbers among these.
fn has(e: &mut Emit, v: &Val, numbers: Numbers) -> Val {
    let fine = match numbers {
        Numbers::Finite => {
            let (size, infinite) = (e.unary("abs", v), e.constant(f64::INFINITY, &v.ty));
            e.compare("LT", &size, &infinite)
        }
        Numbers::Any | Numbers::NoNan => e.compare("EQ", v, v),
    };
    let wrong = e.unary("not", &fine);
    let dims: Vec<usize> = (0..v.rank()).collect();
    e.reduce(&wrong, &dims, Reducer::Or)
}

/// The greatest element that is refused, or [`FINE`].
fn greatest_refused(e: &mut Emit, v: &Val, refused: Refused) -> Val {
    if let Refused::Beyond { low, high } = refused {
        return beyond(e, v, low, high);
    }
    let v = e.convert(v, DType::I64);
    let with = |e: &mut Emit, how: &str, number: i64| {
        let c = e.constant(number as f64, &v.ty);
        e.compare(how, &v, &c)
    };
    let wrong = match refused {
        Refused::Zero => with(e, "EQ", 0),
        Refused::Outside { low, high } => {
            let (below, above) = (with(e, "LT", low), with(e, "GE", high));
            e.binary("or", &below, &above)
        }
        Refused::Beyond { .. } => unreachable!("looked for above"),
    };
    let fine = e.constant(FINE as f64, &v.ty);
    let all = e.select(&wrong, &v, &fine);
    let dims: Vec<usize> = (0..v.rank()).collect();
    e.reduce(&all, &dims, Reducer::Max)
}

/// [`MADE`] where a float lies beyond, or [`FINE`].
fn beyond(e: &mut Emit, v: &Val, low: f64, high: f64) -> Val {
    let (below, above) = (e.constant(low, &v.ty), e.constant(high, &v.ty));
    let from = e.compare("GE", v, &below);
    let to = e.compare(if high.is_finite() { "LE" } else { "LT" }, v, &above);
    let inside = e.binary("and", &from, &to);
    let outside = e.unary("not", &inside);
    let dims: Vec<usize> = (0..v.rank()).collect();
    let any = e.reduce(&outside, &dims, Reducer::Or);
    let (wrong, fine) = (number(e, MADE), number(e, FINE));
    e.select(&any, &wrong, &fine)
}
