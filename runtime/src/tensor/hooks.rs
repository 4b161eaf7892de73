//! Hooks on tensors: what is called with a gradient when `backward()` has it, and may give another one.
use super::{Inner, Tensor, refuse};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use xlazy_core::ir::{LEAF, NodeId, graph};

/// What a hook is on: a leaf, which has other nodes after each step, or the value of one node.
#[derive(Clone, Copy, PartialEq)]
enum On {
    /// Its lineage.
    Leaf(u64),
    /// Its creation number.
    Node(u64),
}

type Call = dyn Fn(&Tensor) -> Option<Tensor> + Send + Sync;

#[derive(Clone)]
enum Then {
    Call(Arc<Call>),
    /// The gradient becomes the tensor's `grad()`.
    Keep,
}

struct Hooked {
    number: u64,
    on: On,
    node: NodeId,
    of: Weak<Inner>,
    then: Then,
}

static HOOKS: Mutex<Vec<Hooked>> = Mutex::new(Vec::new());
/// Whether there are some: a walk of gradients asks at every node.
static ANY: AtomicBool = AtomicBool::new(false);

/// Changes the hooks. What no longer is among them is dropped behind the lock: it may hold tensors, or be code of the user's.
fn change(keep: impl Fn(&Hooked) -> bool, new: Option<Hooked>) {
    let mut hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut kept, gone): (Vec<Hooked>, Vec<Hooked>) = std::mem::take(&mut *hooks).into_iter().partition(keep);
    kept.extend(new);
    ANY.store(!kept.is_empty(), Ordering::Relaxed);
    *hooks = kept;
    drop(hooks);
    drop(gone);
}

/// Whether what a hook is on can still get a gradient.
fn is_alive(h: &Hooked) -> bool {
    let node = || matches!(h.on, On::Node(seq) if graph().node(h.node).seq == seq);
    h.of.strong_count() > 0 || node()
}

/// A hook that is on a tensor or a module until it is taken off (`torch.utils.hooks.RemovableHandle`); dropping this leaves it there.
pub struct Hook(Box<dyn FnOnce() + Send + Sync>);

impl Hook {
    pub(crate) fn new(remove: impl FnOnce() + Send + Sync + 'static) -> Hook {
        Hook(Box::new(remove))
    }

    /// Takes the hook off.
    pub fn remove(self) {
        (self.0)()
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Tensor {
    /// Has `f` called with the gradient of this tensor each time that `backward()` or `grad()` has it; where `f` gives a tensor, it
    /// takes the gradient's place (`torch.Tensor.register_hook`). Hooks are called in the order in which they came. On a parameter
    /// one stays through all steps; on a result it is on that value, whatever is written to the tensor in place later. What `f`
    /// does is recorded as everything is: reading the gradient there runs a program of its own.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([3.0]).requires_grad_(true);
    /// let hook = w.register_hook(|dw| Some(dw.clamp(-1.0, 1.0)));
    /// (&w * &w).sum().backward();
    /// assert_eq!(w.grad().unwrap().item(), 1.0);
    /// hook.remove();
    /// ```
    #[track_caller]
    pub fn register_hook(&self, f: impl Fn(&Tensor) -> Option<Tensor> + Send + Sync + 'static) -> Hook {
        self.hooked("register_hook", Then::Call(Arc::new(f)))
    }

    /// Keeps the gradient of a tensor that ops made, as its [`Tensor::grad`] (`torch.Tensor.retain_grad`). A leaf keeps its own.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let w = tensor([3.0]).requires_grad_(true);
    /// let y = &w * 2.0;
    /// y.retain_grad();
    /// (&y * &y).sum().backward();
    /// assert_eq!(y.grad().unwrap().item(), 12.0);
    /// ```
    #[track_caller]
    pub fn retain_grad(&self) {
        if !self.is_leaf() || !self.requires_grad() {
            drop(self.hooked("retain_grad", Then::Keep));
        }
    }

    #[track_caller]
    fn hooked(&self, op: &'static str, then: Then) -> Hook {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (flags, on, depth) = {
            let g = graph();
            let n = g.node(self.id());
            (n.flags, if n.flags & LEAF != 0 { On::Leaf(n.lineage) } else { On::Node(n.seq) }, n.depth)
        };
        if flags & xlazy_core::ir::REQUIRES_GRAD == 0 {
            refuse(
                op,
                &[self],
                "the tensor does not require gradients, so none comes: mark what it is made of with `requires_grad_(true)`",
            );
        }
        if depth > 0 {
            refuse(
                op,
                &[self],
                "a tensor in the body of a loop or a branch has no gradient that is seen: hook what goes into the whole",
            );
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        change(is_alive, Some(Hooked { number, on, node: self.id(), of: Arc::downgrade(&self.0), then }));
        Hook::new(move || change(|h| h.number != number, None))
    }
}

/// What the hooks on a node make of its gradient, and the tensor that keeps it.
#[track_caller]
pub(crate) fn through_hooks(id: NodeId, mut dy: Tensor) -> (Tensor, Option<Tensor>) {
    if !ANY.load(Ordering::Relaxed) {
        return (dy, None);
    }
    let on = {
        let g = graph();
        let n = g.node(id);
        if n.flags & LEAF != 0 { On::Leaf(n.lineage) } else { On::Node(n.seq) }
    };
    let found: Vec<(Then, Weak<Inner>)> = {
        let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
        hooks.iter().filter(|h| h.on == on).map(|h| (h.then.clone(), h.of.clone())).collect()
    };
    let mut keeps = None;
    for (then, of) in found {
        match then {
            Then::Keep => keeps = of.upgrade().map(Tensor),
            Then::Call(f) => {
                let Some(other) = f(&dy) else { continue };
                if other.ty() != dy.ty() {
                    let why = format!(
                        "the hook was given {} and gave back {}: a gradient keeps its shape and dtype",
                        dy.ty(),
                        other.ty()
                    );
                    refuse("register_hook", &[], why);
                }
                dy = other;
            }
        }
    }
    (dy, keeps)
}

/// Whether a hook is on something that was recorded since so many nodes had been traced.
pub(crate) fn hooked_since(since: u64) -> bool {
    let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    hooks.iter().any(|h| matches!(h.on, On::Node(seq) if seq > since))
}
