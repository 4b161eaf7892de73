//! Tensors on two devices of the CPU plugin: who follows whom, what is refused, what a move runs, what compiles.
mod support;

use std::panic::Location;
use std::sync::MutexGuard;
use support::{compiles, refusal};
use xlazy::insight::{Cause, Class, Origin, SyncEvent, compilations, events};
use xlazy::prelude::*;

fn alone() -> MutexGuard<'static, ()> {
    support::alone_on(2)
}

/// What ran meanwhile.
fn during<R>(f: impl FnOnce() -> R) -> (R, Vec<SyncEvent>) {
    let before = events().last().map_or(0, |e| e.number);
    let result = f();
    (result, events().into_iter().filter(|e| e.number > before).collect())
}

fn lines(all: &[SyncEvent]) -> Vec<(Cause, u32, &'static str)> {
    all.iter().map(|e| (e.cause, e.at.line(), e.device)).collect()
}

#[track_caller]
fn here() -> u32 {
    Location::caller().line()
}

#[test]
fn a_value_is_moved_without_running_anything() {
    let _alone = alone();
    assert_eq!(xlazy::devices(), ["cpu:0", "cpu:1"]);
    let x = tensor([1.0, 2.0]);
    assert_eq!(x.device(), "cpu:0");
    let (y, ran) = during(|| x.to("cpu:1"));
    assert_eq!((y.device(), ran.len()), ("cpu:1".into(), 0));
    assert!(y.to("cpu:1").is_same(&y) && x.to("CPU").is_same(&x));
    let z = (&y + 1.0).to("cpu:0");
    assert_eq!((z.device().as_str(), z.to_vec::<f32>()), ("cpu:0", vec![2.0, 3.0]));
    assert_eq!(x.to_vec::<f32>(), [1.0, 2.0]);
    assert_eq!(y.to_vec::<f32>(), [1.0, 2.0]);
    assert_eq!(y.rich().plain().lines().last().unwrap(), "f32[2] on cpu:1 · already computed");
}

#[test]
fn a_pending_tensor_runs_first_and_its_graph_stays() {
    let _alone = alone();
    let x = tensor([1.0, 2.0, 4.0]);
    let (h, other) = (&x * 3.0, &x - 1.0);
    let ((moved, line), ran) = during(|| (h.to("cpu:1"), here()));
    assert_eq!(lines(&ran), [(Cause::DeviceChange, line, "cpu:0")]);
    assert_eq!(ran[0].nodes, 1, "only what the value needs");
    assert_eq!(moved.location().line(), line);
    assert_eq!((&moved * 2.0).to_vec::<f32>(), [6.0, 12.0, 24.0]);
    assert_eq!(during(|| h.to("cpu:1")).1.len(), 0, "its value is there");
    let ((), ran) = during(sync);
    assert_eq!(ran[0].nodes, 2, "both are still pending");
    assert_eq!((h.to_vec::<f32>(), other.to_vec::<f32>()), (vec![3.0, 6.0, 12.0], vec![0.0, 1.0, 3.0]));
}

#[test]
fn two_devices_are_refused_by_their_names() {
    let _alone = alone();
    let a = tensor([1.0, 2.0]);
    let b = tensor([3.0, 4.0]).to("cpu:1");
    let said = refusal(|| &a + &b);
    let wanted = "add(f32[2], f32[2]): expected all tensors to be on the same device: `a` is on cpu:0, `b` on cpu:1; \
                  move one of them: `b.to(\"cpu:0\")`";
    // A test's lines are not known as those of cells are.
    assert_eq!(said, wanted.replace("`a`", "operand 1").replace("`b`", "operand 2").replace("`b.to", "`.to"));
    assert!(refusal(|| cat(&[&a, &a, &b], 0)).contains("operand 1 is on cpu:0, operand 3 on cpu:1"));
    let said = refusal(|| a.to("cpu:7"));
    assert_eq!(said, "to: there is no device \"cpu:7\": there are cpu:0 and cpu:1");
}

#[test]
fn what_is_on_no_device_follows_before_and_after_a_sync() {
    let _alone = alone();
    let (x, y) = (tensor([1.0, 2.0]), tensor([1.0, 2.0]).to("cpu:1"));
    let made = Tensor::arange(0.0, 2.0, 1.0) + Tensor::ones([2]);
    assert_eq!(made.device(), "cpu:0");
    let both = |made: &Tensor| {
        let (a, b) = (&x * made, &y * made);
        assert_eq!((a.device(), b.device()), ("cpu:0".into(), "cpu:1".into()));
        sync();
        assert_eq!((a.to_vec::<f32>(), b.to_vec::<f32>()), (vec![1.0, 4.0], vec![1.0, 4.0]));
    };
    both(&made);
    both(&made);
    both(&made);
    assert_eq!(made.to_vec::<f32>(), [1.0, 2.0]);
    // On a device of its own it is computed there.
    let ((z, there), ran) = during(|| {
        let z = (Tensor::ones([3]) * 2.0).to("cpu:1");
        let there = y.zeros_like();
        sync();
        (z, there)
    });
    assert_eq!(ran.iter().map(|e| (e.cause, e.device)).collect::<Vec<_>>(), [(Cause::Sync, "cpu:1")]);
    assert_eq!((z.device().as_str(), z.to_vec::<f32>()), ("cpu:1", vec![2.0; 3]));
    assert_eq!(there.device(), "cpu:1");
    assert!(refusal(|| &z + &tensor([1.0, 2.0, 3.0])).contains("same device"));
}

#[test]
fn what_two_parts_of_a_sync_start_from_is_not_given_away_by_one() {
    let _alone = alone();
    let y = tensor([1.0, 1.0]).to("cpu:1");
    for _ in 0..3 {
        let made = Tensor::ones([2]) * 2.0;
        sync();
        // `root` lets go of `made`, which the other device needs as well.
        let root = &made + 1.0;
        drop(made);
        let other = &y + &root;
        sync();
        assert_eq!((root.to_vec::<f32>(), other.to_vec::<f32>()), (vec![3.0; 2], vec![4.0; 2]));
    }
}

#[test]
fn a_sync_runs_a_program_for_each_device_and_finds_both_again() {
    let _alone = alone();
    let (x, y) = (tensor([1.0, 2.0, 3.0]), tensor([1.0, 2.0, 3.0]).to("cpu:1"));
    let step = |k: f64| {
        let (a, b) = ((&x * k).tanh() + 0.5, (&y * k).tanh() + 0.5);
        let line = here() + 1;
        sync();
        (a.to_vec::<f32>() == b.to_vec::<f32>(), line)
    };
    let compiled = compilations().len();
    let ((same, line), ran) = during(|| step(2.0));
    assert!(same);
    assert_eq!(lines(&ran), [(Cause::Sync, line, "cpu:0"), (Cause::Sync, line, "cpu:1")]);
    let second = &compilations()[compiled + 1];
    let why = second.why.as_ref().expect("it is said why");
    assert_eq!((why.class, second.device, why.at.line()), (Class::Device, "cpu:1", line));
    let said = second.sentence();
    assert!(said.contains("the same program, for cpu:1"), "{said}");
    assert!(said.ends_with("; first compiled for cpu:0. Fix: expected once for each device that runs it."), "{said}");
    let (_, ran) = during(|| step(3.0));
    assert!(ran.iter().all(|e| e.origin == Origin::Memory) && ran.len() == 2, "{ran:?}");
}

#[test]
fn a_model_is_moved_and_trained_elsewhere() {
    let _alone = alone();
    let train = |device: &str, adam: bool| {
        manual_seed(1);
        let net = nn::Linear::new(3, 1);
        net.to(device);
        let mut opt: Box<dyn Optimizer> = match adam {
            true => Box::new(optim::Adam::new(net.parameters(), 0.1)),
            false => {
                let options = optim::SGDOptions { momentum: 0.9, ..Default::default() };
                Box::new(optim::SGD::with(net.parameters(), 0.1, options))
            }
        };
        let x = tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 0.5]]).to(device);
        let y = tensor([[1.0], [0.0]]).to(device);
        let step = |opt: &mut dyn Optimizer| {
            let loss = (net.forward(&x) - &y).square().mean();
            opt.zero_grad();
            loss.backward();
            optim::optimizer_step(opt);
            loss
        };
        (0..2).for_each(|_| drop(step(&mut *opt)));
        let ((loss, ran), new) = {
            let mut both = None;
            let new = compiles(|| both = Some(during(|| step(&mut *opt))));
            (both.unwrap(), new)
        };
        assert_eq!((new, ran.len(), ran[0].device), (0, 1, device), "one cached program, on the device");
        assert!(ran[0].donated > 0, "the parameters are replaced in place");
        assert_eq!((loss.device().as_str(), net.parameters()[0].device().as_str()), (device, device));
        loss.item()
    };
    for adam in [false, true] {
        assert_eq!(train("cpu:0", adam), train("cpu:1", adam));
    }
}

#[test]
fn a_model_that_has_run_is_moved_with_one_program() {
    let _alone = alone();
    let net = nn::Linear::new(3, 2);
    no_grad(|| net.parameters().iter().for_each(|p| drop(p.mul_(2.0))));
    net.forward(&Tensor::ones([1, 3])).sum().backward();
    let ((), ran) = during(|| net.to("cpu:1"));
    assert_eq!(ran.iter().map(|e| (e.cause, e.device)).collect::<Vec<_>>(), [(Cause::DeviceChange, "cpu:0")]);
    let weight = &net.parameters()[0];
    assert_eq!((weight.device().as_str(), weight.grad().unwrap().device().as_str()), ("cpu:1", "cpu:1"));
    assert!(weight.is_leaf() && weight.requires_grad());
    assert!(refusal(|| net.forward(&tensor([[1.0, 1.0, 1.0]]))).contains("same device"));
    // A state from elsewhere goes where the parameters are.
    let other = nn::Linear::new(3, 2);
    net.load_state_dict(&other.state_dict()).unwrap();
    assert_eq!(net.parameters()[0].device(), "cpu:1");
    assert_eq!(net.parameters()[0].to_vec::<f32>(), other.parameters()[0].to_vec::<f32>());
}

#[test]
fn gradients_flow_back_through_a_move() {
    let _alone = alone();
    let w = tensor([2.0, 3.0]).requires_grad_(true);
    let v = tensor([5.0, 7.0]).to("cpu:1").requires_grad_(true);
    let (line, ran) = during(|| {
        let h = (&w * &w).to("cpu:1");
        assert!(h.requires_grad() && !h.is_leaf());
        (&h * &v).sum().backward();
        here() - 1
    });
    assert_eq!(lines(&ran), [(Cause::DeviceChange, line - 2, "cpu:0"), (Cause::DeviceChange, line, "cpu:1")]);
    let (dw, dv) = (w.grad().unwrap(), v.grad().unwrap());
    assert_eq!((dw.device().as_str(), dv.device().as_str()), ("cpu:0", "cpu:1"));
    assert_eq!((dw.to_vec::<f32>(), dv.to_vec::<f32>()), (vec![20.0, 42.0], vec![4.0, 9.0]));
    // The history is used up, as it is without a move.
    let (h, used) = (w.to("cpu:1"), Tensor::ones([2]).requires_grad_(true));
    h.sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [21.0, 43.0]);
    assert!(refusal(|| h.sum().backward_with(None, false)).contains("history"));
    assert!(!no_grad(|| w.to("cpu:1")).requires_grad());
    // What is on no device gets what flows from both.
    let loss = (&used * tensor([1.0, 2.0])).sum() + (&used * &v).sum().to("cpu:0");
    loss.backward();
    assert_eq!(used.grad().unwrap().to_vec::<f32>(), [6.0, 9.0]);
}

#[test]
fn positions_and_masks_are_where_their_tensor_is() {
    let _alone = alone();
    let x = tensor([[1.0, -2.0], [-3.0, 4.0]]).to("cpu:1");
    assert_eq!(x.masked_select(&x.gt(0.0)).to_vec::<f32>(), [1.0, 4.0]);
    assert_eq!(x.i(x.gt(0.0)).device(), "cpu:1");
    assert_eq!(x.nonzero().device(), "cpu:1");
    x.set_((0, ..), 9.0);
    assert_eq!((x.device().as_str(), x.to_vec::<f32>()), ("cpu:1", vec![9.0, 9.0, -3.0, 4.0]));
    x.copy_(tensor([[1.0, 2.0], [3.0, 4.0]]));
    assert_eq!((x.device().as_str(), x.to_vec::<f32>()), ("cpu:1", vec![1.0, 2.0, 3.0, 4.0]));
    let padded = x.dynamic(0).buckets([4]);
    assert_eq!((padded.device().as_str(), padded.sum().item()), ("cpu:1", 10.0));
    let back = padded.to("cpu:0");
    assert_eq!((back.shape(), back.sum().item()), (padded.shape(), 10.0));
    assert_eq!((x.rand_like().device().as_str(), x.unique().device().as_str()), ("cpu:1", "cpu:1"));
}

#[test]
fn what_is_pending_says_where_it_will_be_computed() {
    let _alone = alone();
    let (x, y) = (tensor([1.0, 2.0]), tensor([1.0, 2.0]).to("cpu:1"));
    let (_a, _b) = (x.exp2(), y.exp2());
    let (list, next) = insight::pending();
    assert_eq!(list.iter().map(|p| p.device).collect::<Vec<_>>(), ["cpu:0", "cpu:1"]);
    let next = next.unwrap();
    assert_eq!((next.programs, next.nodes, next.origin), (2, 2, Origin::Compiled));
    let text = insight::pending_bundle().plain().to_owned();
    assert!(text.contains("need programs for 2 devices") && text.contains("f32[2] cpu:1"), "{text}");
    sync();
}

#[test]
fn state_and_batches_go_where_the_tensors_are() {
    let _alone = alone();
    for momentum in [false, true] {
        let net = nn::Linear::new(2, 1);
        let mut opt: Box<dyn optim::Optimizer> = match momentum {
            false => Box::new(optim::Adam::new(net.parameters(), 0.1)),
            true => {
                let options = optim::SGDOptions { momentum: 0.9, ..Default::default() };
                Box::new(optim::SGD::with(net.parameters(), 0.1, options))
            }
        };
        net.to("cpu:1");
        let data = data::TensorDataset::new([&Tensor::ones([4, 2]).to("cpu:1")]);
        for [x] in &data::DataLoader::new(data, 2) {
            assert_eq!(x.device(), "cpu:1");
            net.forward(&x).square().sum().backward();
            opt.step();
            opt.zero_grad();
            sync();
        }
        assert!(opt.parameters().iter().all(|p| p.device() == "cpu:1"));
    }
}

#[test]
fn programs_of_two_devices_are_not_compared() {
    let _alone = alone();
    let (a, b) = (tensor([1.0, 2.0, 3.0]), tensor([[1.0, 2.0]]).to("cpu:1"));
    sync();
    let before = compilations().len();
    let all = [&a, &b].map(|t| t.atan().sum());
    sync();
    let new = &compilations()[before..];
    assert_eq!(new.len(), 2);
    assert!(new.iter().all(|c| c.why.is_none()), "both are the first of their kind");
    drop(all);
}
