//! Mixed precision: what is called in a closure takes its operands in the dtype that suits it, by torch_xla's lists.
use super::mixed::{Mixed, converts, dtype_of, mixed, with};
use super::thread::{is_grad_enabled, is_physical, on_behalf};
use super::{Arg, Entry, Tensor};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::panic::Location;
use xlazy_core::ir::graph;
use xlazy_core::thread::thread;
use xlazy_core::ty::DType;

thread_local! {
    /// Operands that the call under way has converted: what it takes twice is converted once, so that gradients add up before they
    /// are rounded.
    static CONVERTED: RefCell<Converted> = const { RefCell::new(Converted { call: 0, all: Vec::new() }) };
}

struct Converted {
    /// The call's number.
    call: u32,
    all: Vec<Operand>,
}

struct Operand {
    /// Keeps the node, so that its number stays its own.
    from: Tensor,
    grad: bool,
    physical: bool,
    to: Tensor,
}

/// Runs `f` with products of matrices and convolutions in `dtype`, bf16 or f16, and what needs more in float32; everything else is in
/// the dtype of its operands, the wider one where they differ (`torch.autocast`, by torch_xla's lists: batch norms, softmaxes, losses,
/// distances and decompositions in float32, ReLU and `max_pool2d` in `dtype`). Parameters stay in float32, and
/// so do their gradients. `backward()` comes behind it. With f16 a loss needs a scale: `optim::GradScaler`.
///
/// ```
/// use xlazy::prelude::*;
/// let w = nn::Linear::new(4, 3);
/// let (y, loss) = autocast(BF16, || {
///     let y = w.forward(&Tensor::ones([2, 4]));
///     let loss = y.mse_loss(&Tensor::zeros([2, 3]), Reduction::Mean);
///     (y, loss)
/// });
/// loss.backward();
/// assert_eq!((y.dtype(), loss.dtype(), w.weight.grad().unwrap().dtype()), (BF16, F32, F32));
/// ```
pub fn autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    let _forgotten = Forgotten;
    let _back = with(Some(dtype));
    f()
}

/// Lets go of what was converted.
struct Forgotten;

impl Drop for Forgotten {
    #[inline(never)]
    fn drop(&mut self) {
        let all = CONVERTED.with_borrow_mut(|c| std::mem::take(&mut c.all));
        drop(all);
    }
}

/// The operands as an op takes them here, where that is otherwise than they are.
pub(super) fn cast<'a>(op: &Entry, args: &'a [Arg], at: &'static Location<'static>) -> Option<SmallVec<[Arg<'a>; 8]>> {
    mixed().lower?;
    let to = dtype_of(op.name, args.iter().filter_map(|a| Some(a.tensor()?.stored())))?;
    let other = |a: &Arg| a.tensor().map(Tensor::stored).is_some_and(|d| converts(d) && d != to);
    if !args.iter().any(other) {
        return None;
    }
    let taken = args.iter().map(|a| match a.tensor() {
        Some(t) if other(a) => Arg::Owned(converted(t, to, at)),
        _ => a.again(),
    });
    Some(taken.collect())
}

fn converted(t: &Tensor, to: DType, at: &'static Location<'static>) -> Tensor {
    let Mixed { inside, calls, .. } = mixed();
    if CONVERTED.with_borrow(|c| c.call != calls) {
        drop(Forgotten);
        CONVERTED.with_borrow_mut(|c| c.call = calls);
    }
    let (id, grad, physical) = (t.id(), is_grad_enabled(), is_physical());
    let same = |o: &&Operand| o.from.id() == id && (o.grad, o.physical) == (grad, physical);
    // what is recorded in a loop's body is nothing outside of it
    let kept = inside.is_some() && thread(|t| t.body.get()).is_none();
    let known = if kept { CONVERTED.with_borrow(|c| Some(c.all.iter().find(same)?.to.clone())) } else { None };
    if let Some(known) = known {
        return known;
    }
    let made = {
        // what converts it is recorded as it stands
        let _back = with(None);
        on_behalf(at, grad, || t.to(to))
    };
    if kept {
        let from = Tensor::of_node(&mut graph(), id);
        CONVERTED.with_borrow_mut(|c| c.all.push(Operand { from, grad, physical, to: made.clone() }));
    }
    made
}
