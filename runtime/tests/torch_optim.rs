//! Optimizers, clipping and schedules against PyTorch: parameters after steps, gradients, rates; what they compile.
mod support;
mod torch_support;

use serde_json::Value;
use std::collections::BTreeSet;
use support::{alone, compiles};
use torch_support::{Data, json, near};
use xlazy::prelude::*;

type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;

fn optimizers() -> Vec<(&'static str, Make)> {
    use optim::*;
    vec![
        ("sgd", |p| Box::new(SGD::new(p, 0.1))),
        ("sgd_momentum", |p| Box::new(SGD::new(p, 0.1).momentum(0.9).dampening(0.2).weight_decay(0.05))),
        ("sgd_nesterov", |p| Box::new(SGD::new(p, 0.01).maximize(true).momentum(0.9).nesterov(true))),
        ("adam", |p| Box::new(Adam::new(p, 0.05).weight_decay(0.1))),
        ("adam_amsgrad", |p| Box::new(Adam::new(p, 0.05).betas((0.7, 0.6)).amsgrad(true))),
        ("adamw", |p| Box::new(AdamW::new(p, 0.05).weight_decay(0.1))),
        ("adamw_amsgrad", |p| Box::new(AdamW::new(p, 0.05).amsgrad(true).betas((0.7, 0.6)))),
        ("rmsprop", |p| Box::new(RMSprop::new(p, 0.02))),
        ("rmsprop_all", |p| Box::new(RMSprop::new(p, 0.02).alpha(0.9).momentum(0.8).centered(true).weight_decay(0.1))),
        ("adagrad", |p| Box::new(Adagrad::new(p, 0.1).lr_decay(0.3).weight_decay(0.1).initial_accumulator_value(0.5))),
        ("adadelta", |p| Box::new(Adadelta::new(p, 1.0).weight_decay(0.1))),
        ("adamax", |p| Box::new(Adamax::new(p, 0.05).weight_decay(0.1))),
        ("nadam", |p| Box::new(NAdam::new(p, 0.05).weight_decay(0.1))),
        ("nadam_decoupled", |p| Box::new(NAdam::new(p, 0.05).weight_decay(0.1).decoupled_weight_decay(true))),
        ("radam", |p| Box::new(RAdam::new(p, 0.05).betas((0.9, 0.99)))),
        ("radam_decoupled", |p| {
            Box::new(RAdam::new(p, 0.05).betas((0.9, 0.99)).weight_decay(0.1).decoupled_weight_decay(true))
        }),
        ("asgd", |p| Box::new(ASGD::new(p, 0.05).lambd(0.1).weight_decay(0.1))),
        ("rprop", |p| Box::new(Rprop::new(p, 0.05))),
        ("adafactor", |p| Box::new(Adafactor::new(p, 0.05).weight_decay(0.1))),
        ("lamb", |p| Box::new(LAMB::new(p, 0.05))),
        ("lion", |p| Box::new(Lion::new(p, 0.02).weight_decay(0.1))),
        ("groups", |p| {
            let mut opt = AdamW::new(&p[..2], 0.05);
            opt.add_param_group(&p[2..], 0.2, AdamOptions { weight_decay: 0.3, ..opt.options() });
            Box::new(opt)
        }),
    ]
}

fn start(data: &Data) -> Vec<Tensor> {
    (0..3).map(|i| data.0[&format!("start/{i}")].copy().requires_grad_(true)).collect()
}

/// Every parameter gets another gradient in every step; as in the script.
fn objective(p: &[Tensor], step: &Tensor) -> Tensor {
    let (w, b, s) = (&p[0], &p[1], &p[2]);
    let wave = (Tensor::arange(0, 12, 1).float().reshape([3, 4]) + step).cos();
    (w * wave).sum() + (w.mv(b) - 1.0).square().sum() + (s - step * 0.25).square().sum() * w.mean()
}

#[test]
fn steps_are_torchs_and_one_program() {
    let _alone = alone();
    let (data, spec) = (Data::open("optimizers"), json("optimizers"));
    let steps = spec["steps"].as_u64().unwrap();
    let theirs: BTreeSet<&str> =
        spec["cases"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(theirs, optimizers().iter().map(|o| o.0).collect(), "the same cases here and in the reference");
    let mut wrong = Vec::new();
    for (name, make) in optimizers() {
        let p: Vec<Tensor> = start(&data);
        sync();
        let mut opt = make(p.clone());
        let numbers: Vec<Tensor> = (0..steps).map(|n| Tensor::from_vec(vec![n as f32], ())).collect();
        let mut look = |step: u64| {
            let check = |(i, p): (usize, &Tensor)| data.check(&format!("{name}/{step}/{i}"), p).err();
            wrong.extend(p.iter().enumerate().filter_map(check));
        };
        let n = compiles(|| {
            for (step, number) in numbers.iter().enumerate() {
                opt.zero_grad();
                objective(&p, number).backward();
                optimizer_step(&mut *opt);
                if step == 0 {
                    look(0);
                }
            }
        });
        look(steps - 1);
        if n != 1 {
            wrong.push(format!("{name}: {n} programs for {steps} steps"));
        }
        // A state that is saved after some steps goes on as if nothing had been.
        let state = opt.state_dict();
        let mut again = make(start(&data));
        if let Err(e) = again.load_state_dict(&state) {
            wrong.push(format!("{name}: {e}"));
        }
        let names = |s: &[(String, Tensor)]| s.iter().map(|(n, t)| (n.clone(), t.shape())).collect::<Vec<_>>();
        assert_eq!(names(&again.state_dict()), names(&state), "{name}");
    }
    assert!(wrong.is_empty(), "{} differ from torch:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn clipped_gradients_are_torchs() {
    let _alone = alone();
    let data = Data::open("optimizers");
    type Clip = fn(&[Tensor]);
    let kinds: [(&str, Clip); 4] = [
        ("norm", |p| drop(optim::clip_grad_norm_(p, 1.0))),
        ("norm_inf", |p| drop(optim::clip_grad_norm_with(p, 0.5, f64::INFINITY))),
        ("norm_3", |p| drop(optim::clip_grad_norm_with(p, 1.0, 3.0))),
        ("value", |p| optim::clip_grad_value_(p, 0.4)),
    ];
    for (name, clip) in kinds {
        let p = start(&data);
        objective(&p, &tensor(1.0)).backward();
        clip(&p);
        for (i, p) in p.iter().enumerate() {
            data.check(&format!("clip_{name}/{i}"), &p.grad().unwrap()).unwrap();
        }
    }
}

type Plan = fn(&mut dyn Optimizer) -> optim::LRScheduler;

#[test]
fn rates_are_torchs_over_a_hundred_steps() {
    let _alone = alone();
    use optim::*;
    let plans: Vec<(&str, Plan)> = vec![
        ("step", |o| StepLR::new(o, 7, 0.7).into()),
        ("multi_step", |o| MultiStepLR::new(o, &[3, 10, 10, 40], 0.5).into()),
        ("constant", |o| ConstantLR::new(o, 0.3, 12).into()),
        ("linear", |o| LinearLR::new(o, 0.1, 1.0, 20).into()),
        ("exponential", |o| ExponentialLR::new(o, 0.97).into()),
        ("polynomial", |o| PolynomialLR::new(o, 60, 2.0).into()),
        ("cosine", |o| CosineAnnealingLR::new(o, 30, 0.01).into()),
        ("warm_restarts", |o| CosineAnnealingWarmRestarts::new(o, 10, 2, 0.01).into()),
        ("warm_restarts_even", |o| CosineAnnealingWarmRestarts::new(o, 7, 1, 0.0).into()),
        ("lambda", |o| LambdaLR::new(o, |n| 1.0 / (n + 1) as f64).into()),
        ("one_cycle", |o| OneCycleLR::new(o, 1.0, 101).into()),
        ("one_cycle_linear", |o| {
            let options = OneCycleOptions { linear: true, three_phase: true, pct_start: 0.4, ..Default::default() };
            OneCycleLR::with(o, 1.0, 101, options).into()
        }),
        ("sequential", |o| {
            let first = LinearLR::new(o, 0.1, 1.0, 10);
            let rest = (CosineAnnealingLR::new(o, 50, 0.0), ExponentialLR::new(o, 0.9));
            SequentialLR::new(o, (first, rest.0, rest.1), &[10, 60]).into()
        }),
        ("multiplicative", |o| MultiplicativeLR::new(o, |n| if n % 2 == 1 { 0.95 } else { 0.99 }).into()),
        ("chained", |o| {
            let all = (ConstantLR::new(o, 0.1, 5), ExponentialLR::new(o, 0.97), StepLR::new(o, 10, 0.7));
            ChainedScheduler::new(o, all).into()
        }),
        ("cyclic", |o| {
            let options = CyclicOptions { step_size_up: 7, step_size_down: Some(12), ..Default::default() };
            CyclicLR::with(o, 0.01, 0.4, options).into()
        }),
        ("cyclic_half", |o| {
            let options = CyclicOptions { step_size_up: 9, mode: CycleMode::Triangular2, ..Default::default() };
            CyclicLR::with(o, 0.01, 0.4, options).into()
        }),
        ("cyclic_range", |o| {
            let options = CyclicOptions { step_size_up: 8, mode: CycleMode::ExpRange(0.98), ..Default::default() };
            CyclicLR::with(o, 0.01, 0.4, options).into()
        }),
    ];
    let reference = json("schedules");
    let row = |v: &Value| v.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect::<Vec<f64>>();
    for (name, plan) in plans {
        let p: Vec<Tensor> = (0..2).map(|_| Tensor::from_vec(vec![0f32], 1).requires_grad_(true)).collect();
        let o = SGDOptions { momentum: 0.9, ..Default::default() };
        let mut opt = SGD::with(&p[..1], 0.5, o);
        opt.add_param_group(&p[1..], 0.25, o);
        let mut schedule = plan(&mut opt);
        let rates = reference["rates"][name].as_array().unwrap();
        for (n, want) in rates.iter().enumerate() {
            near(&format!("{name} at {n}"), &opt.lrs(), &row(want)[..2], 1e-12, 1e-9).unwrap();
            schedule.step(&mut opt);
        }
        // A schedule that is made anew goes on from an epoch.
        schedule.set_epoch(&mut opt, 50);
        near(name, &opt.lrs(), &row(&rates[50])[..2], 1e-12, 1e-9).unwrap();
    }
    let careful =
        ReduceLROnPlateau::new().factor(0.5).patience(2).absolute(true).cooldown(3).min_lr(0.01).maximize(true);
    for (name, mut schedule) in [("plateau", ReduceLROnPlateau::new().patience(3)), ("plateau_max", careful)] {
        let mut opt = SGD::new([Tensor::from_vec(vec![0f32], 1).requires_grad_(true)], 0.5);
        let metrics = row(&reference["metrics"]);
        let rates: Vec<f64> = metrics.iter().map(|m| (schedule.step(&mut opt, *m), opt.lr()).1).collect();
        near(name, &rates, &row(&reference["rates"][name]), 1e-12, 1e-9).unwrap();
    }
}

#[test]
fn a_cycle_changes_the_momentum_against_the_rate() {
    let _alone = alone();
    // What torch's momentum is, seen in the steps: a constant gradient's velocity.
    let reference = json("schedules");
    let w = Tensor::from_vec(vec![0f32], 1).requires_grad_(true);
    let o = optim::SGDOptions { momentum: 0.9, ..Default::default() };
    let mut opt = optim::SGD::with([&w], 0.5, o);
    let mut schedule = optim::OneCycleLR::new(&mut opt, 1.0, 101);
    let (mut velocity, mut at) = (0.0, 0.0);
    let n = compiles(|| {
        for row in reference["rates"]["one_cycle"].as_array().unwrap().iter().take(60) {
            opt.zero_grad();
            w.sum().backward();
            optimizer_step(&mut opt);
            velocity = velocity * row[2].as_f64().unwrap() + 1.0;
            at -= row[0].as_f64().unwrap() * velocity;
            schedule.step(&mut opt);
        }
    });
    assert_eq!(n, 1);
    near("w", &[w.item()], &[at], 0.0, 1e-5).unwrap();
}

#[test]
fn averages_follow_in_one_program() {
    let _alone = alone();
    let model = nn::Sequential::new((nn::Linear::new(2, 3), nn::BatchNorm1d::new(3)));
    let mut opt = optim::SGD::new(model.parameters(), 0.3);
    let (mut mean, mut slow) = (optim::AveragedModel::new(&model), optim::AveragedModel::ema(&model, 0.7));
    let x = Tensor::from_vec((0..8).map(|n| (n as f32).sin()).collect(), [4, 2]);
    let mut history: Vec<Vec<f32>> = vec![];
    sync();
    let n = compiles(|| {
        for _ in 0..4 {
            opt.zero_grad();
            model.forward(&x).square().sum().backward();
            opt.step();
            mean.update_parameters(&model);
            slow.update_parameters(&model);
            sync();
            history.push(model.parameters()[0].to_vec());
        }
    });
    assert_eq!(n, 1);
    let means: Vec<f64> = (0..6).map(|i| history.iter().map(|h| h[i] as f64).sum::<f64>() / 4.0).collect();
    let moving = (0..6).map(|i| history[1..].iter().fold(history[0][i] as f64, |m, h| m * 0.7 + h[i] as f64 * 0.3));
    let of = |a: &optim::AveragedModel| a.state_dict()[0].1.double().to_vec::<f64>();
    near("mean", &of(&mean), &means, 1e-6, 1e-5).unwrap();
    near("moving", &of(&slow), &moving.collect::<Vec<_>>(), 1e-6, 1e-5).unwrap();
    // buffers are the model's
    let tracked = mean.state_dict().into_iter().find(|(n, _)| n == "1.num_batches_tracked").unwrap().1;
    assert_eq!(tracked.to_vec::<i64>(), [4]);
}

#[test]
fn a_scaler_leaves_out_what_is_not_finite_and_reads_nothing() {
    let _alone = alone();
    let w = Tensor::from_vec(vec![1f32, 2.0], 2).requires_grad_(true);
    let mut opt = optim::Adam::new([&w], 0.1);
    let mut scaler = optim::GradScaler::with(1024.0, 2.0, 0.5, 2);
    let factors = [1.0, f32::INFINITY, 2.0, 1.0, f32::NAN].map(|f| Tensor::from_vec(vec![f; 2], 2));
    let mut seen: Vec<(Vec<f32>, Vec<f32>)> = vec![];
    let n = compiles(|| {
        for factor in &factors {
            opt.zero_grad();
            scaler.scale(&(&w * factor).sum()).backward();
            scaler.step(&mut opt);
            scaler.update();
            sync();
            seen.push((w.to_vec(), scaler.get_scale().to_vec()));
        }
    });
    assert_eq!(n, 1, "one program, whatever is found");
    let scales: Vec<f32> = seen.iter().map(|s| s.1[0]).collect();
    assert_eq!(scales, [1024.0, 512.0, 512.0, 1024.0, 512.0]);
    let w: Vec<f32> = seen.iter().map(|s| s.0[0]).collect();
    assert!((w[0] - 0.9).abs() < 1e-6 && w[1] == w[0] && w[2] < w[1] && w[3] < w[2] && w[4] == w[3], "{w:?}");
}

#[test]
fn autocast_computes_products_in_the_small_dtype_and_the_rest_in_the_large() {
    let _alone = alone();
    let net = nn::Sequential::new((nn::Conv2d::new(1, 4, 3), nn::ReLU, nn::Flatten, nn::Linear::new(16, 5)));
    let x = Tensor::from_vec((0..32).map(|n| (n as f32 * 0.37).sin()).collect(), [2, 1, 4, 4]);
    let labels = tensor([1, 3]);
    for dtype in [BF16, F16] {
        let plain = net.forward(&x);
        let (y, loss) = autocast(dtype, || {
            let y = net.forward(&x);
            // in float32, whatever the scores are in
            let loss = nn::functional::cross_entropy(&y, &labels);
            (y, loss)
        });
        assert_eq!((y.dtype(), loss.dtype(), (&x * &x).dtype()), (dtype, F32, F32));
        let apart = (&y.float() - &plain).abs().max().item();
        assert!(apart > 0.0 && apart < 0.02, "{apart}");
        loss.backward();
        for p in net.parameters() {
            assert_eq!(p.grad().unwrap().dtype(), F32);
        }
        let small: Vec<f64> =
            net.parameters().iter().flat_map(|p| p.grad().unwrap().double().to_vec::<f64>()).collect();
        net.zero_grad();
        nn::functional::cross_entropy(&plain, &labels).backward();
        let full: Vec<f64> = net.parameters().iter().flat_map(|p| p.grad().unwrap().double().to_vec::<f64>()).collect();
        net.zero_grad();
        near("gradients", &small, &full, 0.0, 0.03).unwrap();
    }
    // a loop carries its own dtype
    let lstm = nn::LSTM::new(3, 4);
    let (y, _) = autocast(BF16, || lstm.forward(&Tensor::ones([5, 2, 3]), None));
    let apart = (&y - lstm.forward(&Tensor::ones([5, 2, 3]), None).0).abs().max().item();
    assert!(apart < 0.02, "{apart}");
    // what is left behind by a panic is put back
    let _ = support::refusal(|| autocast(BF16, || Tensor::ones([2, 3]).matmul(&Tensor::ones([2, 3]))));
    assert_eq!(net.forward(&x).dtype(), F32);
}

#[test]
fn mixed_precision_with_a_scaler_trains_in_one_program() {
    let _alone = alone();
    let net = nn::Sequential::new((nn::Linear::new(2, 8), nn::Tanh, nn::Linear::new(8, 1)));
    let mut opt = optim::Adam::new(net.parameters(), 0.05);
    let mut scaler = optim::GradScaler::with(1e6, 2.0, 0.5, 10);
    let x = Tensor::from_vec((0..32).map(|n| (n as f32 * 0.7).sin()).collect(), [16, 2]);
    let y = x.narrow(1, 0, 1) * 0.8 - x.narrow(1, 1, 1) * 0.5;
    sync();
    let mut losses = vec![];
    let n = compiles(|| {
        for _ in 0..60 {
            opt.zero_grad();
            let loss = autocast(F16, || (net.forward(&x).float() - &y).square().mean());
            scaler.scale(&loss).backward();
            scaler.unscale_(&opt);
            optim::clip_grad_norm_(opt.parameters(), 10.0);
            scaler.step(&mut opt);
            scaler.update();
            sync();
            losses.push(loss);
        }
    });
    assert_eq!(n, 1);
    assert!(losses[59].item() < 0.02, "{} to {}", losses[0].item(), losses[59].item());
}

#[test]
fn options_that_are_set_later_hold_from_the_next_step_on() {
    let _alone = alone();
    let w = Tensor::from_vec(vec![0f32], 1).requires_grad_(true);
    let v = Tensor::from_vec(vec![0f32], 1).requires_grad_(true);
    let step = |opt: &mut optim::SGD| {
        opt.zero_grad();
        (w.sum() + v.sum()).backward();
        optimizer_step(opt);
        [w.item(), v.item()]
    };
    let mut opt = optim::SGD::new([&w], 1.0);
    opt.add_param_group([&v], 2.0, opt.options());
    assert_eq!(step(&mut opt), [-1.0, -2.0]);
    // The buffer is made then, of both groups, and is zero before the step.
    opt = opt.momentum(0.5);
    assert_eq!(step(&mut opt), [-2.0, -4.0]);
    assert_eq!(step(&mut opt), [-3.5, -7.0]);
    // Another number keeps what was gathered.
    opt = opt.momentum(1.0);
    assert_eq!(step(&mut opt), [-6.0, -12.0]);
    assert_eq!(opt.options(), optim::SGDOptions { momentum: 1.0, ..Default::default() });
    // State begins as the options say, also where they are said after the constructor's.
    let first = |opt: optim::Adagrad| opt.state_dict().iter().find(|(n, _)| n == "state.0.sum").unwrap().1.item();
    assert_eq!(first(optim::Adagrad::new([&w], 1.0).initial_accumulator_value(0.5)), 0.5);
}
