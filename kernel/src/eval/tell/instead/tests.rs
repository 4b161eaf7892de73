//! What is told of single lines, without rustc.
use super::*;

fn of(text: &str, what: &str) -> String {
    let at = text.find(what).unwrap();
    let ours = Ours::new(&String::new);
    let name = |about| instead(text, at..at + what.len(), about, &ours).map(|found| found.said);
    let said = name(About::Names).or_else(|| name(About::Types)).unwrap_or_default();
    said.split('`').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn rows_stand_for_what_is_like_them() {
    assert_eq!(of("let a = h.relu().sum(1) + 2;", "sum"), "h.relu().sum_dim(1, false)");
    assert_eq!(of("x.sum(dim=-1, keepdim=True)", "dim"), "x.sum_dim(-1, true)");
    assert_eq!(of("f(&loss_fn(a)[0])", "loss_fn(a)[0]"), "loss_fn(a).i(0)");
    assert_eq!(of("torch.zeros(4, n, 7)", "torch"), "Tensor::zeros([4, n, 7])");
    assert_eq!(of("F.relu(self.fc1.forward(x))", "F"), "self.fc1.forward(x).relu()");
    assert_eq!(of("if x.abs() > y { }", "x.abs() > y"), "x.abs().gt(y)");
    assert_eq!(of("net.train()", "train"), "net.train(true)");
    assert_eq!(of("len(v)", "len"), "v.size(0)");
    assert_eq!(of("let q = v + w;", "v"), "");
    assert_eq!(of("f(&g(a)[0].tolist())", "[0]"), "g(a).i(0)");
    // What is called of something stands in brackets where it must, and is not lent.
    assert_eq!(of("F::max_pool2d(&x, 2)", "F"), "x.max_pool2d(2, MaxPoolOptions::default())");
    assert_eq!(of("torch.sqrt(a + b)", "torch"), "(a + b).sqrt()");
    assert_eq!(of("torch::randint(n - 1, (8,))", "torch"), "Tensor::randint(0, n - 1, (8,))");
    assert_eq!(of("nn::functional::log_sigmoid(&h)", "log_sigmoid"), "");
    assert_eq!(of("nn::functional::silu(&h - 1.0)", "silu"), "(h - 1.0).silu()");
    assert_eq!(of("torch.linalg.inv(m)", "torch"), "m.inv()");
    // What is in it is told as well.
    assert_eq!(of("torch.tril(torch.ones(n, n))", "torch"), "Tensor::ones([n, n]).tril(0)");
    assert_eq!(of("torch.mean(torch.abs(a - b))", "torch"), "(a - b).abs().mean()");
    // Options have names of their own.
    assert_eq!(of("nn.Linear(8, 4, bias=False)", "nn"), "nn::Linear::without_bias(8, 4)");
    assert_eq!(of("nn::Linear::new(8, 4, bias=False)", "bias"), "nn::Linear::without_bias(8, 4)");
    assert_eq!(of("nn.Conv2d(1, 8, 3, padding=1)", "nn"), "nn::Conv2d::new(1, 8, 3).padding(1)");
    assert_eq!(
        of("nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1)", "nn"),
        "nn::Conv2d::new(1, 8, 3).stride(2).padding(1)"
    );
    assert_eq!(
        of("torch.cat([h(x) for h in self.heads], dim=-1)", "for"),
        "self.heads.iter().map(|h| h(x)).collect::<Vec<_>>()"
    );
}

#[test]
fn arguments_and_parts_are_as_rust_has_them() {
    let cases = "x.max() - x.min() > 1.0 | > | (x.max() - x.min()).gt(1.0)
        x > y * 2.0 - 1.0 | > | x.gt(y * 2.0 - 1.0)
        f(x == y + 1.0, 2) | == | x.eq(&(y + 1.0))
        torch.outer(v, w) | torch | v.outer(&w)
        torch.mean(v, dim=0, keepdim=True) | torch | v.mean_dim(0, true)
        optim.AdamW(p, lr=3e-4, eps=1e-6) | optim | optim::AdamW::new(p, 3e-4).eps(1e-6)
        Tensor::zeros([2, 3], F64) | zeros | Tensor::zeros([2, 3]).to(F64)
        h[0, :] | : | h.i((0, ..))
        h[..., 0] | ... | h.i((At::Ellipsis, 0))
        h[1:3, None, ::2] | : | h.i((1..3, None, At::Slice { start: None, end: None, step: 2 }))
        h.i(:, 1) + 1.0 | : | h.i((.., 1))
        x[:, 0] += 2.0; | : | x.set((.., 0), x.i((.., 0)) + 2.0)
        x[0] = y + 1.0 | [0] | x.set(0, y + 1.0)
        x[i] *= y - 1.0 | [i] | x.set(i, x.i(i) * (y - 1.0))
        x[x > 0.5] = 0.0 | > | x.set(x.gt(0.5), 0.0)
        x[y == 2] = torch.sqrt(z) | == | x.set(y.eq(2), z.sqrt())
        x[perm[0..k]] | [0..k] | perm.i(0..k)
        x[0] == y | [0] | x.i(0)
        ((w - 1.0) ** 2).mean() | ** | (w - 1.0).pow(2)
        return (w - 1.0) ** 2 | ** | (w - 1.0).pow(2)
        assert x.shape == (200, 2) | x | assert!(x.shape() == (200, 2))";
    for case in cases.lines() {
        let [text, what, instead] = case.split(" | ").collect::<Vec<_>>()[..] else { panic!("{case}") };
        assert_eq!(of(text.trim(), what), instead, "{text}");
    }
}
