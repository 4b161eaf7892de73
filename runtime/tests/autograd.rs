//! Gradients by other ways than the table's: parts computed again, functions of the user's, hooks, products with Jacobians.
mod support;

use std::sync::{Arc, Mutex};
use support::{Seeded, alone, close, compiles, refusal};
use xlazy::metrics::counter_value;
use xlazy::prelude::*;

fn values(t: &Tensor) -> Vec<f32> {
    t.to_vec::<f32>()
}

fn gradients(model: &dyn Module) -> Vec<Vec<f32>> {
    model.parameters().iter().map(|p| values(&p.grad().expect("a gradient"))).collect()
}

/// Blocks of a network, drawn: what is in them does not matter to `checkpoint`.
fn network(r: &mut Seeded) -> nn::Sequential {
    let mut net = nn::Sequential::new((nn::Linear::new(4, 6),));
    for _ in 0..2 {
        match r.below(5) {
            0 => net.push(nn::GELU::default()),
            1 => net.push(nn::Tanh),
            2 => net.push(nn::Dropout::new(0.4)),
            3 => net.push(nn::LayerNorm::new(6)),
            _ => net.push(nn::BatchNorm1d::new(6)),
        }
    }
    net.push(nn::Linear::new(6, 3));
    net
}

#[test]
fn what_is_computed_again_gives_the_same_gradients() {
    let _alone = alone();
    let mut r = Seeded(7);
    for round in 0..4u64 {
        let net = network(&mut r);
        let x0 = Tensor::from_vec(r.floats(20, -1.0, 1.0), [5, 4]);
        let state: Vec<(String, Tensor)> =
            net.state_dict().iter().map(|(n, t)| (n.clone(), t.detach().copy())).collect();
        sync();
        let nested = round % 3 == 0;
        let between = round % 2 == 1;
        let mut seen = vec![];
        for again in [false, true] {
            net.load_state_dict(&state).unwrap();
            net.zero_grad();
            manual_seed(round);
            let x = x0.copy().detach().requires_grad_(true);
            let run = |x: Tensor| net.iter().fold(x, |x, layer| layer.forward(&x));
            let y = match (again, nested) {
                (false, _) => run(x.clone()),
                (true, false) => checkpoint(run, &x),
                (true, true) => checkpoint(|x: Tensor| checkpoint(run, &x) * 1.0, &x),
            };
            if between {
                sync();
            }
            y.square().sum().backward();
            sync();
            let buffers: Vec<Vec<f32>> = net.named_buffers().iter().map(|(_, b)| values(&b.float())).collect();
            seen.push((values(&y), values(&x.grad().unwrap()), gradients(&net), buffers));
        }
        let (plain, again) = (&seen[0], &seen[1]);
        close(&plain.0, &again.0, 8, 1e-5).unwrap();
        close(&plain.1, &again.1, 8, 1e-4).unwrap_or_else(|e| panic!("round {round}: {e}"));
        plain.2.iter().zip(&again.2).for_each(|(a, b)| {
            let scale = a.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5 * scale), "round {round}: {a:?} {b:?}");
        });
        assert_eq!(plain.3, again.3, "round {round}: a batch's statistics are taken once");
    }
}

#[test]
fn a_part_that_is_computed_again_is_a_program_like_any_other() {
    let _alone = alone();
    let net = nn::Sequential::new((nn::Linear::new(4, 8), nn::Dropout::new(0.5), nn::Linear::new(8, 1)));
    let mut opt = optim::SGD::new(net.parameters(), 0.1);
    let x = Tensor::rand([3, 4]);
    sync();
    let step = |opt: &mut optim::SGD| {
        opt.zero_grad();
        checkpoint(|x: Tensor| net.forward(&x), &x).square().mean().backward();
        optimizer_step(opt);
    };
    assert_eq!([compiles(|| step(&mut opt)), compiles(|| step(&mut opt)), compiles(|| step(&mut opt))], [1, 0, 0]);
    // Its values may be read and branched on, and its results may be of several kinds.
    let w = tensor([1.0, 2.0]).requires_grad_(true);
    let (y, n) =
        checkpoint(|w: Tensor| if w.sum().item() > 0.0 { (&w * &w, tensor([3i64])) } else { (w, tensor([4i64])) }, &w);
    assert_eq!(n.to_vec::<i64>(), [3]);
    let dw = grad_with(&y.sum(), &[&w], true).remove(0).unwrap();
    assert_eq!(values(&dw), [2.0, 4.0]);
    assert_eq!(values(&grad(&(&dw * &dw).sum(), &[&w]).remove(0).unwrap()), [8.0, 16.0]);
    let unused = no_grad(|| checkpoint(|w: Tensor| w * 2.0, &w));
    assert!(!unused.requires_grad());
    let nodes = || counter_value("CreateXlaTensor").unwrap() - counter_value("DestroyXlaTensor").unwrap();
    let before = nodes();
    (0..3).for_each(|_| checkpoint(|w: Tensor| w.exp().sin(), &w).sum().backward());
    sync();
    assert!(nodes() <= before + 1, "the history goes with the gradient");
}

#[test]
fn what_is_computed_again_is_not_kept_meanwhile() {
    let _alone = alone();
    // Wide inside, narrow between.
    let wide: Vec<[nn::Linear; 2]> = (0..6).map(|_| [nn::Linear::new(8, 128), nn::Linear::new(128, 8)]).collect();
    let x = Tensor::rand([512, 8]);
    sync();
    let block = |b: &[nn::Linear; 2], x: &Tensor| b[1].forward(&b[0].forward(x).gelu().dropout(0.1, true)) + x;
    let step = |again: bool| {
        let run = |h: Tensor, b| if again { checkpoint(|x: Tensor| block(b, &x), &h) } else { block(b, &h) };
        wide.iter().fold(x.clone(), run).square().mean().backward();
        sync();
        insight::compilations().last().expect("it was compiled").clone()
    };
    let [kept, again] = [false, true].map(step);
    let bytes = |c: &insight::Compilation| c.memory.as_ref().map(|m| m.temporaries);
    if let (Some(kept), Some(again)) = (bytes(&kept), bytes(&again)) {
        assert!(2 * again < kept, "{again} bytes instead of {kept}");
    }
    if let (Some(kept), Some(again)) = (kept.flops, again.flops) {
        assert!(again > 1.1 * kept, "{again} operations instead of {kept}");
    }
}

/// x^k, with its derivative by hand, which remembers whether it was asked.
struct Power {
    k: f64,
    asked: Arc<Mutex<usize>>,
}

impl Function for Power {
    fn forward(&self, ctx: &mut Context, x: &[Tensor]) -> Vec<Tensor> {
        let y = x[0].pow(self.k);
        ctx.save_for_backward(&[&x[0], &y]);
        vec![y, x[0].gt(0.0)]
    }
    fn backward(&self, ctx: &Context, dy: &[Tensor]) -> Vec<Option<Tensor>> {
        *self.asked.lock().unwrap() += 1;
        let [x, y] = ctx.saved_tensors() else { unreachable!("two were saved") };
        vec![Some(&dy[0] * (y / x * self.k)).filter(|_| ctx.needs_input_grad(0))]
    }
}

#[test]
fn a_function_of_ones_own_is_differentiated_twice_and_in_loops() {
    let _alone = alone();
    let asked = Arc::new(Mutex::new(0));
    let power = |k: f64| Power { k, asked: asked.clone() };
    let x = tensor([2.0, -3.0]).double().detach().requires_grad_(true);
    let both = power(3.0).apply_all(&[&x]);
    assert_eq!((both[0].to_vec::<f64>(), both[1].to_vec::<bool>()), (vec![8.0, -27.0], vec![true, false]));
    assert!(both[0].requires_grad() && !both[1].requires_grad());
    let dx = grad_with(&both[0].sum(), &[&x], true).remove(0).unwrap();
    assert_eq!(dx.to_vec::<f64>(), [12.0, 27.0]);
    // The saved result is differentiated through the function once more.
    let ddx = grad(&dx.sum(), &[&x]).remove(0).unwrap();
    assert!(ddx.to_vec::<f64>().iter().zip([12.0, -18.0]).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-9), "{ddx}");
    assert!(*asked.lock().unwrap() >= 2);
    // In a loop's body, in a part that is computed again, after a sync.
    let (last, _) = scan_with(
        |x: Tensor, ()| (power(2.0).apply(&[&x]) * 0.5, ()),
        &x,
        &(),
        ScanOptions { length: Some(2), ..Default::default() },
    );
    let again = checkpoint(|x: Tensor| power(2.0).apply(&[&(power(2.0).apply(&[&x]) * 0.5)]) * 0.5, &x);
    let dx = grad(&last.sum(), &[&x]).remove(0).unwrap().to_vec::<f64>();
    assert_eq!(dx, grad(&again.sum(), &[&x]).remove(0).unwrap().to_vec::<f64>());
    assert_eq!(dx, [4.0, -13.5]);
    let y = power(2.0).apply(&[&x]);
    sync();
    y.sum().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), [4.0, -6.0]);
}

struct Wrong(usize);

impl Function for Wrong {
    fn forward(&self, _: &mut Context, x: &[Tensor]) -> Vec<Tensor> {
        vec![&x[0] * 2.0]
    }
    fn backward(&self, _: &Context, dy: &[Tensor]) -> Vec<Option<Tensor>> {
        vec![Some(dy[0].sum().expand([3])); self.0]
    }
}

#[test]
fn what_is_no_gradient_is_refused() {
    let _alone = alone();
    let x = tensor([2.0, 3.0]).requires_grad_(true);
    let said = refusal(|| Wrong(2).apply(&[&x]).sum().backward());
    assert!(said.contains("`backward` of `Wrong` gives 2 gradients, and it was applied to 1 tensors"), "{said}");
    let said = refusal(|| Wrong(1).apply(&[&x]).sum().backward());
    assert!(said.contains("gives f32[3] as the gradient of input 0, which is f32[2]"), "{said}");
    let said = refusal(|| tensor([1.0]).register_hook(|_| None));
    assert!(said.contains("does not require gradients"), "{said}");
    let hook = x.register_hook(|dx| Some(dx.sum()));
    let said = refusal(|| (&x * 2.0).sum().backward());
    assert!(said.contains("was given f32[2] and gave back f32[]"), "{said}");
    hook.remove();
    let said = refusal(|| {
        checkpoint(
            |x: Tensor| {
                let y = x * 2.0;
                y.register_hook(|_| None);
                y.sin()
            },
            &x,
        )
    });
    assert!(said.contains("hook what goes in or comes out"), "{said}");
}

#[test]
fn hooks_are_called_in_order_and_taken_off() {
    let _alone = alone();
    let w = tensor([1.0, 2.0]).requires_grad_(true);
    let seen = Arc::new(Mutex::new(vec![]));
    let to = seen.clone();
    let first = w.register_hook(move |dw| {
        to.lock().unwrap().push(values(dw));
        Some(dw * 2.0)
    });
    let to = seen.clone();
    w.register_hook(move |dw| {
        to.lock().unwrap().push(values(dw));
        None
    });
    let mut opt = optim::SGD::new(vec![w.clone()], 0.5);
    (&w * 3.0 + &w).sum().backward();
    optimizer_step(&mut opt);
    assert_eq!(*seen.lock().unwrap(), [[4.0, 4.0], [8.0, 8.0]], "once, with the whole sum");
    assert_eq!(values(&w), [-3.0, -2.0]);
    first.remove();
    opt.zero_grad();
    (&w * 1.0).sum().backward();
    assert_eq!(seen.lock().unwrap()[2..], [[1.0, 1.0]], "a parameter's hook stays through steps");
    let y = &w * 2.0;
    y.retain_grad();
    let z = y.square();
    z.register_hook(|dz| Some(dz * 10.0));
    z.sum().backward();
    assert_eq!(values(&y.grad().unwrap()), [10.0 * 2.0 * -6.0, 10.0 * 2.0 * -4.0]);
}

#[test]
fn a_modules_hooks_see_and_change_what_goes_through() {
    let _alone = alone();
    let layer = nn::Hooked::new(nn::Linear::new(2, 2));
    let names: Vec<String> = layer.named_parameters().into_iter().map(|p| p.0).collect();
    assert_eq!((names, layer.is("Linear")), (vec!["weight".to_owned(), "bias".to_owned()], true));
    let x = tensor([[1.0, 2.0]]).requires_grad_(true);
    let plain = values(&layer.weight.matmul(&tensor([2.0, 4.0])));
    let hooks = [
        layer.register_forward_pre_hook(|_, x| Some(x * 2.0)),
        layer.register_forward_hook(|m, _, y| m.bias.as_ref().map(|b| y - b)),
        layer.register_full_backward_hook(|dx, dy| dx.map(|dx| dx * dy.sum())),
    ];
    let y = layer.forward(&x);
    close(&values(&y), &plain, 8, 1e-5).unwrap();
    (&y * 3.0 + &x * 0.0).sum().backward();
    let expected: Vec<f32> = values(&layer.weight.sum_dim(0, false)).iter().map(|w| w * 3.0 * 6.0 * 2.0).collect();
    close(&values(&x.grad().unwrap()), &expected, 64, 1e-4).unwrap();
    hooks.into_iter().for_each(Hook::remove);
    close(
        &values(&(layer.forward(&x) - layer.bias.as_ref().unwrap())),
        &plain.iter().map(|v| v / 2.0).collect::<Vec<_>>(),
        64,
        1e-5,
    )
    .unwrap();
}

#[test]
fn products_with_jacobians_are_those_of_differences() {
    let _alone = alone();
    let mut r = Seeded(3);
    let random = |r: &mut Seeded, n: usize| Tensor::from_vec(r.floats(n, -1.0, 1.0), [n]).double();
    let f = |(a, b): (Tensor, Tensor)| (a.sin() * &b, (a.exp() + b.i(..3).square()).cumsum(0));
    let (a, b) = (random(&mut r, 3), random(&mut r, 3));
    let (va, vb) = (random(&mut r, 3), random(&mut r, 3));
    let ((y, z), (dy, dz)) = jvp(f, &(a.clone(), b.clone()), &(va.clone(), vb.clone()));
    let h = 1e-6;
    let plus = f((&a + &va * h, &b + &vb * h));
    let minus = f((&a - &va * h, &b - &vb * h));
    let near = |a: &Tensor, b: &Tensor| assert!((a - b).abs().max().item() < 1e-7, "{a} {b}");
    near(&dy, &((&plus.0 - &minus.0) / (2.0 * h)));
    near(&dz, &((&plus.1 - &minus.1) / (2.0 * h)));
    // <u, J v> = <uᵀ J, v>
    let (u, w) = (random(&mut r, 3), random(&mut r, 3));
    let ((y2, _), (da, db)) = vjp(f, &(a, b), &(u.clone(), w.clone()));
    near(&y, &y2);
    let _ = z;
    near(&((&u * dy).sum() + (w * dz).sum()), &((da * va).sum() + (db * vb).sum()));
    let (_, none) = jvp(|_: Tensor| tensor([1.0]), &tensor([1.0]), &tensor([1.0]));
    assert_eq!(values(&none), [0.0]);
    let said = refusal(|| vjp(|x: Tensor| x * 2.0, &tensor([1.0, 2.0]), &tensor([1.0])));
    assert!(said.contains("the vector has a tensor for each result, of its shape: [2], and not [1]"), "{said}");
}

#[test]
fn a_parameter_that_is_assigned_to_stays_one() {
    let _alone = alone();
    let mut w = tensor([1.0f32, 2.0]).requires_grad_(true);
    let other = w.clone();
    for _ in 0..3 {
        (&w * 2.0).sum().backward();
        no_grad(|| w -= w.grad().unwrap() * 0.1);
        no_grad(|| w *= 0.5);
        w.set_grad(None);
        assert!(w.requires_grad() && w.is_leaf());
    }
    close(&values(&w), &[-0.05, 0.075], 2, 1e-6).unwrap();
    assert_eq!(values(&other), values(&w), "it is the same parameter");
    let said = refusal(|| w += 1.0);
    assert!(said.contains("a leaf Variable that requires grad is being used in an in-place operation"), "{said}");
    let mut plain = tensor([1.0f32]);
    let before = plain.clone();
    plain += 1.0;
    assert_eq!((values(&before), values(&plain)), (vec![1.0], vec![2.0]));
}

#[test]
fn gradients_of_several_outputs_add_up() {
    let _alone = alone();
    let x = tensor([1.0, 2.0, 3.0]).requires_grad_(true);
    let z = tensor([5.0]).requires_grad_(true);
    let (a, b) = (x.pow(3.0).sum(), (&x * tensor([1.0, 10.0, 100.0])).sum());
    let sum = grad(&(&a + &b), &[&x]).remove(0).unwrap();
    for both in [
        grad(&[&a, &b], &[&x, &z]),
        grad(&vec![a.clone(), b.clone()], &[&x, &z]),
        grad(&[a.clone(), b.clone()], &[&x, &z]),
    ] {
        assert_eq!(values(both[0].as_ref().unwrap()), values(&sum));
        assert!(both[1].is_none());
    }
    assert_eq!(values(grad(&[&a, &a], &[&x])[0].as_ref().unwrap()), [6.0, 24.0, 54.0], "one of them twice");
    // what flows in, by output; those of several elements need it
    let (squares, v, w) = (x.square(), tensor([1.0, 0.5, 0.25]), tensor(4.0));
    let options = || GradOptions { grad_outputs: vec![v.clone(), w.clone()], create_graph: true };
    let dx = grad_with(&[&squares, &b], &[&x], options()).remove(0).unwrap();
    let by_hand = grad(&((&squares * &v).sum() + &b * &w), &[&x]).remove(0).unwrap();
    assert_eq!(values(&dx), values(&by_hand));
    assert_eq!(values(grad(&dx.sum(), &[&x])[0].as_ref().unwrap()), [2.0, 1.0, 0.5]);
    let said = refusal(|| grad(&[&b, &squares], &[&x]));
    assert!(said.contains("only for one element"), "{said}");
    let said = refusal(|| {
        grad_with(&[&b, &squares], &[&x], GradOptions { grad_outputs: vec![w.clone()], ..Default::default() })
    });
    assert!(said.contains("a gradient for each output: 2, not 1"), "{said}");
    assert!(refusal(|| grad(&[&b, &v], &[&x])).contains("requires_grad_(true)"));
}
