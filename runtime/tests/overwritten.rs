//! Writes in place to what a gradient needs: refused at `backward()` as in torch, with both lines. Which ops need what is
//! torch's own table (2.15, CPU): what `x.add_(1)` or `y.add_(1)` between `y = op(x)` and `backward()` says there.
mod support;

use support::{alone, refusal};
use xlazy::prelude::*;

/// An op, whether torch refuses a write to its operand and to its result.
type Row = (&'static str, fn(&Tensor) -> Tensor, bool, bool);

const TORCH: &[Row] = &[
    ("exp", |x| x.exp(), false, true),
    ("log", |x| x.log(), true, false),
    ("sqrt", |x| x.sqrt(), false, true),
    ("rsqrt", |x| x.rsqrt(), false, true),
    ("reciprocal", |x| x.reciprocal(), false, true),
    ("sin", |x| x.sin(), true, false),
    ("cos", |x| x.cos(), true, false),
    ("tan", |x| x.tan(), false, true),
    ("tanh", |x| x.tanh(), false, true),
    ("sigmoid", |x| x.sigmoid(), false, true),
    ("relu", |x| x.relu(), false, true),
    ("abs", |x| x.abs(), true, false),
    ("neg", |x| x.neg(), false, false),
    ("square", |x| x.square(), true, false),
    ("pow", |x| x.pow(3.0), true, false),
    ("mul by a number", |x| x * 2.0, false, false),
    ("add", |x| x + 2.0, false, false),
    ("mul by itself", |x| x * x, true, false),
    ("div by a number", |x| x / 2.0, false, false),
    ("gelu", |x| x.gelu(), true, false),
    ("silu", |x| x.silu(), true, false),
    ("softplus", |x| x.softplus(), true, false),
    ("elu", |x| x.elu(1.0), true, false),
    ("leaky_relu", |x| x.leaky_relu(0.01), true, false),
    ("softmax", |x| x.softmax(0), false, true),
    ("log_softmax", |x| x.log_softmax(0), false, true),
    ("sum", |x| x.sum(), false, false),
    ("mean", |x| x.mean(), false, false),
    ("var", |x| x.var(), true, false),
    ("cumsum", |x| x.cumsum(0), false, false),
    ("clamp", |x| x.clamp(-1.0, 1.0), true, false),
    ("erf", |x| x.erf(), true, false),
    ("expm1", |x| x.expm1(), false, true),
    ("log1p", |x| x.log1p(), true, false),
    ("atan", |x| x.atan(), true, false),
    ("sinh", |x| x.sinh(), true, false),
    ("cosh", |x| x.cosh(), true, false),
    ("exp2", |x| x.exp2(), false, true),
    ("log2", |x| x.log2(), true, false),
    ("floor", |x| x.floor(), false, false),
    ("matmul", |x| x.reshape([2, 3]).matmul(&x.reshape([3, 2])), true, false),
    ("dot", |x| x.dot(x), true, false),
    ("flip", |x| x.flip([0]), false, false),
    ("cat", |x| cat(&[x, x], 0), false, false),
    ("where", |x| x.where_(&x.gt(0.0), x * 2.0), false, false),
    ("index_select", |x| x.index_select(0, &tensor([0, 1])), false, false),
    ("clone", |x| x.copy(), false, false),
    ("sort", |x| x.sort(0, false).0, false, false),
    ("layer_norm", |x| x.layer_norm(6, None, None, 1e-5), true, false),
    ("logsigmoid", |x| x.logsigmoid(), true, false),
    ("mse_loss", |x| x.mse_loss(&Tensor::ones([6]), Reduction::Mean), true, false),
    ("maximum", |x| x.maximum(Tensor::ones([6])), true, false),
    ("norm", |x| x.norm(), true, true),
    ("std", |x| x.std(), true, true),
    ("prod", |x| x.prod(), true, true),
    ("logsumexp", |x| x.logsumexp(0, false), true, true),
    ("amax", |x| x.amax(0, false), true, true),
];

/// What torch refuses since the op is one there: here it is several, none of which needs what is written to, and the gradient is
/// that of what the op saw.
const RIGHT: &[(&str, &str)] = &[
    ("var", "operand"),
    ("std", "operand"),
    ("layer_norm", "operand"),
    ("logsigmoid", "operand"),
    ("mse_loss", "operand"),
    ("norm", "result"),
    ("std", "result"),
    ("prod", "result"),
    ("amax", "result"),
];

fn operand() -> Tensor {
    tensor([0.6, 0.9, 1.3, 0.7, 1.2, 0.8]).requires_grad_(true) * 1.0
}

#[test]
fn what_torch_refuses_is_refused_and_what_it_takes_is_taken() {
    let _alone = alone();
    let mut wrong = vec![];
    for (name, op, operand_needed, result_needed) in TORCH {
        for (which, needed) in [("operand", operand_needed), ("result", result_needed)] {
            let x = operand();
            let y = op(&x);
            let written = if which == "operand" { &x } else { &y };
            written.add_(1.0);
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| y.sum().backward())).is_err();
            if refused != *needed && !RIGHT.contains(&(name, which)) {
                wrong.push(format!("{name}: a write to its {which} is {}", if refused { "refused" } else { "taken" }));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn writes_through_views_and_to_parameters_count_and_an_ops_own_write_does_not() {
    let _alone = alone();
    let words = "one of the variables needed for gradient computation has been modified by an inplace operation";
    let refused = |f: fn()| {
        let said = refusal(f);
        assert!(said.starts_with(&format!("backward: {words}: ")) && said.contains("overwritten.rs"), "{said}");
    };
    // Through a view of the result, of a sibling of what was taken, and to a view whose base was taken.
    refused(|| {
        let y = operand().exp();
        y.select(0, 0).add_(1.0);
        y.sum().backward();
    });
    refused(|| {
        let x = operand().reshape([3, 2]);
        let y = x.select(0, 0).sin();
        x.select(0, 1).add_(1.0);
        y.sum().backward();
    });
    refused(|| {
        let x = operand();
        let y = x.sin();
        x.i(..2).mul_(2.0);
        y.sum().backward();
    });
    // A parameter that a step has changed since.
    refused(|| {
        let w = operand().detach().copy().requires_grad_(true);
        let loss = (&w * &w).sum();
        no_grad(|| w.add_(1.0));
        loss.backward();
    });
    refused(|| {
        let w = operand().detach().copy().requires_grad_(true);
        let mut sgd = optim::SGD::new([&w], 0.1);
        let (first, second) = ((&w * &w).sum(), (&w * &w * 2.0).sum());
        first.backward();
        sgd.step();
        second.backward();
    });
    // An op in place knows what it started from, in a loop, too; what nobody needs may change; a copy is apart.
    let x = operand();
    (0..3).for_each(|_| drop(x.sin_()));
    x.mul_(operand());
    x.i(..2).exp_();
    x.sum().backward();
    let x = operand();
    let y = x.copy().sin();
    x.add_(1.0);
    y.sum().backward();
    let (a, b) = (operand(), operand());
    let y = &b * &b;
    a.copy_(&b);
    a.add_(1.0);
    y.sum().backward();
}

#[test]
fn a_training_loop_that_writes_where_torch_lets_it_is_not_refused() {
    let _alone = alone();
    let model = nn::Sequential::new((nn::Linear::new(3, 4), nn::BatchNorm::new(4), nn::Linear::new(4, 1)));
    let mut adam = optim::Adam::new(model.parameters(), 1e-2);
    for _ in 0..3 {
        let h = model.forward(&Tensor::randn([8, 3]));
        h.add_(1.0).relu_();
        let loss = h.mean();
        adam.zero_grad();
        loss.backward();
        adam.step();
    }
}
