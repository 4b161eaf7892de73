//! Advice to bucket an input is what comes of it: drawn programs, asked and tried.
use crate::insight::bucketing::{Beside, Feed, InputDim, Proposal, Refusal};
use crate::prelude::*;
use crate::tensor::Tensor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};
use xlazy_core::ir::{Leaf, Scope, Step, graph};
use xlazy_core::ty::Type;

static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(|p| p.into_inner())
}

/// Numbers below another, the same ones in each run.
fn drawn(mut state: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    }
}

/// A program as a miss has it: its steps, and its parameters with whether they are weights.
struct Recorded {
    steps: Vec<Step>,
    types: Vec<(Type, bool)>,
    /// The places of tensors among the parameters.
    of: Vec<Option<usize>>,
}

fn recorded(results: &[Tensor], weights: &[&Tensor], asked: &[&Tensor]) -> Recorded {
    let mut roots: Vec<u32> = results.iter().map(Tensor::id).collect();
    roots.sort_by_key(|&r| graph().node(r).seq);
    roots.dedup();
    let cut = graph().cut(roots, Scope::Read);
    let g = graph();
    let steps = g.steps(&cut);
    let fixed = |id: u32| weights.iter().any(|w| w.id() == id);
    let types =
        cut.leaves.iter().map(|(id, leaf): &(u32, Leaf)| (Type::clone(&leaf.ty(g.node(*id))), fixed(*id))).collect();
    let of = asked.iter().map(|t| cut.leaves.iter().position(|(id, _)| *id == t.id())).collect();
    drop(g);
    drop(cut);
    Recorded { steps, types, of }
}

impl Recorded {
    /// To bucket the rows of all that was asked for.
    fn proposal(&self) -> Proposal<'_> {
        let feeds = self.types.iter().map(|(ty, fixed)| Feed { ty, fixed: *fixed }).collect();
        let inputs = self.of.iter().flatten().map(|&leaf| (leaf, 0)).collect();
        Proposal { steps: &self.steps, feeds, inputs, buckets: &[8, 16] }
    }

    fn asked(&self, inputs: &[InputDim]) -> Result<Vec<InputDim>, Refusal> {
        Proposal { inputs: inputs.to_vec(), ..self.proposal() }.applicable()
    }
}

/// What a drawn program does with a batch `x` of rows, labels `y` and weights `w`.
type Op = fn(&Tensor, &Tensor, &Tensor) -> Tensor;

const OPS: &[(&str, Op)] = &[
    ("linear", |x, _, w| x.matmul(w)),
    ("residual", |x, y, _| x + y),
    ("mean", |x, _, _| x - x.mean_dim(0, true)),
    ("softmax", |x, _, _| x.softmax(0)),
    ("norm", |x, _, _| x.layer_norm(3, None, None, 1e-5)),
    ("cumsum", |x, _, _| x.cumsum(0)),
    ("sort", |x, _, _| x.sort(0, true).0),
    ("last", |x, _, _| x + x.select(0, -1)),
    ("ends", |x, _, _| x.i(1..).mean_dim(0, true) + x),
    ("cut off", |x, _, _| x.i(..-1).sum_dim(0, true) * x),
    ("dropout", |x, _, _| x.dropout(0.1, true)),
    ("like", |x, _, _| x + x.zeros_like()),
    ("reshape", |x, _, _| x.reshape([x.size(0), 3, 1]).transpose(1, 2).squeeze_dim(1)),
    ("joined", |x, y, _| cat(&[x, y], 1).narrow(1, 1, 3)),
    ("rows joined", |x, y, _| cat(&[y, x], 0).mean_dim(0, true) * x),
    ("picked", |x, y, _| x.gather(1, &y.argmax_dim(1, true)) + x),
    ("constants", |x, _, _| x + Tensor::ones([x.size(0), 3]) * 0.5),
    ("positions", |x, _, w| {
        x + Tensor::arange(0, x.size(0), 1).remainder(3).embedding(w)
            + cat(&[w, w, w, w], 0).narrow(0, 0, x.size(0) as i64)
    }),
    ("attention", |x, y, _| {
        let options = AttentionOptions { is_causal: true, ..Default::default() };
        x.unsqueeze(0).scaled_dot_product_attention(&y.unsqueeze(0), &x.unsqueeze(0), options).squeeze_dim(0)
    }),
    // What is not defined.
    ("flattened", |x, _, _| x.t().flatten().reshape([3, -1]).t() * 1.0),
    ("grown", |x, _, _| x.pad([0, 0, 1, 0], 0.5).mean_dim(0, true) * x),
    ("random", |x, _, _| x + Tensor::rand([x.size(0), 3])),
    ("scattered", |x, _, _| x.scatter(0, &x.argmax_dim(0, true), 1.0)),
];

#[test]
fn what_is_advised_is_not_refused_and_what_is_refused_is_not_advised() {
    let _alone = alone();
    let mut below = drawn(11);
    let (mut allowed, mut refused) = (0, 0);
    for _ in 0..400 {
        let ops: Vec<usize> = (0..1 + below(5)).map(|_| below(OPS.len())).collect();
        let names: Vec<&str> = ops.iter().map(|&op| OPS[op].0).collect();
        let n = [4, 5, 7][below(3)];
        let x = Tensor::from_slice(&vec![0.5f32; n * 3], [n, 3]);
        let y = Tensor::from_slice(&vec![0.25f32; n * 3], [n, 3]);
        let w = Tensor::from_slice(&[0.1f32; 9], [3, 3]).requires_grad_(true);
        let step = |x: &Tensor, y: &Tensor| {
            let out = ops.iter().fold(x.clone(), |x, &op| OPS[op].1(&x, y, &w)).matmul(&w);
            let loss = (&out * &out).mean();
            let dw = grad(&loss, &[&w]).remove(0).unwrap();
            let moved = w.detach() - &dw * 0.1;
            vec![loss.detach(), moved]
        };
        let plain = step(&x, &y);
        let program = recorded(&plain, &[&w], &[&x, &y]);
        let inputs: Vec<(usize, usize)> = program.of.iter().flatten().map(|&leaf| (leaf, 0)).collect();
        let answer = program.asked(&inputs);
        let bucketed = |t: &Tensor| t.dynamic(0).buckets([8, 16]);
        let (bx, by) = (bucketed(&x), bucketed(&y));
        let tried = catch_unwind(AssertUnwindSafe(|| drop(step(&bx, &by))));
        match (&answer, tried) {
            (Ok(together), Ok(())) => {
                assert_eq!(*together, inputs, "{names:?}");
                allowed += 1;
            }
            (Err(why), Err(e)) => {
                let says = e.downcast::<String>().expect("a refusal is a sentence");
                assert!(says.contains(why.op), "{names:?}: {why:?} against {says}");
                refused += 1;
            }
            (answer, Err(e)) => panic!("{names:?}, {n}: {answer:?}, refused: {:?}", e.downcast::<String>()),
            (answer, Ok(())) => panic!("{names:?}, {n}: {answer:?}, but it works"),
        }
    }
    assert!(allowed > 100 && refused > 50, "{allowed} and {refused}");
}

/// What lines make by themselves in the size of the batch: some of it grows with what is bucketed, and some stays as it is.
const MADE: &[(&str, Op)] = &[
    ("constants", |x, _, _| x + Tensor::ones([x.size(0), 3]) * 0.5),
    ("positions", |x, _, w| x + Tensor::arange(0, x.size(0), 1).remainder(3).embedding(w)),
    ("mask", |x, _, _| {
        let mask = Tensor::ones([x.size(0), x.size(0)]).tril(0).eq(0.0);
        x.matmul(&x.t()).masked_fill(&mask, -1.0).softmax(-1).matmul(x)
    }),
    ("square", |x, _, _| x + x.t().matmul(&Tensor::ones([x.size(0), x.size(0)])).mean()),
    ("apart", |x, _, _| x * Tensor::arange(0, x.size(0), 1).sum()),
    ("of both", |x, y, _| x + (y * Tensor::arange(0, x.size(0), 1).unsqueeze(1)).mean_dim(0, true)),
];

/// A program of two sizes in one bucket is one program, but for what keeps its size: drawn, told, and traced.
#[test]
fn what_keeps_its_size_is_told_from_what_is_padded_with_the_input() {
    let _alone = alone();
    let mut below = drawn(5);
    let (mut one, mut two) = (0, 0);
    for _ in 0..300 {
        let op = |k: usize| if k < MADE.len() { MADE[k] } else { OPS[k - MADE.len()] };
        let ops: Vec<(&str, Op)> = (0..1 + below(4)).map(|_| op(below(MADE.len() + 8))).collect();
        let names: Vec<&str> = ops.iter().map(|op| op.0).collect();
        let w = Tensor::from_slice(&[0.1f32; 9], [3, 3]);
        let run = |x: &Tensor, y: &Tensor| vec![ops.iter().fold(x.clone(), |x, op| op.1(&x, y, &w)).matmul(&w).mean()];
        let of_size = |n: usize| {
            let data = || Tensor::from_slice(&vec![0.5f32; n * 3], [n, 3]);
            let (x, y) = (data(), data());
            let padded = |t: &Tensor| t.dynamic(0).buckets([20]);
            let plain = recorded(&run(&x, &y), &[&w], &[&x, &y]);
            (plain, recorded(&run(&padded(&x), &padded(&y)), &[&w], &[]))
        };
        let (a, b) = ([4, 5][below(2)], [7, 9][below(2)]);
        let ((now, padded), (was, padded_before)) = (of_size(a), of_size(b));
        let made: Vec<u32> = (0..now.steps.len() as u32)
            .filter(|&i| now.steps[i as usize].op.kind.is_source() && now.steps[i as usize].ty.shape.contains(&a))
            .collect();
        let (told, before) = (now.proposal(), was.proposal());
        let root = now.steps.len() as u32 - 1;
        let told = told.left_as_made(&before, &made, &[root], Some).is_none();
        let text = |r: &Recorded| -> Vec<String> {
            let step = |s: &Step| format!("{} {:?} {:?} {}", s.op.name, s.attrs, s.inputs, s.ty.get());
            r.steps.iter().map(step).collect()
        };
        let (now, was) = (text(&padded), text(&padded_before));
        assert_eq!(told, now == was, "{names:?}: {now:#?} {was:#?}");
        if told { one += 1 } else { two += 1 }
    }
    assert!(one > 50 && two > 50, "{one} and {two}");
}

#[test]
fn what_must_be_padded_together_is_found_and_what_cannot_be_is_named() {
    let _alone = alone();
    let (x, y) = (Tensor::from_slice(&[1.0f32; 15], [5, 3]), Tensor::from_slice(&[0i64, 1, 2, 0, 1], [5]));
    let w = Tensor::from_slice(&[1.0f32; 9], [3, 3]);
    let loss = x.matmul(&w).cross_entropy(&y, Default::default());
    let program = recorded(&[loss], &[&w], &[&x, &y]);
    let [Some(a), Some(b)] = program.of[..] else { panic!("both are fed in") };
    assert_eq!(program.asked(&[(a, 0)]), Ok(vec![(a, 0), (b, 0)]));
    assert_eq!(program.asked(&[(a, 0), (b, 0)]), Ok(vec![(a, 0), (b, 0)]));

    // A table of just as many rows.
    let table = Tensor::from_slice(&[1.0f32; 15], [5, 3]);
    let program = recorded(&[(&x + &table).sum()], &[&table], &[&x, &table]);
    let [Some(a), Some(b)] = program.of[..] else { panic!("both are fed in") };
    let why = program.asked(&[(a, 0)]).unwrap_err();
    assert_eq!((why.op, why.beside), ("add", Some(Beside::Input((b, 0)))));
    assert!(why.message.contains("operand 2 has 5 and no bucket"), "{}", why.message);

    // What the program makes of itself, and no rule can make larger.
    let program = recorded(&[(&x + Tensor::rand([5, 3])).sum()], &[], &[&x]);
    let why = program.asked(&[(program.of[0].unwrap(), 0)]).unwrap_err();
    assert!(matches!(why.beside, Some(Beside::Step(_))), "{why:?}");

    let real = |n: i64| Tensor::arange(0, 8, 1).lt(n).sum();
    assert_eq!((real(5).item(), real(8).item()), (5.0, 8.0));
}

#[test]
fn asking_leaves_no_trace() {
    let _alone = alone();
    let x = Tensor::from_slice(&[1.0f32; 12], [4, 3]);
    let pending = &x * 2.0;
    let mut y = x.clone();
    let w = Tensor::from_slice(&[0.1f32; 9], [3, 3]).requires_grad_(true);
    for _ in 0..100 {
        y = (y.matmul(&w) + 0.5).tanh().layer_norm(3, None, None, 1e-5);
    }
    let dw = grad(&y.square().mean(), &[&w]).remove(0).unwrap();
    let program = recorded(&[w.detach() - dw * 0.1], &[&w], &[&x]);
    let state = || {
        let g = graph();
        (g.last_seq(), g.live(), g.pending.len(), g.created, g.destroyed, g.pending_nodes().count())
    };
    let (before, metrics) = (state(), crate::insight::metrics::report());
    let start = std::time::Instant::now();
    let answer = program.asked(&[(program.of[0].unwrap(), 0)]);
    let took = start.elapsed();
    assert!(answer.is_ok());
    assert_eq!(state(), before);
    assert_eq!(crate::insight::metrics::report(), metrics);
    assert!(!xlazy_core::ir::is_aside() && crate::is_grad_enabled());
    println!("{} ops in {took:?}", program.steps.len());
    assert_eq!(pending.to_vec::<f32>(), [2.0; 12]);
}
