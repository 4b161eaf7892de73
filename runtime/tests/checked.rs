//! What only the device can tell is wrong: positions out of range and divisions by zero that a program computed. Told at the
//! op's line when a value is read or all is synced, by the program that ran anyway.
mod support;

use support::{alone, refusal};
use xlazy::metrics::{counter_value, metric_data};
use xlazy::prelude::*;

/// Integers that a program computes, so that the host knows nothing of them.
fn computed<const N: usize>(values: [i64; N]) -> Tensor {
    tensor(values) * 2 - tensor(values)
}

/// A name, the refused element, and the call.
type Wrong = (&'static str, &'static str, fn() -> Tensor);

const WRONG: &[Wrong] = &[
    ("index_select", "index 3 is out of bounds for dimension 0 with size 3", || {
        Tensor::ones([3, 2]).index_select(0, &computed([0, 3]))
    }),
    ("index_select", "index -1 is out of bounds for dimension 1 with size 2", || {
        Tensor::ones([3, 2]).index_select(1, &computed([0, -1]))
    }),
    ("gather", "index 5 is out of bounds for dimension 1 with size 4", || {
        Tensor::ones([1, 4]).gather(1, &computed([5, 0]).unsqueeze(0))
    }),
    ("take", "index 6 is out of bounds for dimension 0 with size 6", || Tensor::ones([2, 3]).take(&computed([6]))),
    ("take", "index -7 is out of bounds for dimension 0 with size 6", || Tensor::ones([2, 3]).take(&computed([-7]))),
    ("embedding", "index 9 is out of bounds for dimension 0 with size 4", || {
        computed([9, 1]).embedding(&Tensor::ones([4, 2]))
    }),
    ("gather", "index 3 is out of bounds for dimension 1 with size 3", || {
        Tensor::ones([2, 3]).cross_entropy(&computed([3, 0]), Default::default())
    }),
    ("index", "index -4 is out of bounds for dimension 0 with size 3", || Tensor::ones([3, 2]).i(computed([-4]))),
    ("scatter", "index 4 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).scatter(0, &computed([4]), 1.0)
    }),
    ("scatter", "index 4 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).scatter_add(0, &computed([4]), Tensor::ones([1]))
    }),
    ("index_add", "index -1 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).index_add(0, &computed([-1]), &Tensor::ones([1]))
    }),
    ("index_copy", "index 3 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).index_copy(0, &computed([3]), &Tensor::ones([1]))
    }),
    ("index_fill", "index 3 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).index_fill(0, &computed([3]), 1.0)
    }),
    ("put", "index 3 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).put(&computed([3]), &Tensor::ones([1]), false)
    }),
    ("index_put", "index 8 is out of bounds for dimension 0 with size 3", || {
        Tensor::zeros([3]).index_put(&[Some(&computed([8]))], 1.0, true)
    }),
    ("one_hot", "class 5 is out of bounds: there are 3 classes", || computed([0, 5]).one_hot(3)),
    ("repeat_interleave", "repeats cannot be negative, as -1 is", || {
        tensor([1.0, 2.0]).repeat_interleave_each(&computed([2, -1]), 0, Some(2))
    }),
    ("bernoulli", "all elements of the input should be between 0 and 1", || (tensor([0.5, 0.8]) * 2.0).bernoulli()),
    ("bernoulli", "between 0 and 1", || (tensor([0.5, f64::NAN]) * 1.0).bernoulli()),
    ("multinomial", "the weights of a distribution are all 0", || {
        tensor([[0.0, 0.0], [1.0, 1.0]]).multinomial(1, true)
    }),
    ("multinomial", "infinity, NaN or a number below 0", || tensor([-1.0, 3.0]).multinomial(1, false)),
    ("poisson", "rates and counts are not negative", || (tensor([0.5, -0.5]) * 1.0).poisson()),
    ("bernoulli", "all elements of the input should be between 0 and 1", || {
        tensor([3.0, 3.0]).binomial(&(tensor([0.5, 1.5]) * 1.0))
    }),
    ("binary_cross_entropy", "all elements of the input should be between 0 and 1", || {
        tensor([0.5, 1.5]).binary_cross_entropy(&tensor([1.0, 0.0]), None, Reduction::Mean)
    }),
    ("binary_cross_entropy", "all elements of the target should be between 0 and 1", || {
        tensor([0.5, 1.0]).binary_cross_entropy(&tensor([2.0, 0.0]), None, Reduction::Mean)
    }),
    ("floor_divide", "ZeroDivisionError", || tensor([1, 2]).floor_divide(computed([1, 0]))),
    ("remainder", "ZeroDivisionError", || tensor([1, 2]).remainder(computed([1, 0]))),
    ("remainder", "ZeroDivisionError", || tensor([1, 2]) % computed([0, 0])),
    ("fmod", "ZeroDivisionError", || tensor([1, 2]).fmod(computed([1, 0]))),
    ("div_trunc", "ZeroDivisionError", || tensor([1, 2]).div_trunc(computed([1, 0]))),
];

fn says(said: &str, (op, why, _): &Wrong) -> bool {
    said.starts_with(&format!("{op}(")) && said.contains(why)
}

#[test]
fn what_a_program_computed_is_refused_when_it_is_read_and_again_when_it_is_read_again() {
    let _alone = alone();
    for wrong in WRONG {
        let x = (wrong.2)();
        for _ in 0..2 {
            let said = refusal(|| x.wait());
            assert!(says(&said, wrong), "{}: {said}", wrong.0);
        }
        assert_eq!((Tensor::ones([2]) * 3.0).to_vec::<f32>(), [3.0, 3.0], "the session goes on");
        drop(x);
        sync();
    }
}

#[test]
fn a_barrier_tells_it_or_the_next_read_does() {
    let _alone = alone();
    for wrong in WRONG {
        let x = (wrong.2)();
        let said = refusal(|| {
            sync();
            x.wait();
        });
        assert!(says(&said, wrong), "{}: {said}", wrong.0);
        sync();
    }
}

#[test]
fn what_is_in_range_passes_and_numbers_are_known_to_the_host() {
    let _alone = alone();
    let x = tensor([[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(x.index_select(0, &computed([1])).to_vec::<f32>(), [3.0, 4.0]);
    assert_eq!(x.i(computed([-1])).to_vec::<f32>(), [3.0, 4.0]);
    assert_eq!(tensor([7, -7]).floor_divide(computed([2, -2])).to_vec::<i64>(), [3, 3]);
    assert_eq!(
        tensor([1.0, -1.0]).floor_divide(tensor([0.0, 0.0])).to_vec::<f32>(),
        [f32::INFINITY, f32::NEG_INFINITY]
    );
    assert!(!xlazy::show::stablehlo(&(computed([1]) % 3), false).plain().contains("reduce"), "the host knows 3");
    assert_eq!(refusal(|| computed([1]) % 0).split(':').next(), Some("remainder(i64[1])"));
    // torch: 1 and -1 have inverses among integers, everything else gives 0.
    let powers = tensor([2, 1, -1, -1, 3]).pow(computed([-1, -2, -3, -2, -2]));
    assert_eq!(powers.to_vec::<i64>(), [0, 1, -1, 1, 0]);
}

#[test]
fn looking_costs_no_program_no_run_and_no_donation() {
    let _alone = alone();
    let words = Tensor::randn([50, 8]).requires_grad_(true);
    let count = || (counter_value("UncachedCompile").unwrap_or(0), metric_data("ExecuteTime").map_or(0, |m| m.0));
    let step = |ids: &Tensor| {
        let loss = ids.remainder(50).embedding(&words).square().sum();
        loss.backward();
        no_grad(|| words.sub_(words.grad().unwrap() * 0.1));
        words.set_grad(None);
        sync();
        loss
    };
    let ids = |k: i64| tensor([k, k + 1, k + 2]);
    (0..3).for_each(|k| drop(step(&ids(k))));
    let before = count();
    let loss = step(&ids(70));
    assert!(loss.item().is_finite());
    let after = count();
    assert_eq!((after.0 - before.0, after.1 - before.1), (0, 1), "compilations and runs");
    assert_eq!(xlazy::insight::events().last().unwrap().donated, 1);
    assert_eq!(xlazy::insight::events().last().unwrap().outputs, 2, "what was looked for is no result of the user's");
}

/// A call in the body of a loop or a branch: the op, what it refuses, the worst of all rounds, and the call.
type Within = (&'static str, &'static str, fn() -> Tensor);

const WITHIN: &[Within] = &[
    ("index_select", "index 4 is out of bounds for dimension 0 with size 3", || {
        fori_loop(0, 5, |i, x: Tensor| x + tensor([1.0, 2.0, 3.0]).index_select(0, &i.reshape(1)), &Tensor::zeros([1]))
    }),
    ("take", "index 6 is out of bounds for dimension 0 with size 4", || {
        while_loop(|i: Tensor| i.lt(7), |i| i.clone() + 1 + Tensor::zeros([4]).take(&i).long(), &tensor(0))
    }),
    ("gather", "index 9 is out of bounds for dimension 0 with size 3", || {
        scan(
            |s: Tensor, i: Tensor| (s.clone() + tensor([1.0, 2.0, 3.0]).gather(0, &i.reshape(1)), s),
            &Tensor::zeros([1]),
            &computed([1, 9, 2]),
        )
        .0
    }),
    ("remainder", "ZeroDivisionError", || map(|i: Tensor| tensor(7).remainder(&i), &computed([3, 0, 2]))),
    ("index", "index -4 is out of bounds for dimension 0 with size 3", || {
        cond(&computed([1]).gt(0), |i: Tensor| tensor([1.0, 2.0, 3.0]).i(&i), |_| Tensor::zeros([1]), &computed([-4]))
    }),
    ("floor_divide", "ZeroDivisionError", || {
        let inner = |j: Tensor, x: Tensor| x + tensor(6).floor_divide(&(j - 2));
        fori_loop(0, 2, |_, x: Tensor| fori_loop(0, 4, inner, &x), &tensor(0))
    }),
    ("take", "index 4 is out of bounds for dimension 0 with size 3", || {
        let open = |i: Tensor| Tensor::zeros([3]).take(&i).lt(1.0).logical_and(i.lt(5));
        while_loop(open, |i| i + 1, &tensor(0))
    }),
];

#[test]
fn what_a_body_computed_is_refused_at_its_op() {
    let _alone = alone();
    for (op, why, call) in WITHIN {
        let x = call();
        for _ in 0..2 {
            let said = refusal(|| x.wait());
            assert!(said.starts_with(&format!("{op}(")) && said.contains(why), "{op}: {said}");
        }
        drop(x);
        sync();
    }
}

#[test]
fn what_is_in_range_passes_in_bodies_and_a_branch_that_is_not_taken_says_nothing() {
    let _alone = alone();
    let x = tensor([1.0, 2.0, 3.0]);
    let sum = fori_loop(0, 3, |i, s: Tensor| s + x.take(&i), &tensor(0.0));
    assert_eq!(sum.item(), 6.0);
    let other = cond(&sum.gt(100.0), |i: Tensor| x.take(&i), |_| tensor(4.0), &computed([5]).reshape(()));
    assert_eq!(other.item(), 4.0);
    // gradients of bodies look, too
    let w = tensor([0.5, 0.25]).requires_grad_(true);
    let ids = computed([0, 1, 1]);
    let (sum, _) = scan(|s: Tensor, i: Tensor| (s + w.take(&i), ()), &tensor(0.0), &ids);
    assert_eq!(grad(&sum, &[&w])[0].as_ref().unwrap().to_vec::<f32>(), [1.0, 2.0]);
}

#[test]
fn numbers_are_looked_for_in_bodies_at_the_op_that_made_them_first() {
    use xlazy::backends::set_detect_anomaly;
    let _alone = alone();
    set_detect_anomaly(true);
    // In the first round log gives -inf, in the second sqrt a NaN, which everything after it has.
    let x = || fori_loop(0, 4, |_, x: Tensor| ((x * 2.0).sqrt() - 2.0).mul(1.0), &tensor(1.0));
    let said = refusal(|| x().wait());
    let behind = refusal(|| (x() + 1.0).wait());
    let branch = refusal(|| cond(&computed([1]).gt(0), |x: Tensor| x.log(), |x| x, &tensor(-1.0)).wait());
    let given = refusal(|| fori_loop(0, 2, |_, x: Tensor| x * 2.0, &tensor(f32::NAN)).wait());
    set_detect_anomaly(false);
    assert!(said.starts_with("sqrt(f32[])") && said.contains("it gave NaN"), "{said}");
    assert!(behind.starts_with("sqrt(f32[])"), "{behind}");
    assert!(branch.starts_with("log(f32[])"), "{branch}");
    assert!(given.contains("it was given NaN"), "{given}");
}
