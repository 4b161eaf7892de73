//! Wrong calls: each is refused in the name of its op, with what it was given, and the session goes on.
mod support;

use std::panic::Location;
use support::{alone, refusal};
use xlazy::prelude::*;

/// A call that must be refused, its name, with which the refusal begins, and what it must say.
struct Wrong(&'static Location<'static>, &'static str, &'static [&'static str], Box<dyn Fn()>);

#[track_caller]
fn wrong<T>(op: &'static str, says: &'static [&'static str], call: impl Fn() -> T + 'static) -> Wrong {
    Wrong(Location::caller(), op, says, Box::new(move || drop(call())))
}

fn ones(shape: &[i64]) -> Tensor {
    Tensor::ones(shape.to_vec())
}

fn all() -> Vec<Wrong> {
    let f = |shape: &'static [i64]| move || Tensor::ones(shape.to_vec());
    let (a, b, c) = (f(&[2, 3]), f(&[4]), f(&[5, 6]));
    let whole = || Tensor::ones([3]).to(I64);
    let (image, volume) = (f(&[1, 2, 8, 8]), f(&[1, 2, 4, 4, 4]));
    vec![
        wrong("optimizer", &["f32[2]", "non-leaf"], || {
            optim::SGD::new(&Tensor::ones([3, 2]).requires_grad_(true), 0.1)
        }),
        wrong("add", &["f32[2,3]", "f32[4]", "-1"], move || a() + b()),
        wrong("sub", &["f32[2,3]", "f32[4]"], move || a() - b()),
        wrong("mul", &["f32[2,3]", "f32[5,6]"], move || a() * c()),
        wrong("div", &["f32[2,3]", "f32[4]"], move || a() / b()),
        wrong("pow", &["f32[2,3]", "f32[4]"], move || a().pow(b())),
        wrong("maximum", &["f32[2,3]", "f32[4]"], move || a().maximum(b())),
        wrong("minimum", &["f32[2,3]", "f32[4]"], move || a().minimum(b())),
        wrong("atan2", &["f32[2,3]", "f32[4]"], move || a().atan2(b())),
        wrong("eq", &["f32[2,3]", "f32[4]"], move || a().eq(b())),
        wrong("lt", &["f32[2,3]", "f32[4]"], move || a().lt(b())),
        wrong("where", &["f32[2,3]", "bool"], move || a().where_(&a(), b())),
        wrong("matmul", &["f32[2,3]", "f32[5,6]"], move || a().matmul(&c())),
        wrong("matmul", &["f32[2,3]", "f32[4]"], move || a().matmul(&b())),
        wrong("matmul", &["f32[2,3]", "f64[3,2]"], move || a().matmul(&a().t().double())),
        wrong("matmul", &["f32[]"], move || Tensor::ones(()).matmul(&a())),
        wrong("bmm", &["f32[2,3]"], move || a().bmm(&a())),
        wrong("mm", &["f32[2,3]"], move || a().mm(&a())),
        wrong("mv", &["f32[2,3]", "f32[4]"], move || a().mv(&b())),
        wrong("dot", &["f32[4]", "f32[2,3]"], move || b().dot(&a())),
        wrong("reshape", &["f32[2,3]", "7"], move || a().reshape([7])),
        wrong("reshape", &["f32[2,3]", "-1"], move || a().reshape([-1, -1])),
        wrong("view", &["f32[3,2]"], move || a().t().view([6])),
        wrong("permute", &["f32[2,3]"], move || a().permute([0, 0])),
        wrong("permute", &["f32[2,3]"], move || a().permute([0])),
        wrong("transpose", &["f32[2,3]", "5"], move || a().transpose(0, 5)),
        wrong("t", &["f32[1,2,8,8]"], move || image().t()),
        wrong("expand", &["f32[2,3]"], move || a().expand([4, 3])),
        wrong("unsqueeze", &["f32[2,3]", "7"], move || a().unsqueeze(7)),
        wrong("squeeze", &["f32[2,3]", "4"], move || a().squeeze_dim(4)),
        wrong("flatten", &["f32[2,3]"], move || a().flatten_dims(1, 0)),
        wrong("cat", &["f32[2,3]", "f32[4]"], move || cat(&[&a(), &b()], 0)),
        wrong("cat", &["f32[2,3]", "f32[5,6]"], move || cat(&[&a(), &c()], 0)),
        wrong("cat", &[], || cat::<Tensor>(&[], 0)),
        wrong("stack", &["f32[2,3]", "f32[4]"], move || stack(&[&a(), &b()], 0)),
        wrong("sum", &["f32[2,3]", "2"], move || a().sum_dim(2, false)),
        wrong("mean", &["i64[3]"], move || whole().mean()),
        wrong("std", &["i64[3]"], move || whole().std()),
        wrong("var", &["i64[3]"], move || whole().var()),
        wrong("max_dim", &["f32[2,3]", "3"], move || a().max_dim(3, false)),
        wrong("argmax", &["f32[2,3]", "-4"], move || a().argmax_dim(-4, false)),
        wrong("softmax", &["f32[2,3]", "2"], move || a().softmax(2)),
        wrong("log_softmax", &["f32[2,3]", "-3"], move || a().log_softmax(-3)),
        wrong("cumsum", &["f32[2,3]", "2"], move || a().cumsum(2)),
        wrong("cumprod", &["f32[2,3]", "-3"], move || a().cumprod(-3)),
        wrong("sort", &["f32[2,3]", "9"], move || a().sort(9, false)),
        wrong("topk", &["f32[2,3]", "4"], move || a().topk(4, 1, true)),
        wrong("flip", &["f32[2,3]"], move || a().flip([0, 0])),
        wrong("roll", &["f32[2,3]", "2"], move || a().roll(1, 2)),
        wrong("slice", &["f32[2,3]", "step"], move || a().slice(0, 0, 2, 0)),
        wrong("narrow", &["f32[2,3]", "3"], move || a().narrow(1, 2, 3)),
        wrong("select", &["f32[2,3]", "2"], move || a().select(0, 2)),
        wrong("index_select", &["f32[2,3]", "f32[4]"], move || a().index_select(0, &b())),
        wrong("index_select", &["f32[2,3]", "7"], move || a().index_select(0, &tensor([7]))),
        wrong("gather", &["f32[2,3]", "i64[3]"], move || a().gather(1, &whole())),
        wrong("scatter", &["f32[2,3]"], move || a().scatter_add(0, &whole(), a())),
        wrong("embedding", &["f32[2,3]", "f32[4]"], move || b().embedding(&a())),
        wrong("one_hot", &["f32[4]"], move || b().one_hot(3)),
        wrong("tril", &["f32[4]"], move || b().tril(0)),
        wrong("diagonal", &["f32[4]"], move || b().diagonal(0, 0, 1)),
        wrong("trace", &["f32[4]"], move || b().trace()),
        wrong("conv2d", &["f32[1,2,8,8]", "f32[4,3,3,3]"], move || {
            image().conv2d(&Tensor::ones([4, 3, 3, 3]), None, ConvOptions::default())
        }),
        wrong("conv2d", &["f32[2,3]"], move || a().conv2d(&Tensor::ones([4, 3, 3, 3]), None, ConvOptions::default())),
        wrong("conv1d", &["f32[1,2,8,8]"], move || image().conv1d(&a(), None, ConvOptions::default())),
        wrong("conv2d", &["f32[1,2,8,8]", "[3]", "4 channels"], move || {
            image().conv2d(&Tensor::ones([4, 2, 3, 3]), Some(&Tensor::ones([3])), ConvOptions::default())
        }),
        wrong("layer_norm", &["f32[2,3]", "[1]"], move || a().layer_norm(3, Some(&Tensor::ones([1])), None, 1e-5)),
        wrong("batch_norm", &["f32[1,2,8,8]", "2 channels"], move || {
            image().batch_norm(
                None,
                None,
                Some(&Tensor::ones([1])),
                None,
                BatchNormOptions { training: true, ..Default::default() },
            )
        }),
        wrong("group_norm", &["f32[1,2,8,8]", "2 channels"], move || {
            image().group_norm(1, None, Some(&Tensor::ones([1])), 1e-5)
        }),
        wrong("movedim", &["f32[2,3]", "twice"], move || a().movedim([0, 1], [0, 0])),
        wrong("tensordot", &["f32[2,3]", "f32[5,6]", "3 and 5"], move || a().tensordot(&c(), 1)),
        wrong("baddbmm", &["f32[2,3]"], move || a().baddbmm(&a(), &a())),
        wrong("swapaxes", &["f32[2,3]", "2"], move || a().swapaxes(0, 2)),
        wrong("diag_embed", &["f32[4]"], move || b().diag_embed(0, 1, 1)),
        wrong("masked_fill_", &["i64[3]"], move || whole().masked_fill_(&whole(), 1)),
        wrong("max_pool2d", &["f32[2,3]"], move || a().max_pool2d(2, MaxPoolOptions::default())),
        wrong("max_pool2d", &["f32[1,2,8,8]", "9"], move || image().max_pool2d(9, MaxPoolOptions::default())),
        wrong("avg_pool2d", &["f32[4]"], move || b().avg_pool2d(2, AvgPoolOptions::default())),
        wrong("max_pool3d", &["f32[1,2,4,4,4]"], move || volume().max_pool3d(7, MaxPoolOptions::default())),
        wrong("layer_norm", &["f32[2,3]", "4"], move || a().layer_norm(4, None, None, 1e-5)),
        wrong("cross_entropy", &["f32[2,3]", "i64[3]"], move || a().cross_entropy(&whole(), Default::default())),
        wrong("nll_loss", &["f32[2,3]", "f32[4]"], move || a().nll_loss(&b(), Default::default())),
        wrong("mse_loss", &["f32[2,3]", "f32[4]"], move || a().mse_loss(&b(), Reduction::Mean)),
        wrong("linear", &["f32[2,3]", "f32[5,6]"], move || a().linear(&c(), None)),
        wrong("cholesky", &["f32[2,3]"], move || a().cholesky(false)),
        wrong("inv", &["f32[2,3]"], move || a().inv()),
        wrong("det", &["f32[4]"], move || b().det()),
        wrong("complex", &["f32[4]", "f64[4]"], move || b().complex(&b().double())),
        wrong("bitwise_and", &["f32[4]"], move || b().bitwise_and(b())),
        wrong("bitwise_not", &["f32[4]"], move || b().bitwise_not()),
        wrong("neg", &["bool[4]"], move || -b().gt(0.0)),
        wrong("sub", &["bool[4]"], move || b().gt(0.0) - b().gt(0.0)),
        wrong("rand", &["i64[3]"], move || whole().rand_like()),
        wrong("dropout", &["f32[4]", "1.5"], move || b().dropout(1.5, true)),
        wrong("randint", &["5"], || Tensor::randint(5, 5, [2])),
        wrong("add_", &["i64[3]"], move || whole().add_(1.5)),
        wrong("add_", &["f32[4]", "f32[2,4]"], move || b().add_(Tensor::ones([2, 4]))),
        wrong("copy_", &["f32[2,3]"], move || b().copy_(a())),
        wrong("item", &["f32[2,3]", "6"], move || a().item()),
        wrong("to_vec", &["f32[4]", "i64"], move || b().to_vec::<i64>()),
        wrong("size", &["f32[2,3]", "2"], move || a().size(2)),
        wrong("requires_grad_", &["i64[3]"], move || whole().requires_grad_(true)),
        wrong("backward", &["f32[]"], move || b().sum().backward()),
        wrong("backward", &["f32[4]"], move || (b().requires_grad_(true) * 2.0).backward()),
        wrong("scan", &["f32[4]", "f32[]"], move || scan(|h: Tensor, _: Tensor| (h.sum(), ()), &b(), &b())),
        wrong("map", &["f32[2,3]", "f32[4]"], move || map(|(x, y): (Tensor, Tensor)| x.sum() + y, &(a(), b()))),
        wrong("cond", &["f32[]", "bool"], move || cond(&b().sum(), |x: Tensor| x, |x| x, &b())),
        wrong("switch", &["f32[]", "integer"], move || switch(&b().sum(), &[&|x: Tensor| x], &b())),
        wrong("while_loop", &["f32[4]", "bool"], move || while_loop(|x: Tensor| x, |x| x, &b())),
        wrong("fori_loop", &["f32[4]"], move || fori_loop(0, b(), |_, x: Tensor| x, &b())),
        wrong("associative_scan", &["f32[2,3]", "f32[4]"], move || {
            associative_scan(|x: (Tensor, Tensor), _| x, &(a(), b()), 0)
        }),
        wrong("slice_scatter", &["f32[2,3]", "f32[4]"], move || a().slice_scatter(&b(), 0, 0, 2, 1)),
        // What would broadcast, and torch does not.
        wrong("addmm", &["f32[2,2]", "f32[5,2,2]"], move || ones(&[5, 2, 2]).addmm(&a(), &a().t())),
        wrong("addmv", &["f32[2]", "f32[5,2]"], move || ones(&[5, 2]).addmv(&a(), &ones(&[3]))),
        wrong("baddbmm", &["f32[1,2,2]", "f32[3,2,2]"], move || {
            ones(&[3, 2, 2]).baddbmm(&ones(&[1, 2, 3]), &ones(&[1, 3, 2]))
        }),
        wrong("addbmm", &["f32[2,2]", "f32[3,2,2]"], move || {
            ones(&[3, 2, 2]).addbmm(&ones(&[1, 2, 3]), &ones(&[1, 3, 2]))
        }),
        wrong("addr", &["f32[4,4]", "f32[3,4,4]"], move || ones(&[3, 4, 4]).addr(&b(), &b())),
        wrong("addr_with", &["f32[4,4]", "f32[3,4,4]"], move || ones(&[3, 4, 4]).addr_with(&b(), &b(), 1.0, 1.0)),
        wrong("inner", &["f32[2,3]", "f32[2,1]"], move || a().inner(&ones(&[2, 1]))),
        wrong("binary_cross_entropy", &["f32[2,3]", "f32[3]", "shape"], move || {
            a().binary_cross_entropy(&ones(&[3]), None, Reduction::Mean)
        }),
        wrong("binary_cross_entropy", &["f32[2,3]", "f32[2,2,3]", "weight"], move || {
            a().binary_cross_entropy(&a(), Some(&ones(&[2, 2, 3])), Reduction::Mean)
        }),
        wrong("binary_cross_entropy_with_logits", &["f32[2,3]", "f32[2,1]"], move || {
            a().binary_cross_entropy_with_logits(&ones(&[2, 1]), None, None, Reduction::Mean)
        }),
        wrong("binary_cross_entropy_with_logits", &["f32[2,3]", "f32[4,2,3]", "pos_weight"], move || {
            a().binary_cross_entropy_with_logits(&a(), None, Some(&ones(&[4, 2, 3])), Reduction::Mean)
        }),
        wrong("soft_margin_loss", &["f32[2,3]", "f32[2,2,3]"], move || {
            a().soft_margin_loss(&ones(&[2, 2, 3]), Reduction::Mean)
        }),
        wrong("margin_ranking_loss", &["f32[2,3]", "f32[3]"], move || {
            a().margin_ranking_loss(&a(), &ones(&[3]), 0.0, Reduction::Mean)
        }),
        wrong("triplet_margin_loss", &["f32[2,3]", "margin", "-1"], move || {
            a().triplet_margin_loss(&a(), &a(), -1.0, Reduction::Mean)
        }),
        wrong("group_norm", &["f32[2,4,3]", "f32[1,4]"], move || {
            ones(&[2, 4, 3]).group_norm(2, Some(&ones(&[1, 4])), None, 1e-5)
        }),
        wrong("instance_norm", &["f32[2,3,1]", "one value"], move || ones(&[2, 3, 1]).instance_norm(None, None, 1e-5)),
        wrong("index_add", &["f32[2,3]", "f32[3,2]"], move || a().index_add(0, &tensor([0, 1]), &ones(&[3, 2]))),
        wrong("index_copy", &["f32[2,3]", "i64[1,2]"], move || a().index_copy(0, &tensor([[0, 1]]), &a())),
        wrong("meshgrid", &["f32[2,3]", "vectors"], move || meshgrid(&[&a()]).remove(0)),
        wrong("meshgrid", &["f32[4]", "i64[3]"], move || meshgrid(&[&b(), &whole()]).remove(0)),
        wrong("cartesian_prod", &["f32[2,3]"], move || xlazy::cartesian_prod(&[&b(), &a()])),
        wrong("heaviside", &["f32[2,3]", "i64[3]"], move || a().heaviside(&whole())),
        wrong("cross", &["f32[2,3]", "i64[3]"], move || a().cross(&whole(), -1)),
        // Dtypes that torch's kernels do not have.
        wrong("softmax", &["i64[3]", "float"], move || whole().softmax(0)),
        wrong("log_softmax", &["c64[2,3]", "float"], move || a().to(DType::C64).log_softmax(0)),
        wrong("softmin", &["bool[2,3]", "float"], move || a().gt(0.0).softmin(0)),
        wrong("cosine_similarity", &["i64[3]", "float"], move || whole().cosine_similarity(&whole(), 0, 1e-8)),
        wrong("linalg_norm", &["i64[3]", "float"], move || whole().linalg_norm(None, (), false)),
        wrong("xlogy", &["c64[2,3]"], move || a().to(DType::C64).xlogy(2.0)),
        wrong("copysign", &["c64[2,3]"], move || a().to(DType::C64).copysign(2.0)),
        wrong("entr", &["c64[2,3]"], move || a().to(DType::C64).entr()),
        wrong("vecdot", &["f32[2,3]", "f64[2,3]"], move || a().vecdot(&a().double(), -1)),
        wrong("addmm_with", &["f32[2,2]", "f64[3,2]"], move || {
            ones(&[2, 2]).addmm_with(&a(), &a().t().double(), 1.0, 1.0)
        }),
        wrong("batch_norm", &["c64[2,3]"], move || {
            a().to(DType::C64).batch_norm(
                None,
                None,
                None,
                None,
                BatchNormOptions { training: true, ..Default::default() },
            )
        }),
        wrong("nll_loss", &["f32[2,3]", "f64[3]"], move || {
            let weight = Some(ones(&[3]).double());
            a().nll_loss(&tensor([0, 1]), CrossEntropyOptions { weight, ..Default::default() })
        }),
        wrong("squeeze_dims", &["f32[2,3]", "twice"], move || a().squeeze_dims([0, 0])),
        wrong("sub", &["f32[2,3]", "bool[2,3]"], move || a() - a().gt(0.0)),
        wrong("stft", &["i64[3]"], move || whole().stft(2, xlazy::StftOptions::default())),
        wrong("multilabel_margin_loss", &["f32[2,3]", "integers"], move || {
            a().multilabel_margin_loss(&a(), Reduction::Mean)
        }),
        wrong("cov", &["f32[2,3]", "f32[3]", "integers"], move || a().cov(1.0, Some(&ones(&[3])), None)),
        wrong("cov", &["i64[3]", "-1"], move || a().cov(1.0, Some(&tensor([1, -1, 2])), None)),
        wrong("cov", &["f32[2,3]", "i64[3]", "floats"], move || a().cov(1.0, None, Some(&whole()))),
        wrong("silu", &["i64[3]", "float"], move || whole().silu()),
        wrong("elu", &["i64[3]", "float"], move || whole().elu(1.0)),
        wrong("mish", &["bool[2,3]", "float"], move || a().gt(0.0).mish()),
        wrong("logsigmoid", &["c64[2,3]", "float"], move || a().to(DType::C64).logsigmoid()),
        wrong("trapezoid", &["bool[2,3]"], move || a().gt(0.0).trapezoid(None, 1.0, -1)),
        wrong("rot90", &["f32[2,3]", "1 and -1"], move || a().rot90(1, [1, -1])),
        wrong("linear", &["f32[2,3]", "f32[1,2,3]"], move || a().linear(&ones(&[1, 2, 3]), None)),
        wrong("cov", &["f32[2,3]", "i64[2]", "3 observations"], move || a().cov(1.0, Some(&tensor([1, 2])), None)),
        wrong("isclose", &["f32[2,3]", "-1"], move || a().isclose(&a(), 0.0, -1.0)),
        wrong("prelu", &["f32[2,3]", "f32[1,3]", "vector"], move || a().prelu(&ones(&[1, 3]))),
        wrong("celu", &["f32[2,3]", "0"], move || a().celu(0.0)),
        // Parameters that mean nothing.
        wrong("softshrink", &["f32[2,3]", "-1"], move || a().softshrink(-1.0)),
        wrong("renorm", &["f32[2,3]", "-1"], move || a().renorm(2.0, 0, -1.0)),
        wrong("pdist", &["f32[2,3]", "-2"], move || a().pdist(-2.0)),
        wrong("diff", &["f32[]"], move || Tensor::ones(()).diff(1, 0)),
        wrong("kthvalue", &["f32[]", "2"], move || Tensor::ones(()).kthvalue(2, 0, false).0),
        wrong("hardtanh", &["f32[2,3]", "above"], move || a().hardtanh(1.0, -1.0)),
        wrong("hardtanh", &["bool[2,3]"], move || a().gt(0.0).hardtanh(-1.0, 1.0)),
        wrong("relu", &["bool[2,3]"], move || a().gt(0.0).relu()),
        wrong("glu", &["i64[4]"], move || tensor([1, 2, 3, 4]).glu(0)),
        wrong("logaddexp2", &["c64[2,3]"], move || a().to(DType::C64).logaddexp2(&a())),
    ]
}

#[test]
fn a_hundred_wrong_calls_are_refused_by_name() {
    let _alone = alone();
    let all = all();
    let mut unclear = vec![];
    for Wrong(at, op, says, call) in &all {
        let said = refusal(call);
        let missing: Vec<&&str> = says.iter().filter(|word| !said.contains(**word)).collect();
        let named = said.split(['(', ':']).next().is_some_and(|name| name.rsplit('.').next() == Some(op));
        if !named || !missing.is_empty() {
            unclear.push(format!("line {}: {op} with {missing:?}: {said}", at.line()));
        }
    }
    // The session goes on, and nothing of them is pending.
    assert_eq!((Tensor::ones([2]) * 3.0).to_vec::<f32>(), [3.0, 3.0]);
    assert!(all.len() >= 100, "{}", all.len());
    assert!(unclear.is_empty(), "{} of {}:\n{}", unclear.len(), all.len(), unclear.join("\n"));
}
