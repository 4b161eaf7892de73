//! Loops and branches on the device: what they compute, what flows back through them, what they refuse, what compiles.
mod support;

use support::{alone, compiles, refusal};
use xlazy::prelude::*;
use xlazy::show;

fn ops_of(t: &Tensor) -> usize {
    show::stablehlo(t, false).plain().lines().filter(|l| l.contains(" = ")).count()
}

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    let (a, b) = (a.double().to_vec::<f64>(), b.double().to_vec::<f64>());
    let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-9 * (1.0 + x.abs());
    assert!(a.iter().zip(&b).all(near), "{a:?} against {b:?}");
}

fn numbers(shape: &[i64], from: f64) -> Tensor {
    let n: i64 = shape.iter().product();
    (Tensor::arange(0, n, 1).double() * 0.37 + from).sin().reshape(shape.to_vec())
}

/// A step that takes something of everything: weights from outside, a number, a count of integers, rows.
fn step(w: &Tensor, (h, count): (Tensor, Tensor), x: Tensor) -> ((Tensor, Tensor), Tensor) {
    let h = (h.matmul(w) + x * 0.5).tanh();
    let y = (&h * &count.double()).sum();
    ((h, count + 1), y)
}

type Form = fn(&Tensor, &Tensor, &Tensor) -> (Tensor, Tensor, Tensor);

fn scanned(w: &Tensor, h: &Tensor, xs: &Tensor) -> (Tensor, Tensor, Tensor) {
    let ((h, count), ys) = scan(|carry, x| step(w, carry, x), &(h.clone(), tensor(0)), xs);
    (h, count, ys)
}

fn unrolled(w: &Tensor, h: &Tensor, xs: &Tensor) -> (Tensor, Tensor, Tensor) {
    let (mut carry, mut ys) = ((h.clone(), tensor(0)), vec![]);
    for i in 0..xs.size(0) {
        let (next, y) = step(w, carry, xs.select(0, i as i64));
        carry = next;
        ys.push(y);
    }
    (carry.0, carry.1, stack(&ys.iter().collect::<Vec<_>>(), 0))
}

fn leaves() -> [Tensor; 3] {
    [numbers(&[3, 3], 0.1), numbers(&[2, 3], 0.7), numbers(&[5, 2, 3], 1.3)].map(|t| t.detach().requires_grad_(true))
}

#[test]
fn a_scan_is_the_loop_with_its_gradients() {
    let _alone = alone();
    let all = |form: Form| {
        let [w, h, xs] = leaves();
        let (last, count, ys) = form(&w, &h, &xs);
        let loss = (&last * &last).sum() + (ys.square() * numbers(&[5], 0.2)).sum();
        let mut all = vec![last.detach(), count, ys.detach()];
        all.extend(grad(&loss, &[&w, &h, &xs]).into_iter().map(|g| g.expect("a gradient flows")));
        all
    };
    for (a, b) in all(scanned).iter().zip(&all(unrolled)) {
        close(a, b);
    }
}

#[test]
fn gradients_of_a_scan_can_be_differentiated_again() {
    let _alone = alone();
    let all = |form: Form| {
        let [w, h, xs] = leaves();
        let (last, _, ys) = form(&w, &h, &xs);
        let loss = (last.square().sum() + ys.sum()).sin();
        let first = grad_with(&loss, &[&w, &h, &xs], true);
        let total = first.iter().flatten().map(|g| (g.square()).sum()).reduce(|a, b| a + b).unwrap();
        grad(&total, &[&w, &h, &xs]).into_iter().map(|g| g.expect("a second gradient flows")).collect::<Vec<_>>()
    };
    for (a, b) in all(scanned).iter().zip(&all(unrolled)) {
        close(a, b);
    }
}

#[test]
fn only_what_one_result_needs_flows_back() {
    let _alone = alone();
    let [w, h, xs] = leaves();
    let (last, _, ys) = scanned(&w, &h, &xs);
    let (plain, _, plain_ys) = unrolled(&w, &h, &xs);
    for (a, b) in [(last.sum(), plain.sum()), (ys.select(0, 2), plain_ys.select(0, 2))] {
        let (da, db) = (grad(&a, &[&w, &h, &xs]), grad(&b, &[&w, &h, &xs]));
        da.iter().zip(&db).for_each(|(a, b)| close(a.as_ref().unwrap(), b.as_ref().unwrap()));
    }
}

#[test]
fn backward_after_a_barrier_finds_what_the_rounds_began_with() {
    let _alone = alone();
    let all = |form: Form, between: bool| {
        let [w, h, xs] = leaves();
        let (last, _, ys) = form(&w, &h, &xs);
        let loss = last.sum() * ys.sum();
        if between {
            sync();
            assert!(loss.item().is_finite());
        }
        loss.backward();
        [w, h, xs].map(|t| t.grad().unwrap())
    };
    let plain = all(unrolled, false);
    for between in [false, true] {
        all(scanned, between).iter().zip(&plain).for_each(|(a, b)| close(a, b));
    }
}

#[test]
fn a_hundred_steps_of_a_recurrent_network_are_one_small_program() {
    let _alone = alone();
    let (cell, n) = (nn::LSTMCell::new(4, 8), 100);
    let xs = Tensor::arange(0, n * 2 * 4, 1).float().sin().reshape([n, 2, 4]);
    let zeros = Tensor::zeros([2, 8]);
    let start = (zeros.clone(), zeros.clone());
    let run = |xs: &Tensor| {
        let ((h, _), all) = scan(
            |(h, c): (Tensor, Tensor), x| {
                let (h, c) = cell.step(&x, &h, &c);
                ((h.clone(), c), h)
            },
            &start,
            xs,
        );
        (h, all)
    };
    let loss = |xs: &Tensor| {
        let (h, all) = run(xs);
        h.square().sum() + all.mean()
    };
    let parameters = cell.parameters();
    let wanted: Vec<&Tensor> = parameters.iter().collect();
    let gradient = |xs: &Tensor| grad(&loss(xs), &wanted).remove(0).unwrap();
    let (short, long) = (xs.i(..6).copy(), xs.clone());
    sync();
    assert_eq!(ops_of(&gradient(&long)), ops_of(&gradient(&short)), "as many ops for a hundred steps as for six");
    assert!(ops_of(&gradient(&long)) < 400, "{}", ops_of(&gradient(&long)));
    // As a loop of the host's, each step a program: as long as it is here it would take XLA half a minute.
    let (mut h, mut c) = (zeros.clone(), zeros.clone());
    no_grad(|| {
        for i in 0..n {
            (h, c) = cell.step(&xs.select(0, i), &h, &c);
            sync();
        }
    });
    let difference = (run(&long).0.detach() - h).abs().max().item();
    assert!(difference < 1e-5, "{difference}");
    // With gradients, as far as unrolling goes.
    let (mut h, mut c, mut all) = (zeros.clone(), zeros, vec![]);
    for i in 0..6 {
        (h, c) = cell.step(&short.select(0, i), &h, &c);
        all.push(h.clone());
    }
    let unrolled = h.square().sum() + stack(&all.iter().collect::<Vec<_>>(), 0).mean();
    let (scanned, unrolled) = (grad(&loss(&short), &wanted), grad(&unrolled, &wanted));
    sync();
    for (a, b) in scanned.iter().zip(&unrolled) {
        let (a, b) = (a.as_ref().unwrap(), b.as_ref().unwrap());
        let (apart, most) = ((a - b).abs().max().item(), b.abs().max().item());
        assert!(apart <= 1e-5 * most.max(1e-3), "{apart} of {most}");
    }
}

#[test]
fn loops_in_loops_and_branches_in_them() {
    let _alone = alone();
    let run = |looped: bool| {
        let w = numbers(&[3], 0.4).detach().requires_grad_(true);
        let xs = numbers(&[4, 3], 0.9);
        let inner = |h: &Tensor, x: &Tensor| match looped {
            true => scan(|h: Tensor, _: Tensor| ((&h * &w + x).tanh(), h), h, &xs).0,
            false => (0..4).fold(h.clone(), |h, _| (&h * &w + x).tanh()),
        };
        let last = match looped {
            true => {
                let f = |h: Tensor, x: Tensor| {
                    let h = inner(&h, &x);
                    (cond(&h.sum().gt(0.0), |h: Tensor| &h * &w, |h| h * 2.0, &h), ())
                };
                scan(f, &numbers(&[3], 0.0), &xs).0
            }
            false => (0..4).fold(numbers(&[3], 0.0), |h, i| {
                let h = inner(&h, &xs.select(0, i));
                (&h * &w).where_(&h.sum().gt(0.0), &h * 2.0)
            }),
        };
        let dw = grad(&last.sum(), &[&w]).remove(0).unwrap();
        (last.detach(), dw)
    };
    let ((a, da), (b, db)) = (run(true), run(false));
    close(&a, &b);
    close(&da, &db);
}

#[test]
fn reverse_lengths_and_no_rows() {
    let _alone = alone();
    let x = tensor([1.0, 2.0, 3.0]);
    let sums = |s: Tensor, x: Tensor| (&s + x, s);
    let backwards = ScanOptions { reverse: true, ..Default::default() };
    assert_eq!(scan_with(sums, &tensor(0.0), &x, backwards).1.to_vec::<f32>(), [5.0, 3.0, 0.0]);
    let (last, none) = scan(sums, &tensor(7.0), &x.i(..0));
    assert_eq!((last.item(), none.shape().to_vec()), (7.0, vec![0]));
    let five = ScanOptions { length: Some(5), ..Default::default() };
    assert_eq!(scan_with(|n: Tensor, ()| (n + 1, ()), &tensor(0), &(), five).0.item(), 5.0);
    let rows = (x.clone(), vec![tensor([[1, 2], [3, 4], [5, 6]])]);
    let (_, (a, b)) = scan(|(), (x, v): (Tensor, Vec<Tensor>)| ((), (x * 2.0, [v[0].sum()])), &(), &rows);
    assert_eq!((a.to_vec::<f32>(), b[0].to_vec::<i64>()), (vec![2.0, 4.0, 6.0], vec![3, 7, 11]));
}

#[test]
fn the_device_decides_how_often() {
    let _alone = alone();
    let halved = |start: f64, least: f64| {
        let (x, n) =
            while_loop(|(x, _): (Tensor, Tensor)| x.gt(least), |(x, n)| (x * 0.5, n + 1), &(tensor(start), tensor(0)));
        (x.item(), n.item_i64())
    };
    assert_eq!(halved(8.0, 1.5), (1.0, 3));
    let again = compiles(|| assert_eq!(halved(100.0, 0.1).1, 10));
    assert_eq!(again, 0, "numbers in the bodies are parameters");
    let x = tensor(2.0).requires_grad_(true);
    let y = while_loop(|y: Tensor| y.lt(9.0), |y| y * &x, &tensor(1.0));
    assert_eq!(y.item(), 16.0);
    let said = refusal(|| y.backward());
    assert!(said.contains("while_loop") && said.contains("scan") && said.contains("fori_loop"), "{said}");
}

#[test]
fn how_often_a_counted_loop_runs_compiles_nothing() {
    let _alone = alone();
    let power = |n: i64| fori_loop(0, n, |_, x: Tensor| x * 2.0, &tensor(1.0)).item();
    assert_eq!(power(3), 8.0);
    assert_eq!(compiles(|| assert_eq!((power(10), power(0)), (1024.0, 1.0))), 0);
    let bounds = |low: &Tensor, high: &Tensor| fori_loop(low, high, |i, sum: Tensor| sum + i, &tensor(0)).item();
    assert_eq!(bounds(&tensor(3), &tensor(6)), 12.0);
    assert_eq!(fori_loop(-2, tensor(2), |i, sum: Tensor| sum + i, &tensor(0)).item(), -2.0);
    let x = tensor(3.0).requires_grad_(true);
    let cube = fori_loop(2, 5, |_, y: Tensor| y * &x, &tensor(1.0));
    assert_eq!((cube.item(), grad(&cube, &[&x])[0].as_ref().unwrap().item()), (27.0, 27.0));
    assert!(refusal(|| fori_loop(0, 1.5, |_, x: Tensor| x, &tensor(1.0))).contains("integer"));
}

#[test]
fn one_program_serves_both_ways_and_only_one_is_taken() {
    let _alone = alone();
    let root = |x: &Tensor| cond(&x.gt(0.0), |x: Tensor| x.sqrt(), |_| tensor(0.0) * 1.0, x);
    assert_eq!(root(&tensor(4.0)).item(), 2.0);
    assert_eq!(compiles(|| assert_eq!(root(&tensor(-4.0)).item(), 0.0)), 0);
    // The derivative of the other branch is infinite: it must not reach this one's, not even times zero.
    let x = tensor(0.0).requires_grad_(true);
    let y = cond(&x.gt(0.0), |x: Tensor| x.sqrt(), |x| x * 3.0, &x);
    assert_eq!(grad(&y, &[&x])[0].as_ref().unwrap().item(), 3.0);
    let (w, v) = (tensor([1.0, 2.0]).requires_grad_(true), tensor([3.0, 4.0]).requires_grad_(true));
    for (which, dw, dv) in [(-3, [2.0, 4.0], [0.0, 0.0]), (1, [3.0, 4.0], [1.0, 2.0]), (9, [0.0, 0.0], [0.0, 0.0])] {
        let branches: [&dyn Fn(Tensor) -> Tensor; 3] = [&|w| w.square(), &|w| w * &v, &|w| w.detach()];
        let y = switch(&tensor(which), &branches, &w).sum() + 0.0 * w.sum() + 0.0 * v.sum();
        let found = grad(&y, &[&w, &v]);
        assert_eq!(found[0].as_ref().unwrap().to_vec::<f32>(), dw);
        assert_eq!(found[1].as_ref().unwrap().to_vec::<f32>(), dv);
    }
}

#[test]
fn second_gradients_of_branches() {
    let _alone = alone();
    let x = tensor([0.7, -1.2]).double().detach().requires_grad_(true);
    let y = cond(&x.sum().lt(0.0), |x: Tensor| x.pow(3.0), |x| x.sin(), &x);
    let dx = grad_with(&y.sum(), &[&x], true).remove(0).unwrap();
    let ddx = grad(&dx.sum(), &[&x]).remove(0).unwrap();
    close(&ddx, &(x.detach() * 6.0));
}

#[test]
fn every_round_draws_anew_and_gradients_see_the_same_numbers() {
    let _alone = alone();
    manual_seed(3);
    let draws = || {
        scan_with(|(), ()| ((), Tensor::rand([4])), &(), &(), ScanOptions { length: Some(3), ..Default::default() }).1
    };
    let first = draws().to_vec::<f32>();
    assert!((0..3).all(|i| (0..i).all(|j| first[4 * i..][..4] != first[4 * j..][..4])), "{first:?}");
    assert_ne!(draws().to_vec::<f32>(), first);
    manual_seed(3);
    assert_eq!(draws().to_vec::<f32>(), first);
    let x = Tensor::ones([6, 50]).requires_grad_(true);
    let y = map(|row: Tensor| row.dropout(0.5, true), &x);
    let dx = grad(&y.sum(), &[&x]).remove(0).unwrap();
    assert_eq!(dx.to_vec::<f32>(), y.to_vec::<f32>());
    let rows: Vec<f32> = y.sum_dim(1, false).to_vec();
    assert!(rows.windows(2).any(|w| w[0] != w[1]), "{rows:?}");
    let nested = map(|_: Tensor| map(|_: Tensor| Tensor::rand(()), &tensor([0.0, 0.0])), &tensor([0.0, 0.0]));
    let mut nested = nested.to_vec::<f32>();
    nested.sort_by(f32::total_cmp);
    assert!(nested.windows(2).all(|w| w[0] != w[1]), "{nested:?}");
}

#[test]
fn running_results_by_doubling() {
    let _alone = alone();
    for n in 0..12i64 {
        let x = numbers(&[2, n], 0.3).detach().requires_grad_(true);
        let y = associative_scan(|a, b| a + b, &x, 1);
        close(&y, &x.cumsum(1));
        if n > 0 {
            let weights = numbers(&[2, n], 2.0);
            let d = |y: Tensor| grad(&(y * &weights).sum(), &[&x]).remove(0).unwrap();
            close(&d(y), &d(x.cumsum(1)));
        }
    }
    // Not commutative: h' = a h + b, of pairs.
    let (a, b) = (numbers(&[7], 0.5), numbers(&[7], 1.5));
    let both = |(a, b): (Tensor, Tensor), (c, d): (Tensor, Tensor)| (&a * &c, b * c + d);
    let (_, h) = associative_scan(both, &(a.clone(), b.clone()), 0);
    let (_, plain) = scan(
        |h: Tensor, (a, b): (Tensor, Tensor)| {
            let h = h * a + b;
            (h.clone(), h)
        },
        &numbers(&[], 0.0),
        &(a, b),
    );
    close(&h, &plain);
}

#[test]
fn what_cannot_be_in_a_body_is_said() {
    let _alone = alone();
    let (x, rows) = (tensor([1.0, 2.0]), Tensor::ones([3, 2]));
    let outside = Tensor::zeros([2]);
    let over = |f: &dyn Fn(&Tensor) -> Tensor| scan(|h: Tensor, r: Tensor| (f(&(h + r)), ()), &x, &rows).0;
    let refused = |f: &dyn Fn(&Tensor) -> Tensor| refusal(|| over(f));
    let read = refused(&|h| if h.sum().item() > 0.0 { h * 2.0 } else { h.clone() });
    assert!(read.contains("scan") && read.contains("no value to read"), "{read}");
    assert!(
        refused(&|h| {
            sync();
            h.clone()
        })
        .contains("sync()")
    );
    let written = refused(&|h| {
        outside.add_(1.0);
        h.clone()
    });
    assert!(written.contains("add_") && written.contains("from outside"), "{written}");
    assert!(
        refused(&|h| {
            outside.select(0, 0).add_(1.0);
            h.clone()
        })
        .contains("from outside")
    );
    assert!(
        refused(&|h| {
            outside.copy_(h);
            h.clone()
        })
        .contains("from outside")
    );
    let carried = refused(&|h| h.sum());
    assert!(carried.contains("f32[2]") && carried.contains("one type"), "{carried}");
    assert!(refused(&|h| h.to(F64)).contains("to(F32)"));
    let w = tensor([1.0, 1.0]).requires_grad_(true);
    let back = refused(&|h| {
        (h * &w).sum().backward();
        h.clone()
    });
    assert!(back.contains("backward") && back.contains("grad(&y, &[&x])"), "{back}");
    assert!(w.grad().is_none());
    // A tensor of a body has no value anywhere else.
    let kept = std::cell::RefCell::new(None);
    over(&|h| {
        *kept.borrow_mut() = Some(h * 3.0);
        h.clone()
    })
    .to_vec::<f32>();
    let leaked = kept.take().unwrap();
    assert!(refusal(|| leaked.to_vec::<f32>()).contains("from the body"));
    assert!(refusal(|| &leaked + 1.0).contains("from the body"));
    assert!(refused(&|h| h + &leaked).contains("from the body"));
    assert!(refused(&|_| leaked.clone()).contains("from the body"));
    sync();
    assert!(refusal(|| cond(&x, |_| tensor(1.0), |_| tensor(2.0), &())).contains("bool"));
    let types = refusal(|| cond(&x.sum().gt(0.0), |x: Tensor| x.sum(), |x| x, &x));
    assert!(types.contains("f32[]") && types.contains("f32[2]"), "{types}");
    assert!(refusal(|| while_loop(|x: Tensor| x.sum(), |x| x, &x)).contains("bool"));
    assert!(refusal(|| map(|x: (Tensor, Tensor)| x, &(x.clone(), rows.clone()))).contains("2 and 3"));
    assert!(refusal(|| map(|x: Tensor| x, &tensor(1.0))).contains("without dimensions"));
    let padded = rows.dynamic(0).buckets([4]);
    assert!(refusal(|| map(|x: Tensor| x, &padded)).contains("bucket"));
    assert!(refusal(|| over(&|h| h + padded.sum())).contains("bucket"));
    // What was refused leaves nothing behind.
    assert_eq!(over(&|h| h.clone()).to_vec::<f32>(), [4.0, 5.0]);
    assert_eq!(outside.to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn what_is_written_inside_a_body_stays_there() {
    let _alone = alone();
    let y = map(
        |row: Tensor| {
            let y = row.copy();
            y.select(0, 0).add_(10.0);
            y.i(1..).mul_(2.0);
            y
        },
        &tensor([[1.0, 2.0], [3.0, 4.0]]),
    );
    assert_eq!(y.to_vec::<f32>(), [11.0, 4.0, 13.0, 8.0]);
    // Gradients inside of a body: a step of descent in each round.
    let target = tensor([3.0, -1.0]);
    let w = fori_loop(
        0,
        50,
        |_, w: Tensor| {
            let w = w.detach().requires_grad_(true);
            let dw = grad(&(&w - &target).square().sum(), &[&w]).remove(0).unwrap();
            w.detach() - dw * 0.1
        },
        &tensor([0.0, 0.0]),
    );
    assert!((w - target).abs().max().item() < 1e-3);
}

#[test]
fn training_through_a_scan_compiles_once() {
    let _alone = alone();
    let w = numbers(&[2, 2], 0.1).float().detach().requires_grad_(true);
    let mut optimizer = optim::SGD::new([&w], 0.01);
    let xs = numbers(&[6, 2], 0.5).float();
    let mut step = |scale: f64| {
        let (h, _) = scan(|h: Tensor, x: Tensor| ((h.matmul(&w) + x * scale).tanh(), ()), &Tensor::zeros([2]), &xs);
        h.square().sum().backward();
        optimizer_step(&mut optimizer);
    };
    (0..2).for_each(|_| step(1.0));
    assert_eq!(compiles(|| (0..3).for_each(|i| step(f64::from(i)))), 0);
}

#[test]
fn what_differs_in_a_body_is_told() {
    let _alone = alone();
    let x = Tensor::ones([4, 6]);
    let run = |start: i64, deeper: bool| {
        let f = |row: Tensor| {
            let part = row.slice(0, start, start + 2, 1);
            if deeper { part.exp() } else { part.sin() }
        };
        let y = map(f, &x);
        sync();
        drop(y);
    };
    let last = || insight::compilations().last().expect("it compiled").text();
    run(0, false);
    run(1, false);
    let said = last();
    assert!(said.contains("`start` of slice in the body of scan"), "{said}");
    run(1, true);
    let said = last();
    assert!(said.contains("sin → f32[2]") && said.contains("exp → f32[2]"), "{said}");
}

#[test]
fn what_a_body_is_given_may_be_written_to_in_place() {
    let _alone = alone();
    let xs = tensor([1.0, 2.0, 3.0]);
    let summed = |c: Tensor, x: Tensor| {
        c.add_(&x);
        (c.clone(), c)
    };
    let (last, all) = scan(summed, &tensor(0.0), &xs);
    assert_eq!((last.item(), all.to_vec::<f32>()), (6.0, vec![1.0, 3.0, 6.0]));
    let doubled = |row: Tensor| {
        row.mul_(2.0);
        row + 1.0
    };
    assert_eq!(map(doubled, &xs).to_vec::<f32>(), [3.0, 5.0, 7.0]);
    let through_a_view = |_: Tensor, c: Tensor| {
        c.select(0, 1).add_(1.0);
        c
    };
    assert_eq!(fori_loop(0, 3, through_a_view, &tensor([0.0, 0.0])).to_vec::<f32>(), [0.0, 3.0]);
    let open = |c: Tensor| {
        c.add_(100.0);
        c.lt(103.0)
    };
    assert_eq!(while_loop(open, |c| c + 1.0, &tensor(0.0)).item(), 3.0);
    // Gradients flow through what was written.
    let w = tensor(2.0).requires_grad_(true);
    let scaled = |c: Tensor, x: Tensor| {
        c.mul_(&w).add_(&x);
        (c.clone(), c)
    };
    let (last, _) = scan(scaled, &tensor(0.0), &xs);
    let dw = grad(&last, &[&w]).remove(0).unwrap();
    // ((1 w) + 2) w + 3.
    assert_eq!((last.item(), dw.item()), (11.0, 6.0));
}

#[test]
fn tensors_in_other_places_are_refused() {
    let _alone = alone();
    let x = tensor([1.0]);
    let first = |x: Tensor| (Some(x), None::<Tensor>);
    let says = refusal(|| drop(cond(&tensor(false), first, |x| (None, Some(x)), &x)));
    assert!(says.starts_with("cond") && says.contains("same places"), "{says}");
    let swapped = |(a, b): (Vec<Tensor>, Vec<Tensor>), x: Tensor| ((b, a), x);
    let says = refusal(|| drop(scan(swapped, &(vec![tensor(0.0)], vec![]), &x)));
    assert!(says.starts_with("scan") && says.contains("same places"), "{says}");
    let flipped = |_: Tensor, (a, b): (Option<Tensor>, Option<Tensor>)| (b, a);
    let says = refusal(|| drop(fori_loop(0, 2, flipped, &(Some(x.clone()), None))));
    assert!(says.starts_with("fori_loop") && says.contains("same places"), "{says}");
}

#[test]
fn what_goes_through_unchanged_is_a_tensor_of_its_own() {
    let _alone = alone();
    let x = tensor([1.0, 2.0]);
    let (last, _) = scan(|c: Tensor, row: Tensor| (c, row), &x, &Tensor::zeros([0, 2]));
    last.add_(10.0);
    fori_loop(3, 3, |_, c: Tensor| c, &x).add_(10.0);
    let one = tensor([5.0]);
    associative_scan(|a: Tensor, b: Tensor| a + b, &one, 0).add_(1.0);
    assert_eq!((x.to_vec::<f32>(), one.to_vec::<f32>()), (vec![1.0, 2.0], vec![5.0]));
}

#[test]
fn a_tensor_that_left_its_body_has_no_program() {
    let _alone = alone();
    let mut left = None;
    let body = |c: Tensor, x: Tensor| {
        left = Some(&c * 2.0);
        (c + x, ())
    };
    let _sum = scan(body, &tensor(0.0), &tensor([1.0]));
    let left = left.unwrap();
    for says in [refusal(|| drop(show::stablehlo(&left, false))), refusal(|| drop(show::hlo(&left, false)))] {
        assert!(says.contains("let the body give it back"), "{says}");
    }
}

#[test]
fn a_branch_is_chosen_by_integers_of_every_dtype() {
    let _alone = alone();
    let x = tensor([1.0]);
    let pick = |index: &Tensor| {
        let branches: [&dyn Fn(Tensor) -> Tensor; 3] = [&|x| x + 10.0, &|x| x + 20.0, &|x| x + 30.0];
        switch(index, &branches, &x).item()
    };
    for dtype in [I8, I16, I32, I64, U8, U16, U32, U64] {
        for (index, given) in [(0, 11.0), (1, 21.0), (2, 31.0), (100, 31.0)] {
            assert_eq!(pick(&tensor(index).to(dtype)), given, "{dtype} {index}");
        }
    }
    let large = tensor(0).to(U64).bitwise_not();
    assert_eq!(pick(&large), 31.0, "the largest number of uint64");
    assert_eq!(pick(&tensor(-5)), 11.0);
}
