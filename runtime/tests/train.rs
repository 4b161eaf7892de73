//! Training: modules, optimizers and data loaders together, what they learn and what they compile.
mod support;

use std::sync::Mutex;
use xlazy::insight::{Cause, events};
use xlazy::metrics::counter_value;
use xlazy::prelude::*;

// The runtime is one per process, and counters are its own: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    sync();
    manual_seed(0);
    guard
}

fn compiles() -> u64 {
    counter_value("UncachedCompile").unwrap()
}

fn mlp() -> nn::Sequential {
    nn::Sequential::new((nn::Linear::new(2, 16), nn::Tanh, nn::Linear::new(16, 1)))
}

/// Steps on one batch; how many programs each step compiled, and the losses.
fn steps(model: &dyn Module, opt: &mut dyn Optimizer, n: usize) -> (Vec<u64>, Vec<f64>) {
    let x = Tensor::rand([64, 2]) * 2.0 - 1.0;
    let y = x.narrow(1, 0, 1) * 0.8 - x.narrow(1, 1, 1) * 0.5;
    sync();
    let mut counts = Vec::new();
    let mut losses = Vec::new();
    for _ in 0..n {
        let before = compiles();
        opt.zero_grad();
        let loss = (model.forward(&x) - &y).square().mean();
        loss.backward();
        optimizer_step(opt);
        counts.push(compiles() - before);
        losses.push(loss.item());
    }
    (counts, losses)
}

#[test]
fn a_tensor_that_others_use_may_become_a_parameter() {
    let _alone = alone();
    let w = Tensor::from_vec(vec![1f32, 2.0], [2]);
    let used = &w * 2.0;
    w.requires_grad_(true);
    // A new value would take the node of the parameter if nothing held it.
    let other = Tensor::from_vec(vec![7f32; 3], [3]);
    assert_eq!((w.shape(), other.shape()), (Shape::new(&[2]), Shape::new(&[3])));
    (&w * &w).sum().backward();
    assert_eq!(w.grad().expect("a gradient").to_vec::<f32>(), [2.0, 4.0]);
    assert_eq!((used.to_vec::<f32>(), w.to_vec::<f32>()), (vec![2.0, 4.0], vec![1.0, 2.0]));
}

#[test]
fn making_an_optimizer_runs_nothing_and_what_was_pending_is_a_program_of_its_own() {
    let _alone = alone();
    let seen = || events().last().map_or(0, |e| e.number);
    let w = (Tensor::randn([3]) * 2.0).requires_grad_(true);
    let (x, apart) = (Tensor::rand([4, 3]) * 0.5, Tensor::ones([2]) + 1.0);
    let before = seen();
    let made = line!() + 1;
    let mut opt = optim::Adam::new([&w], 0.1);
    assert_eq!(seen(), before);
    // What has no part in what comes after it is read by itself.
    assert_eq!(apart.to_vec::<f32>(), [2.0; 2]);
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = compiles();
        opt.zero_grad();
        let loss = (&x * &w).square().mean();
        loss.backward();
        assert!(loss.item() > 0.0);
        opt.step();
        sync();
        counts.push(compiles() - before);
    }
    assert_eq!(counts, [3, 0, 0]);
    let ran: Vec<_> = events().into_iter().filter(|e| e.number > before).map(|e| e.cause).collect();
    let round = [Cause::Read, Cause::Sync];
    assert_eq!(ran, [&[Cause::Read, Cause::InitialState][..], &round, &round, &round].concat());
    let initial = events().into_iter().find(|e| e.number > before && e.cause == Cause::InitialState).unwrap();
    assert_eq!(initial.at.line(), made);
}

#[test]
fn what_was_pending_is_no_part_of_the_first_step_whoever_holds_it() {
    let _alone = alone();
    // The step gives the parameter another node before anything has run; one optimizer more is made on the way.
    let w = (Tensor::randn([3]) * 2.0).requires_grad_(true);
    let mut opt = optim::Adam::new([&w], 0.1);
    let other = (Tensor::randn([2]) * 3.0).requires_grad_(true);
    let mut beside = optim::SGD::new([&other], 0.1);
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = compiles();
        (w.square().sum() + other.square().sum()).backward();
        opt.step();
        beside.step();
        opt.zero_grad();
        beside.zero_grad();
        sync();
        counts.push(compiles() - before);
    }
    assert_eq!(counts, [2, 0, 0]);
    // What nobody wants any more is not computed for it.
    let (gone, before) = (Tensor::randn([5]).requires_grad_(true), compiles());
    drop(optim::Adam::new([&gone], 0.1));
    drop(gone);
    assert_eq!((Tensor::ones([2]) + 1.0).to_vec::<f32>(), [2.0; 2]);
    sync();
    assert!(compiles() - before <= 1);
}

#[test]
fn a_step_compiles_once_whatever_the_optimizer() {
    let _alone = alone();
    let sgd = optim::SGDOptions { momentum: 0.9, dampening: 0.1, weight_decay: 1e-4, nesterov: false };
    let nesterov = optim::SGDOptions { momentum: 0.9, nesterov: true, ..Default::default() };
    type Make<'a> = &'a dyn Fn(Vec<Tensor>) -> Box<dyn Optimizer>;
    let makes: [(&str, Make, f64); 5] = [
        ("SGD", &|p| Box::new(optim::SGD::new(p, 0.3)), 0.01),
        ("SGD with momentum", &|p| Box::new(optim::SGD::with(p, 0.1, sgd)), 0.01),
        ("SGD, Nesterov", &|p| Box::new(optim::SGD::with(p, 0.1, nesterov)), 0.01),
        ("Adam", &|p| Box::new(optim::Adam::new(p, 0.03)), 0.01),
        ("AdamW", &|p| Box::new(optim::AdamW::new(p, 0.03)), 0.01),
    ];
    for (name, make, good) in makes {
        let model = mlp();
        let mut opt = make(model.parameters());
        let (counts, losses) = steps(&model, &mut *opt, 100);
        assert_eq!(counts.iter().sum::<u64>(), counts[0], "{name}: {counts:?}");
        assert_eq!(counts[0], 1, "{name}");
        assert!(losses[99] < good, "{name}: {} to {}", losses[0], losses[99]);
        opt.set_lr(0.001);
        let (counts, _) = steps(&model, &mut *opt, 2);
        assert_eq!(counts, [0, 0], "{name}: another learning rate is another number, not another program");
    }
}

#[test]
fn every_parameter_and_its_state_reuses_its_buffer() {
    let _alone = alone();
    let model = mlp();
    let mut opt = optim::Adam::new(model.parameters(), 0.01);
    steps(&model, &mut opt, 3);
    let events = xlazy::insight::events();
    let step = events.iter().rev().find(|e| e.cause == insight::Cause::OptimizerStep).unwrap();
    assert_eq!(step.donated, 3 * 4, "4 parameters, each with two means");
    assert!(step.at.file().ends_with("train.rs"), "{}", step.at);
}

#[test]
fn a_step_takes_the_gradients_unless_they_are_kept() {
    let _alone = alone();
    let x = Tensor::rand([8, 2]);
    sync();
    // The results of the last step's program, how many programs there were, and the parameters after three steps.
    let trained = |step: fn(&mut dyn Optimizer), zero_grad: bool| {
        manual_seed(7);
        let model = mlp();
        let mut opt = optim::SGD::new(model.parameters(), 0.1);
        let before = compiles();
        for _ in 0..3 {
            if zero_grad {
                opt.zero_grad();
            }
            model.forward(&x).square().mean().backward();
            step(&mut opt);
        }
        let results = events().last().unwrap().outputs;
        (results, compiles() - before, model.parameters())
    };
    let values = |p: &[Tensor]| p.iter().map(Tensor::to_vec::<f32>).collect::<Vec<_>>();
    let (results, programs, taken) = trained(|opt| optimizer_step(opt), true);
    assert_eq!((results, programs), (4, 1), "the parameters, and nothing besides");
    let (.., forgotten) = trained(|opt| optimizer_step(opt), false);
    assert_eq!(values(&taken), values(&forgotten), "each step begins a new sum");
    let (results, _, kept) = trained(|opt| optimizer_step_retain_grad(opt), true);
    assert_eq!(results, 8);
    assert_eq!(values(&taken), values(&kept));
    let (.., added) = trained(|opt| optimizer_step_retain_grad(opt), false);
    assert_ne!(values(&taken), values(&added), "as in torch");
    assert!(kept.iter().all(|p| p.grad().is_some()));
    let w = nn::parameter(tensor([1.0]));
    let mut opt = optim::SGD::new([&w], 0.1);
    optimizer_step(&mut opt);
    assert!(w.grad().is_none(), "what was never there was not taken");
    (&w * 2.0).sum().backward();
    optimizer_step(&mut opt);
    let line = line!() - 1;
    let said = support::refusal(|| w.grad());
    for words in ["grad(f32[1])", "optimizer_step_retain_grad(&mut opt)", &format!("train.rs:{line}")] {
        assert!(said.contains(words), "{words}: {said}");
    }
    opt.zero_grad();
    assert!(w.grad().is_none());
}

#[test]
fn a_schedule_never_compiles() {
    let _alone = alone();
    let model = mlp();
    let mut opt = optim::SGD::new(model.parameters(), 0.5);
    let mut schedule = optim::CosineAnnealingLR::new(&opt, 10, 0.0);
    steps(&model, &mut opt, 1);
    for _ in 0..10 {
        schedule.step(&mut opt);
        assert_eq!(steps(&model, &mut opt, 1).0, [0]);
    }
    assert!(opt.lr().abs() < 1e-12);
}

#[test]
fn nodes_of_a_module_carry_the_users_line() {
    let _alone = alone();
    let model = mlp();
    let y = model.forward(&Tensor::ones([1, 2]));
    let line = line!() - 1;
    assert!(y.location().file().ends_with("train.rs"), "{}", y.location());
    assert_eq!(y.location().line(), line);
    y.sum().backward();
    let g = model.parameters()[0].grad().unwrap();
    assert_eq!(g.location().line(), line!() - 2);
}

#[test]
fn every_layer_carries_the_users_line() {
    let _alone = alone();
    let picture = Tensor::ones([2, 4, 6, 6]);
    let sequence = Tensor::ones([2, 3, 4]);
    let conv = nn::Conv2d::new(4, 4, 3);
    let batch_norm = nn::BatchNorm2d::new(4);
    let group_norm = nn::GroupNorm::new(2, 4);
    let layer_norm = nn::LayerNorm::new(4);
    let attention = nn::MultiheadAttention::new(4, 2);
    let (line, all) = (
        line!() + 1,
        [
            conv.forward(&picture),
            batch_norm.forward(&picture),
            group_norm.forward(&picture),
            layer_norm.forward(&sequence),
            attention.forward(&sequence),
            nn::functional::cross_entropy(&Tensor::ones([2, 3]), &tensor([0, 1])),
            conv.weight.clone(),
        ],
    );
    for (i, y) in all.iter().enumerate() {
        let at = y.location();
        assert_eq!(at.file(), file!(), "{i}: {at}");
        assert!(at.line().abs_diff(line) < 12, "{i}: {at}");
    }
}

#[test]
fn names_states_and_modes() {
    let _alone = alone();
    struct Net {
        body: nn::Sequential,
        heads: Vec<nn::Linear>,
        tied: Tensor,
        scale: Option<Tensor>,
    }
    impl Module for Net {
        parts!(body, heads, tied, scale);
    }
    let made = line!() + 2;
    let make = || {
        let body = nn::Sequential::new((nn::Linear::without_bias(2, 3), nn::Dropout::new(0.5)));
        let heads = vec![nn::Linear::new(3, 1)];
        Net { body, tied: heads[0].weight.clone(), heads, scale: None }
    };
    let (a, b) = (make(), make());
    let names: Vec<String> = a.named_parameters().into_iter().map(|p| p.0).collect();
    assert_eq!(names, ["body.0.weight", "heads.0.weight", "heads.0.bias"], "a tied weight is one parameter");
    assert_eq!(a.state_dict().len(), 4);
    b.load_state_dict(&a.state_dict()).unwrap();
    for (x, y) in a.parameters().iter().zip(b.parameters()) {
        assert_eq!(x.to_vec::<f32>(), y.to_vec::<f32>());
        assert!(y.requires_grad() && y.is_leaf());
    }
    let x = Tensor::ones([100, 2]);
    let zeros = |m: &Net| m.body.forward(&x).to_vec::<f32>().iter().filter(|v| **v == 0.0).count();
    assert!(zeros(&a) > 50);
    a.eval();
    assert_eq!(zeros(&a), 0);
    a.train(true);
    assert!(zeros(&a) > 50);
    let tree = a.summary().plain().replace(&format!("train.rs:{made}"), "HERE");
    let tree = tree.replace(&format!("train.rs:{}", made + 1), "BELOW");
    assert_eq!(
        tree,
        "Net                      tied [1,3] (shared)     10  BELOW\n\
         ├─ body: Sequential                               6\n\
         │  ├─ 0: Linear          weight [3,2]             6  HERE\n\
         │  └─ 1: Dropout(p=0.5)\n\
         └─ heads                                          4\n\
         \u{20}  └─ 0: Linear          weight [1,3], bias [1]   4  BELOW\n\
         10 numbers to train"
    );
    let wrong = b.load_state_dict(&a.state_dict()[1..]).unwrap_err().to_string();
    assert!(wrong.contains("`body.0.weight` is missing"), "{wrong}");
}

#[test]
fn initial_values_are_torchs() {
    let _alone = alone();
    let layer = nn::Linear::new(100, 200);
    for p in layer.parameters() {
        let v = p.to_vec::<f32>();
        let (low, high) = v.iter().fold((0f32, 0f32), |(l, h), &x| (l.min(x), h.max(x)));
        assert!(low >= -0.1 && high <= 0.1 && low < -0.095 && high > 0.095, "{low} {high}");
    }
    manual_seed(3);
    let a = nn::Linear::new(4, 4).weight.to_vec::<f32>();
    manual_seed(3);
    assert_eq!(nn::Linear::new(4, 4).weight.to_vec::<f32>(), a);
}

#[test]
fn loaders_give_every_sample_once_in_an_order_of_the_seed() {
    let _alone = alone();
    let x = Tensor::arange(0, 10, 1);
    let y = x.float().unsqueeze(1) * 2.0;
    let set = data::TensorDataset::new([&x, &y]);
    let epoch = |loader: &data::DataLoader<2>| -> Vec<Vec<i64>> {
        loader
            .iter()
            .map(|[x, y]| {
                let x = x.to_vec::<i64>();
                let twice: Vec<f32> = x.iter().map(|&v| v as f32 * 2.0).collect();
                assert_eq!((y.to_vec::<f32>(), y.size(1)), (twice, 1));
                x
            })
            .collect()
    };
    let plain = data::DataLoader::new(set.clone(), 4);
    assert_eq!(epoch(&plain), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert_eq!((plain.len(), plain.iter().len()), (3, 3));
    let shuffled = |seed| {
        let options = data::DataLoaderOptions { shuffle: true, seed, ..Default::default() };
        data::DataLoader::with(set.clone(), 4, options)
    };
    let (a, b) = (shuffled(1), shuffled(1));
    let first = epoch(&a);
    assert_eq!(first, epoch(&b));
    assert_ne!(first, epoch(&a), "each epoch has an order of its own");
    assert_ne!(first, epoch(&shuffled(2)));
    let mut all = first.concat();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<i64>>());
    let options = data::DataLoaderOptions { drop_last: true, ..Default::default() };
    assert_eq!(epoch(&data::DataLoader::with(set, 4, options)).len(), 2);
}

#[test]
fn a_loader_can_be_the_barrier() {
    let _alone = alone();
    let options = data::DataLoaderOptions { sync: true, ..Default::default() };
    let loader = data::DataLoader::with(data::TensorDataset::new([&Tensor::ones([6, 2])]), 2, options);
    let total = Tensor::zeros([2]);
    sync();
    let before = insight::events().len();
    let line = line!() + 1;
    for [x] in &loader {
        assert_eq!((x.location().file(), x.location().line()), (file!(), line));
        total.add_(x.sum_dim(0, false));
    }
    let events = insight::events();
    let barriers: Vec<_> = events[before..].iter().map(|e| (e.cause, e.at.line())).collect();
    assert_eq!(barriers, [(insight::Cause::LoaderBarrier, line); 3]);
    assert_eq!(total.to_vec::<f32>(), [6.0, 6.0]);
}

#[test]
fn gradients_are_clipped_to_a_norm() {
    let _alone = alone();
    let w = tensor([0.0, 0.0]).requires_grad_(true);
    let clipped = |max: f64| {
        w.set_grad(None);
        (&w * tensor([3.0, 4.0])).sum().backward();
        let norm = optim::clip_grad_norm_(std::slice::from_ref(&w), max).item();
        (norm, w.grad().unwrap().norm().item())
    };
    let (norm, after) = clipped(1.0);
    assert!((norm - 5.0).abs() < 1e-6 && (after - 1.0).abs() < 1e-5, "{norm} {after}");
    assert!((clipped(10.0).1 - 5.0).abs() < 1e-6);
}

#[test]
fn recurrent_cells_compute_torchs_formulas() {
    let _alone = alone();
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let x = tensor([[0.5, -1.0]]);
    let h = tensor([[0.25]]);
    // The gates' values from weights and state, by hand: one hidden unit, rows gate by gate.
    let gates = |m: &dyn Module| {
        let p: Vec<Vec<f32>> = m.parameters().iter().map(|p| p.to_vec()).collect();
        let input = (0..p[2].len()).map(|i| 0.5 * p[0][2 * i] - p[0][2 * i + 1] + p[2][i]).collect::<Vec<f32>>();
        let state = (0..p[3].len()).map(|i| 0.25 * p[1][i] + p[3][i]).collect::<Vec<f32>>();
        (input, state)
    };
    let close = |got: &Tensor, want: f32| assert!((got.item() as f32 - want).abs() < 1e-6, "{} {want}", got.item());

    let cell = nn::RNNCell::new(2, 1);
    let (a, b) = gates(&cell);
    close(&cell.step(&x, &h), (a[0] + b[0]).tanh());

    let cell = nn::GRUCell::new(2, 1);
    let (a, b) = gates(&cell);
    let (r, z) = (sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1]));
    close(&cell.step(&x, &h), (1.0 - z) * (a[2] + r * b[2]).tanh() + z * 0.25);

    let cell = nn::LSTMCell::new(2, 1);
    let (a, b) = gates(&cell);
    let s: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let c = sigmoid(s[1]) * 0.75 + sigmoid(s[0]) * s[2].tanh();
    let (h2, c2) = cell.step(&x, &h, &tensor([[0.75]]));
    close(&c2, c);
    close(&h2, sigmoid(s[3]) * c.tanh());
    let names: Vec<String> = cell.named_parameters().into_iter().map(|p| p.0).collect();
    assert_eq!(names, ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]);
}

#[test]
fn a_recurrent_network_trains_in_one_program() {
    let _alone = alone();
    // Whether the sum of five numbers is positive, told number by number.
    let (cell, head) = (nn::GRUCell::new(1, 8), nn::Linear::new(8, 1));
    let parameters = cell.parameters().into_iter().chain(head.parameters());
    let mut opt = optim::Adam::new(parameters, 0.02);
    let x = Tensor::randn([5, 64, 1]);
    let y = x.sum_dim(0, false).gt(0.0).float();
    sync();
    let before = compiles();
    let mut last = 0.0;
    for _ in 0..60 {
        opt.zero_grad();
        let h = x.unbind(0).iter().fold(cell.zeros(&x.select(0, 0)), |h, x| cell.step(x, &h));
        let loss = head.forward(&h).binary_cross_entropy_with_logits(&y, None, None, Reduction::Mean);
        loss.backward();
        optimizer_step(&mut opt);
        last = loss.item();
    }
    assert_eq!(compiles() - before, 1);
    assert!(last < 0.3, "{last}");
}

/// One round of a loop as somebody writes it who has never heard of barriers: the loss is read before the step or behind it.
enum Reads {
    Before,
    Behind,
    BehindWithBarrier,
}

type Make = fn(&nn::Sequential) -> Box<dyn Optimizer>;

/// The losses of so many rounds, and how many programs each compiled and how many ops each ran.
fn rounds(reads: Reads, make: Make, n: usize) -> Vec<(f64, u64, usize)> {
    let (at, ran) = (compiles, || events().iter().map(|e| e.nodes).sum::<usize>());
    manual_seed(5);
    let model = mlp();
    let (x, y) = (Tensor::rand([16, 2]), Tensor::rand([16, 1]));
    let mut opt = make(&model);
    let mut seen = Vec::new();
    for _ in 0..n {
        let before = (at(), ran());
        opt.zero_grad();
        let loss = model.forward(&x).mse_loss(&y, Reduction::Mean);
        let early = matches!(reads, Reads::Before).then(|| loss.item());
        loss.backward();
        opt.step();
        if let Reads::BehindWithBarrier = reads {
            sync();
        }
        let value = early.unwrap_or_else(|| loss.item());
        seen.push((value, at() - before.0, ran() - before.1));
    }
    sync();
    seen
}

#[test]
fn a_loop_that_only_reads_its_loss_runs_each_round_once() {
    let _alone = alone();
    let sgd: Make = |m| Box::new(optim::SGD::new(m.parameters(), 0.1));
    let adam: Make = |m| Box::new(optim::Adam::new(m.parameters(), 0.1));
    for make in [sgd, adam] {
        let right: Vec<f64> = rounds(Reads::BehindWithBarrier, make, 8).iter().map(|r| r.0).collect();
        for reads in [Reads::Before, Reads::Behind] {
            let seen = rounds(reads, make, 8);
            for ((loss, _, _), right) in seen.iter().zip(&right) {
                assert!((loss - right).abs() < 1e-5 * right.abs().max(1e-3), "{seen:?} is not {right:?}");
            }
            assert!(seen[4..].iter().all(|r| r.1 == 0 && r.2 == seen[4].2), "{seen:?}");
        }
    }
}

#[test]
fn a_value_that_is_changed_in_place_and_looked_at_again_and_again_is_computed_once() {
    let _alone = alone();
    let w = Tensor::ones([3]);
    let mut ran = Vec::new();
    for i in 0..6 {
        let before = events().len();
        w.mul_(2.0);
        assert_eq!(w.sum().item(), 3.0 * f64::powi(2.0, i + 1));
        ran.push(events()[before..].iter().map(|e| e.nodes).sum::<usize>());
    }
    assert!(ran[3..].iter().all(|n| *n == ran[3]), "{ran:?}");
    // Another line changes and reads what is pending: what it does not need stays so.
    let beside = Tensor::ones([2]) + 1.0;
    w.add_(1.0);
    w.mul_(2.0);
    assert_eq!(w.sum().item(), 2.0 * (192.0 + 3.0));
    assert!(format!("{beside:?}").contains("pending"));
}

/// Two values of what was changed in place once are no rounds: the second read leaves what is pending as it is.
#[test]
fn values_of_what_was_changed_once_are_read_one_after_another() {
    let _alone = alone();
    sync();
    let other = Tensor::rand([3]).exp();
    let changed = Tensor::zeros([8]);
    changed.add_(1.0);
    let read = |t: &Tensor| t.item();
    assert_eq!(read(&changed.min()), 1.0);
    assert_eq!(read(&changed.max()), 1.0);
    assert_eq!(read(&changed.sum()), 8.0);
    let before = events().len();
    other.to_vec::<f32>();
    assert_eq!(events().len(), before + 1, "it was pending until it was read");
}
