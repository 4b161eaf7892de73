//! Ops whose gradients are Rust of the user's own, beside what they compute.
use crate::tensor::{Arg, Entry, Grad, Tensor, is_grad_enabled, no_grad, on_behalf, refuse, trace, try_trace};
use std::panic::Location;
use xlazy_core::ir::Role::{Mode, Position};
use xlazy_core::ir::{Attr, Kept, Kind, attr, graph, rules};

/// How gradients of a [`FUNCTION`] are made.
pub(super) trait Backward: Send + Sync {
    /// One for each operand.
    fn gradients(&self, g: &Grad) -> Vec<Option<Tensor>>;
}

/// Operands: the results as they were computed; then what gradients flow to, and what they are made of besides. It computes
/// nothing: each result is one of the first operands under another name ([`RESULT`]), behind which the tape sees this.
static FUNCTION: Entry =
    Entry::new("function", rules::same, |l| l.x(0)).kind(Kind::Control).several().attrs(&[attr("of", Mode)]).grad(
        |g| {
            let Attr::Kept(of) = &g.attrs[0] else { unreachable!("not kept: {:?}", g.attrs[0]) };
            of.get::<Box<dyn Backward>>().gradients(g)
        },
    );

/// Operands: what the result is, and what it is a result of.
pub(super) static RESULT: Entry = Entry::new("function.result", rules::same, |l| l.x(0))
    .kind(Kind::View)
    .attrs(&[attr("index", Position)])
    .constant("the gradient is that of the function that it is a result of");

pub(super) static OPS: &[&Entry] = &[&FUNCTION, &RESULT];

/// What was computed as results of an op with this gradient, which is asked for that of `inputs` and may use `saved` besides.
#[track_caller]
pub(super) fn with_backward(
    name: &str,
    backward: Box<dyn Backward>,
    results: &[Tensor],
    inputs: &[Tensor],
    saved: &[Tensor],
) -> Vec<Tensor> {
    let at = Location::caller();
    let args: Vec<Arg> = results.iter().chain(inputs).chain(saved).map(Arg::from).collect();
    let attrs = [Attr::Kept(Kept::new(name, backward))].into();
    let of = try_trace(&FUNCTION, &args, attrs, at).unwrap_or_else(|e| e.raise());
    let one = |(k, y): (usize, &Tensor)| on_behalf(at, true, || trace(&RESULT, [y.into(), (&of).into()], [k.into()]));
    results.iter().enumerate().map(one).collect()
}

/// What [`Function::forward`] leaves for [`Function::backward`].
#[derive(Default)]
pub struct Context {
    needs: Vec<bool>,
    saved: Vec<Tensor>,
}

impl Context {
    /// Keeps tensors for the gradient: inputs, results, or what was computed on the way (`ctx.save_for_backward`). They are kept as
    /// they are: where one is written to in place before the gradient is made, that is refused.
    pub fn save_for_backward(&mut self, tensors: &[&Tensor]) {
        self.saved = tensors.iter().copied().cloned().collect();
    }

    /// What was kept, in that order (`ctx.saved_tensors`).
    pub fn saved_tensors(&self) -> &[Tensor] {
        &self.saved
    }

    /// Whether a gradient flows to this input (`ctx.needs_input_grad`): where none does, `None` spares its computation.
    pub fn needs_input_grad(&self, input: usize) -> bool {
        self.needs.get(input).copied().unwrap_or_default()
    }
}

/// A function with a gradient of your own (`torch.autograd.Function`): `forward` computes, unrecorded, and `backward` gives a
/// gradient for each input, or `None`, from those of the results, which are zeros where none flows. Both are made of tensor ops, so
/// both are parts of the program; what `backward` does can be differentiated again. What the function is about besides tensors are
/// fields of its type.
///
/// ```
/// use xlazy::prelude::*;
/// /// The identity, whose gradient is turned round.
/// struct Reverse { scale: f64 }
/// impl Function for Reverse {
///     fn forward(&self, _: &mut Context, x: &[Tensor]) -> Vec<Tensor> {
///         vec![x[0].clone()]
///     }
///     fn backward(&self, _: &Context, dy: &[Tensor]) -> Vec<Option<Tensor>> {
///         vec![Some(&dy[0] * -self.scale)]
///     }
/// }
/// let x = tensor([1.0, 2.0]).requires_grad_(true);
/// Reverse { scale: 0.5 }.apply(&[&x]).sum().backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [-0.5, -0.5]);
/// ```
pub trait Function: Send + Sync + 'static {
    /// The results, and what the gradient needs, in `ctx`.
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Vec<Tensor>;

    /// A gradient for each input, of that input's shape, from one for each result.
    fn backward(&self, ctx: &Context, gradients: &[Tensor]) -> Vec<Option<Tensor>>;

    /// The first result for these inputs (`Function.apply`).
    #[track_caller]
    fn apply(self, inputs: &[&Tensor]) -> Tensor
    where
        Self: Sized,
    {
        match self.apply_all(inputs).into_iter().next() {
            Some(y) => y,
            None => refuse("apply", inputs, "`forward` gives no tensor"),
        }
    }

    /// All results for these inputs.
    #[track_caller]
    fn apply_all(self, inputs: &[&Tensor]) -> Vec<Tensor>
    where
        Self: Sized,
    {
        let inputs: Vec<Tensor> = inputs.iter().copied().cloned().collect();
        let needs: Vec<bool> = inputs.iter().map(|x| is_grad_enabled() && x.requires_grad()).collect();
        let mut ctx = Context { needs: needs.clone(), saved: vec![] };
        let results = no_grad(|| self.forward(&mut ctx, &inputs));
        if !needs.contains(&true) || results.is_empty() {
            return results;
        }
        let name = std::any::type_name::<Self>();
        let name = name.split('<').next().and_then(|n| n.rsplit("::").next()).unwrap_or(name).to_owned();
        // A result that is saved comes back as what it is a result of, so that gradients flow through it once more.
        let ids: Vec<_> = results.iter().map(Tensor::id).collect();
        let own = ctx.saved.iter().map(|t| ids.iter().position(|id| *id == t.id())).collect();
        let backward = Box::new(Applied { function: self, name: name.clone(), needs, results: results.len(), own });
        with_backward(&name, backward, &results, &inputs, &ctx.saved)
    }
}

/// A function that was applied.
struct Applied<F> {
    function: F,
    name: String,
    needs: Vec<bool>,
    results: usize,
    /// Of what was saved, which result it is, where it is one.
    own: Vec<Option<usize>>,
}

impl<F: Function> Backward for Applied<F> {
    fn gradients(&self, g: &Grad) -> Vec<Option<Tensor>> {
        let (results, rest) = g.inputs.split_at(self.results);
        let (inputs, saved) = rest.split_at(self.needs.len());
        let again = |(k, y): (usize, &Tensor)| trace(&RESULT, [y.into(), (&g.output).into()], [k.into()]);
        let saved = saved.iter().zip(&self.own).map(|(t, own)| match own {
            Some(k) if graph().node(results[*k].id()).ty.dtype.is_differentiable() => again((*k, &results[*k])),
            _ => t.clone(),
        });
        let ctx = Context { needs: self.needs.clone(), saved: saved.collect() };
        let flows = |k: usize| g.dys.iter().find(|(i, _)| *i == k).map(|(_, dy)| dy.clone());
        let dys: Vec<Tensor> =
            results.iter().enumerate().map(|(k, y)| flows(k).unwrap_or_else(|| y.zeros_like())).collect();
        let found = self.function.backward(&ctx, &dys);
        if found.len() != inputs.len() {
            let why = format!(
                "`backward` of `{}` gives {} gradients, and it was applied to {} tensors: one for each, `None` where none flows",
                self.name,
                found.len(),
                inputs.len()
            );
            refuse("apply", &[], why);
        }
        for (k, (dx, x)) in found.iter().zip(inputs).enumerate() {
            if let Some(dx) = dx.as_ref().filter(|dx| dx.shape() != x.shape()) {
                let why = format!(
                    "`backward` of `{}` gives {} as the gradient of input {k}, which is {}: both have one shape",
                    self.name,
                    dx.ty(),
                    x.ty()
                );
                refuse("apply", &[], why);
            }
        }
        let none = |n: usize| std::iter::repeat_n(None, n);
        none(self.results).chain(found).chain(none(self.own.len())).collect()
    }
}
