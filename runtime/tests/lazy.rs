//! What a user relies on: when things run, what compiles, what reads leave alone.
use std::sync::Mutex;
use xlazy::metrics::{counter_value, metric_data};
use xlazy::prelude::*;

// The runtime is one per process, and counters are its own: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    sync();
    guard
}

fn compiles() -> u64 {
    counter_value("UncachedCompile").unwrap()
}

#[test]
fn nothing_runs_before_it_is_read() {
    let _alone = alone();
    let before = metric_data("ExecuteTime").unwrap().0;
    let x = tensor([[1.0, 2.0], [3.0, 4.0]]);
    let y = (&x * 2.0 + 1.0).sum_dim(0, false);
    assert_eq!(metric_data("ExecuteTime").unwrap().0, before);
    assert_eq!(y.to_vec::<f32>(), [10.0, 14.0]);
    assert_eq!(metric_data("ExecuteTime").unwrap().0, before + 1);
    assert_eq!(y.to_vec::<f32>(), [10.0, 14.0]);
    assert_eq!(metric_data("ExecuteTime").unwrap().0, before + 1, "a value is computed once");
}

#[test]
fn a_changed_scalar_does_not_compile_again_a_changed_shape_does() {
    let _alone = alone();
    let run = |n: usize, k: f64| (Tensor::ones([n, 3]) * k - 0.5).sum().item();
    run(4, 2.0);
    let before = compiles();
    assert_eq!(run(4, 3.0), 30.0);
    assert_eq!(run(4, 0.5), 0.0);
    assert_eq!(compiles(), before);
    assert_eq!(run(5, 3.0), 37.5);
    assert_eq!(compiles(), before + 1);
}

#[test]
fn reading_inside_a_step_does_not_change_the_step() {
    let _alone = alone();
    let w = tensor([1.0, 2.0, 3.0]).requires_grad_(true);
    let step = |show: bool| {
        let loss = (&w * &w).sum();
        let seen = show.then(|| loss.item());
        loss.backward();
        no_grad(|| w.sub_(w.grad().unwrap() * 0.1));
        w.set_grad(None);
        sync();
        (seen, loss)
    };
    step(false);
    step(false);
    let before = compiles();
    let (seen, loss) = step(true);
    assert_eq!(compiles(), before + 1, "the read's own program");
    assert_eq!(loss.item(), seen.unwrap());
    step(true);
    step(false);
    assert_eq!(compiles(), before + 1);
}

#[test]
fn gradients_survive_a_sync_and_a_read() {
    let _alone = alone();
    let x = tensor([1.0, 2.0]).requires_grad_(true);
    let y = (&x * &x * &x).sum();
    assert_eq!(y.item(), 9.0);
    sync();
    y.backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [3.0, 12.0]);
    let z = (&x * 2.0).sum();
    sync();
    z.backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [5.0, 14.0], "gradients accumulate");
}

#[test]
fn a_used_up_history_is_refused() {
    let _alone = alone();
    let x = tensor([1.0]).requires_grad_(true);
    let y = (&x * &x).sum();
    y.backward();
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| y.backward()));
    let message = *again.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("used up by an earlier backward()"), "{message}");
    let y = (&x * &x).sum();
    y.backward_with(None, true);
    y.backward();
    assert_eq!(x.grad().unwrap().item(), 6.0);
}

#[test]
fn handles_are_names_for_one_tensor() {
    let _alone = alone();
    let a = tensor([1.0, 2.0]);
    let b = a.clone();
    a.add_(10.0);
    assert_eq!(b.to_vec::<f32>(), [11.0, 12.0]);
    let c = a.copy();
    a.zero_();
    assert_eq!(c.to_vec::<f32>(), [11.0, 12.0]);
}

#[test]
fn parameters_are_donated_at_a_barrier_and_never_when_held() {
    let _alone = alone();
    let w = Tensor::ones([64]);
    sync();
    w.mul_(2.0);
    sync();
    assert_eq!(xlazy::insight::events().last().unwrap().donated, 1);
    let old = Tensor::zeros([64]).copy_(&w);
    w.mul_(2.0);
    sync();
    assert_eq!(xlazy::insight::events().last().unwrap().donated, 0, "`old` still needs the buffer");
    assert_eq!((old.to_vec::<f32>()[0], w.to_vec::<f32>()[0]), (2.0, 4.0));
}

#[test]
fn a_long_chain_neither_overflows_nor_lingers() {
    let _alone = alone();
    let mut x = Tensor::ones([2]);
    for _ in 0..100_000 {
        x += 1.0;
    }
    drop(x);
    sync();
}

#[test]
fn random_numbers_are_new_each_time_without_compiling() {
    let _alone = alone();
    manual_seed(1);
    let a = Tensor::rand([1000]);
    let mean = a.mean().item();
    assert!((0.45..0.55).contains(&mean), "{mean}");
    let v = a.to_vec::<f32>();
    assert!(v.iter().all(|x| (0.0..1.0).contains(x)));
    let before = compiles();
    let b = Tensor::rand([1000]);
    assert_ne!(b.to_vec::<f32>(), v);
    assert_eq!(compiles(), before);
    let n = Tensor::randn([10_000]);
    let (mean, std) = (n.mean().item(), n.std().item());
    assert!(mean.abs() < 0.05 && (std - 1.0).abs() < 0.05, "{mean} {std}");
    let i = Tensor::randint(-2, 3, [1000]).to_vec::<i64>();
    assert_eq!((i.iter().min(), i.iter().max()), (Some(&-2), Some(&2)));
}

#[test]
fn errors_name_the_op_and_the_shapes() {
    let _alone = alone();
    let a = Tensor::ones([2, 3]);
    let b = Tensor::ones([4, 5]);
    let failed = std::panic::catch_unwind(|| a.matmul(&b));
    let message = *failed.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(
        message,
        "matmul(f32[2,3], f32[4,5]): the inner sizes differ: [2,3] has 3 columns, [4,5] has 4 rows; expected them equal"
    );
}

#[test]
fn nothing_leaks() {
    let _alone = alone();
    let count = || {
        let live = xlazy::metrics::counter_value("CreateDataHandles").unwrap()
            - xlazy::metrics::counter_value("DestroyDataHandles").unwrap();
        (
            live,
            xlazy::metrics::counter_value("CreateXlaTensor").unwrap()
                - xlazy::metrics::counter_value("DestroyXlaTensor").unwrap(),
        )
    };
    let round = || {
        let w = Tensor::randn([8, 8]).requires_grad_(true);
        let loss = w.matmul(&w).relu().sum();
        loss.item();
        loss.backward();
        sync();
        w.grad().unwrap().to_vec::<f32>();
    };
    round();
    let before = count();
    (0..20).for_each(|_| round());
    assert_eq!(count(), before);
}
