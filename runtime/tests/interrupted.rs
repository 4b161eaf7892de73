//! Nothing is half done: an interrupt or an error in the middle of a step, of loading a state or of a batch's statistics
//! leaves either all of it or nothing, bit by bit as without it.
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use support::{Seeded, alone, refusal};
use xlazy::Changes;
use xlazy::cell::Interrupted;
use xlazy::cell::rt::{interrupt_at_look, looks_left};
use xlazy::prelude::*;

/// Runs `f` with an interrupt at the `n`th moment at which one can come; whether it came.
fn interrupted_at(n: u64, f: impl FnOnce()) -> bool {
    interrupt_at_look(n);
    let ended = catch_unwind(AssertUnwindSafe(f));
    interrupt_at_look(0);
    match ended {
        Ok(()) => false,
        Err(payload) if payload.is::<Interrupted>() => true,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// At how many moments an interrupt can come in `f`.
fn moments(f: impl FnOnce()) -> u64 {
    const MANY: u64 = 1 << 40;
    interrupt_at_look(MANY);
    f();
    let left = looks_left();
    interrupt_at_look(0);
    MANY - left
}

/// Everything of a tensor, to the last bit.
fn bits(t: &Tensor) -> Vec<u64> {
    match t.dtype() {
        F64 => t.to_vec::<f64>().iter().map(|v| v.to_bits()).collect(),
        I64 => t.to_vec::<i64>().iter().map(|v| *v as u64).collect(),
        _ => t.to_vec::<f32>().iter().map(|v| u64::from(v.to_bits())).collect(),
    }
}

type Bits = Vec<(String, Vec<u64>)>;

fn all_bits(state: &[(String, Tensor)]) -> Bits {
    state.iter().map(|(name, t)| (name.clone(), bits(t))).collect()
}

/// All that a step changes.
fn snapshot(model: &dyn Module, opt: &dyn Optimizer) -> Bits {
    // One program for all that is pending, instead of one for each tensor.
    sync();
    let mut all = all_bits(&model.state_dict());
    all.extend(all_bits(&opt.state_dict()));
    all
}

type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;

fn optimizers() -> [(&'static str, Make); 6] {
    use optim::{AdamOptions, SGDOptions};
    [
        ("SGD", |p| Box::new(optim::SGD::new(p, 0.1))),
        ("SGD, momentum", |p| Box::new(optim::SGD::with(p, 0.1, SGDOptions { momentum: 0.9, ..Default::default() }))),
        ("SGD, all", |p| {
            let options = SGDOptions { momentum: 0.9, dampening: 0.1, weight_decay: 0.01, nesterov: false };
            Box::new(optim::SGD::with(p, 0.1, options))
        }),
        ("SGD, Nesterov", |p| {
            Box::new(optim::SGD::with(p, 0.1, SGDOptions { momentum: 0.9, nesterov: true, ..Default::default() }))
        }),
        ("Adam", |p| Box::new(optim::Adam::with(p, 0.01, AdamOptions { weight_decay: 0.01, ..Default::default() }))),
        ("AdamW", |p| Box::new(optim::AdamW::new(p, 0.01))),
    ]
}

struct Training {
    model: nn::Sequential,
    opt: Box<dyn Optimizer>,
    x: Tensor,
}

impl Training {
    fn new(make: Make) -> Training {
        manual_seed(3);
        let model = nn::Sequential::new((nn::Linear::new(2, 4), nn::Tanh, nn::Linear::new(4, 1)));
        let opt = make(model.parameters());
        let x = Tensor::from_vec(vec![0.1f32, 0.7, -0.3, 0.2, 0.9, -0.8], [3, 2]);
        Training { model, opt, x }
    }

    /// As people write it: clipped, and with the step run on its own or pending until the next read.
    fn step(&mut self, barrier: bool) {
        self.opt.zero_grad();
        let loss = (self.model.forward(&self.x) - 0.5).square().mean();
        loss.backward();
        optim::clip_grad_norm_(&self.model.parameters(), 0.5);
        match barrier {
            true => optim::optimizer_step(&mut *self.opt),
            false => self.opt.step(),
        }
    }

    fn snapshot(&self) -> Bits {
        snapshot(&self.model, &*self.opt)
    }
}

/// 480 interrupts, each at a moment that was drawn.
#[test]
fn training_stands_between_two_steps_whenever_it_is_interrupted() {
    let _alone = alone();
    let mut seeded = Seeded(20);
    for (name, make) in optimizers() {
        const STEPS: usize = 12;
        let mut whole = Training::new(make);
        let mut reference = vec![whole.snapshot()];
        for _ in 0..STEPS {
            whole.step(true);
            reference.push(whole.snapshot());
        }
        let in_a_step = moments(|| whole.step(true));
        assert!(in_a_step > 50, "{name}: an interrupt can come at {in_a_step} moments");
        let mut interrupts = 0;
        while interrupts < 80 {
            let mut training = Training::new(make);
            let mut done = 0;
            while done < STEPS {
                let barrier = seeded.below(2) == 0;
                let moment = 1 + seeded.next() % (2 * in_a_step);
                let came = interrupted_at(moment, || training.step(barrier));
                interrupts += usize::from(came);
                let now = training.snapshot();
                let taken = if came && now == reference[done] { done } else { done + 1 };
                assert!(now == reference[taken], "{name}: half a step, at moment {moment} of step {done}");
                done = taken;
            }
        }
    }
}

#[test]
fn every_moment_of_a_step_leaves_all_of_it_or_nothing() {
    let _alone = alone();
    for (name, make) in optimizers() {
        let prepared = || {
            let mut training = Training::new(make);
            training.step(true);
            (training.model.forward(&training.x) - 0.5).square().mean().backward();
            training
        };
        let mut whole = prepared();
        let before = whole.snapshot();
        let count = moments(|| whole.opt.step());
        let after = whole.snapshot();
        for moment in 1..=count {
            let mut training = prepared();
            assert!(interrupted_at(moment, || training.opt.step()), "{name}: {moment} of {count}");
            assert!(training.snapshot() == before, "{name}: half a step at moment {moment} of {count}");
            // Nothing that it needs is gone.
            training.opt.step();
            assert!(training.snapshot() == after, "{name}: another step after an interrupt at moment {moment}");
        }
    }
}

#[test]
fn a_step_that_is_refused_leaves_nothing_behind() {
    let _alone = alone();
    for (name, make) in optimizers() {
        for which in 0..4 {
            let mut training = Training::new(make);
            training.step(true);
            let before = training.snapshot();
            let parameters = training.model.parameters();
            parameters.iter().for_each(|p| p.set_grad(Some(p.ones_like())));
            parameters[which].set_grad(Some(Tensor::ones([3, 5, 7])));
            refusal(|| training.opt.step());
            assert!(training.snapshot() == before, "{name}: half a step, refused at parameter {which}");
        }
    }
}

/// Goes through all moments at which an interrupt can come in `change` of what `prepare` makes: `look` always sees what was
/// there before or what is there afterwards. How often it was the one and the other.
#[track_caller]
fn all_or_nothing<T, L: PartialEq + std::fmt::Debug>(
    prepare: impl Fn() -> T,
    change: impl Fn(&mut T),
    look: impl Fn(&T) -> L,
) -> (usize, usize) {
    let before = look(&prepare());
    // Once to compile what it runs, which takes more moments than a program that is there.
    change(&mut prepare());
    let mut whole = prepare();
    let count = moments(|| change(&mut whole));
    let after = look(&whole);
    assert!(count > 0 && before != after, "{count} moments, from {before:?} to {after:?}");
    let (mut nothing, mut all) = (0, 0);
    for moment in 1..=count {
        let mut it = prepare();
        assert!(interrupted_at(moment, || change(&mut it)), "{moment} of {count}");
        match look(&it) {
            now if now == before => nothing += 1,
            now if now == after => all += 1,
            now => panic!("half of it at moment {moment} of {count}: {now:?} between {before:?} and {after:?}"),
        }
        // And the next time it is done as if nothing had been.
        if look(&it) == before {
            change(&mut it);
            assert_eq!(look(&it), after, "again after an interrupt at moment {moment} of {count}");
        }
    }
    (nothing, all)
}

fn gradients(parameters: &[Tensor]) -> Vec<Option<Vec<u64>>> {
    // All of them by one program: a line that reads one after the other runs them by other programs in the end.
    sync();
    parameters.iter().map(|p| p.grad().map(|g| bits(&g))).collect()
}

#[test]
fn backward_gives_all_gradients_or_none_and_can_be_called_again() {
    let _alone = alone();
    for had in [false, true] {
        let prepare = || {
            let training = Training::new(optimizers()[0].1);
            if had {
                training.model.parameters().iter().for_each(|p| p.set_grad(Some(p.ones_like())));
            }
            let loss = (training.model.forward(&training.x) - 0.5).square().mean();
            (training.model.parameters(), loss)
        };
        all_or_nothing(prepare, |(_, loss)| loss.backward(), |(parameters, _)| gradients(parameters));
    }
}

#[test]
fn gradients_are_clipped_all_or_none() {
    let _alone = alone();
    let prepare = || {
        let parameters = Training::new(optimizers()[0].1).model.parameters();
        parameters.iter().for_each(|p| p.set_grad(Some(p.ones_like())));
        parameters
    };
    all_or_nothing(prepare, |p| drop(optim::clip_grad_norm_(p, 0.1)), |p| gradients(p));
}

#[test]
fn a_state_is_loaded_whole_or_not_at_all() {
    let _alone = alone();
    for (name, make) in optimizers() {
        let mut other = Training::new(make);
        other.step(true);
        let (weights, state) = (other.model.state_dict(), other.opt.state_dict());
        let load = |t: &mut Training| t.model.load_state_dict(&weights).unwrap();
        let (nothing, all) = all_or_nothing(|| Training::new(make), load, Training::snapshot);
        assert!(nothing > 0 && all > 0, "{name}: the barrier is interrupted, too");
        let fresh = || {
            let mut training = Training::new(make);
            training.opt.set_lr(0.7);
            training
        };
        all_or_nothing(fresh, |t| t.opt.load_state_dict(&state).unwrap(), Training::snapshot);
    }
}

#[test]
fn a_module_is_moved_whole_or_not_at_all() {
    let _alone = alone();
    let prepare = || {
        let model = Training::new(optimizers()[0].1).model;
        model.parameters().iter().for_each(|p| p.set_grad(Some(p.ones_like())));
        model
    };
    let look = |model: &nn::Sequential| (all_bits(&model.state_dict()), gradients(&model.parameters()).len());
    let types = |model: &nn::Sequential| -> Vec<DType> {
        let all = model.parameters();
        all.iter().flat_map(|p| [p.dtype(), p.grad().unwrap().dtype()]).collect()
    };
    all_or_nothing(prepare, |model| model.to(F64), |model| (look(model), types(model)));
}

#[test]
fn statistics_of_a_batch_are_taken_whole_or_not_at_all() {
    let _alone = alone();
    let x = Tensor::from_vec((0..12).map(|i| (i * i) as f32 * 0.1).collect(), [6, 2]);
    let layer = || nn::BatchNorm1d::new(2);
    let forward = |layer: &mut nn::BatchNorm| drop(layer.forward(&x));
    let (nothing, all) = all_or_nothing(layer, forward, |layer| all_bits(&layer.state_dict()));
    assert_eq!(all, 0, "{nothing} moments before the result is recorded: then the batch is taken another time");
    // An error after the statistics were computed.
    let mut wrong = layer();
    wrong.weight = Tensor::ones([3]);
    let before = all_bits(&wrong.state_dict());
    refusal(|| wrong.forward(&x));
    assert_eq!(all_bits(&wrong.state_dict()), before);
    let functional = || (Tensor::zeros([2]), Tensor::ones([2]));
    let options = BatchNormOptions { training: true, ..Default::default() };
    let train = |(mean, var): &mut (Tensor, Tensor)| drop(x.batch_norm(Some(mean), Some(var), None, None, options));
    all_or_nothing(functional, train, |(mean, var)| (bits(mean), bits(var)));
}

/// As in torch, where an interrupt between two layers leaves the first with the batch and the second without.
#[test]
fn of_a_model_each_layer_has_taken_the_batch_or_not() {
    let _alone = alone();
    let x = Tensor::from_vec((0..12).map(|i| (i * i) as f32 * 0.1).collect(), [6, 2]);
    let model = || [nn::BatchNorm1d::new(2), nn::BatchNorm1d::new(2)];
    let forward = |[a, b]: &[nn::BatchNorm; 2]| drop(b.forward(&(a.forward(&x) * 2.0)));
    // One program for what is pending, which is the same wherever as much has been recorded.
    let look = |model: &[nn::BatchNorm; 2]| {
        sync();
        [0, 1].map(|n| all_bits(&model[n].state_dict()))
    };
    let before = look(&model());
    let only_first = model();
    drop(only_first[0].forward(&x));
    let only_first = look(&only_first);
    forward(&model());
    let whole = model();
    let count = moments(|| forward(&whole));
    let after = look(&whole);
    let mut between = 0;
    for moment in 1..=count {
        let it = model();
        assert!(interrupted_at(moment, || forward(&it)), "{moment} of {count}");
        let now = look(&it);
        let first = now == only_first;
        assert!(first || now == before || now == after, "half a batch at moment {moment} of {count}: {now:?}");
        between += usize::from(first);
    }
    assert!(between > 0, "{count} moments");
}

#[test]
fn changes_of_the_notebooks_own_are_made_all_or_none() {
    let _alone = alone();
    let fast = Training::new(optimizers()[0].1).model.parameters();
    let average = |slow: &mut Vec<Tensor>| {
        let mut changes = Changes::new();
        for (s, p) in slow.iter().zip(&fast) {
            changes.set(s, no_grad(|| s * 0.9 + p * 0.1));
        }
        changes.apply();
    };
    let slow = || fast.iter().map(|p| Tensor::zeros(p.shape())).collect::<Vec<_>>();
    all_or_nothing(slow, average, |slow| slow.iter().map(bits).collect::<Vec<_>>());
    // Two that change places, and one that takes its own value.
    let [a, b, c] = [1.0, 2.0, 3.0].map(|v| Tensor::full([2], v));
    let mut changes = Changes::new();
    changes.set(&a, b.clone());
    changes.set(&b, a.clone());
    changes.set(&c, c.clone());
    changes.apply();
    assert_eq!([a.to_vec::<f32>(), b.to_vec(), c.to_vec()], [[2.0; 2], [1.0; 2], [3.0; 2]]);
    assert!(refusal(|| Changes::new().set(&a, Tensor::ones([3]))).contains("cannot change the shape"));
}

#[test]
fn a_key_is_drawn_only_with_what_is_recorded_of_it() {
    let _alone = alone();
    let t = Tensor::full([4], 0.5);
    let draws: [(&str, &dyn Fn()); 8] = [
        ("rand", &|| drop(Tensor::rand([4]))),
        ("randn", &|| drop(Tensor::randn([4]))),
        ("rand_like", &|| drop(t.rand_like())),
        ("randn_like", &|| drop(t.randn_like())),
        ("randint", &|| drop(Tensor::randint(0, 9, [4]))),
        ("bernoulli", &|| drop(t.bernoulli())),
        ("dropout", &|| drop(t.dropout(0.5, true))),
        ("Dropout", &|| drop(nn::Dropout::new(0.5).forward(&t))),
    ];
    for (name, draw) in draws {
        let next = || {
            let t = Tensor::rand([4]);
            bits(&t)
        };
        manual_seed(5);
        let undrawn = next();
        manual_seed(5);
        let count = moments(draw);
        let drawn = next();
        assert!(count > 0 && drawn != undrawn, "{name}");
        for moment in 1..=count {
            manual_seed(5);
            assert!(interrupted_at(moment, draw), "{name}");
            assert_eq!(next(), undrawn, "{name}: the generator went on at moment {moment} of {count}");
        }
    }
    manual_seed(5);
    refusal(|| Tensor::ones([2]).to(I64).rand_like());
    refusal(|| Tensor::ones([2]).to(I64).bernoulli());
    let after_refusals = bits(&Tensor::rand([4]));
    manual_seed(5);
    assert_eq!(bits(&Tensor::rand([4])), after_refusals);
}

/// A module whose own code ends an interrupt between its parts, as generated code does.
struct Slow(nn::Dropout, nn::Dropout);

impl Module for Slow {
    fn parts(&self, parts: &mut nn::Parts) {
        parts.add("first", &self.0);
        xlazy::cell::rt::check();
        parts.add("second", &self.1);
        xlazy::cell::rt::check();
    }
}

#[test]
fn a_model_trains_everywhere_or_nowhere() {
    let _alone = alone();
    let x = Tensor::ones([64]);
    let trains = |layer: &nn::Dropout| layer.forward(&x).to_vec::<f32>() != [1.0; 64];
    all_or_nothing(
        || Slow(nn::Dropout::new(0.5), nn::Dropout::new(0.5)),
        |model| model.eval(),
        |model| [trains(&model.0), trains(&model.1)],
    );
}

#[test]
fn schedules_and_loaders_stay_where_they_were() {
    let _alone = alone();
    let w = Tensor::ones([1]).requires_grad_(true);
    let prepare = || {
        let mut opt = optim::SGD::new([&w], 0.8);
        let factor = |n: usize| {
            xlazy::cell::rt::check();
            0.5f64.powf(n as f64)
        };
        (optim::LambdaLR::new(&mut opt, factor), opt)
    };
    let rates = |(schedule, opt): &mut (optim::LambdaLR, optim::SGD)| {
        let _ = interrupted_at(1, || schedule.step(opt));
        assert_eq!(opt.lr(), 0.8);
        schedule.step(opt);
        opt.lr()
    };
    assert_eq!(rates(&mut prepare()), 0.4, "the epoch that an interrupt ended is not counted");

    struct Failing(std::sync::atomic::AtomicBool);
    impl data::Dataset<1> for Failing {
        fn len(&self) -> usize {
            3
        }
        fn batch(&self, indices: &[usize]) -> [Tensor; 1] {
            if self.0.swap(false, std::sync::atomic::Ordering::Relaxed) {
                panic!("the disk is away for a moment");
            }
            [Tensor::full([1], indices[0] as f64)]
        }
    }
    let loader = data::DataLoader::new(Failing(true.into()), 1);
    let mut batches = loader.iter();
    assert!(catch_unwind(AssertUnwindSafe(|| batches.next())).is_err());
    let rest: Vec<f64> = batches.map(|[x]| x.item()).collect();
    assert_eq!(rest, [0.0, 1.0, 2.0]);
}
