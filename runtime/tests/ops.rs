//! What a user relies on beyond single values: indexing, writing in place, what compiles again and what reads values.
// `0..=-1` is up to the last element, as in Python.
#![allow(clippy::reversed_empty_ranges)]
use std::sync::Mutex;
use xlazy::metrics::counter_value;
use xlazy::prelude::*;

// Counters are the process's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    sync();
    guard
}

fn compiles() -> u64 {
    counter_value("UncachedCompile").unwrap()
}

fn refusal(f: impl FnOnce()) -> String {
    *std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn indexing_is_pythons() {
    let _alone = alone();
    let x = Tensor::arange(0, 24, 1).reshape([2, 3, 4]);
    assert_eq!(x.i((0, .., 1..3)).shape(), [3, 2]);
    assert_eq!(x.i((At::Ellipsis, -1)).to_vec::<i64>(), [3, 7, 11, 15, 19, 23]);
    assert_eq!(x.i((.., At::NewAxis, 0)).shape(), [2, 1, 4]);
    assert_eq!(x.i(At::Slice { start: None, end: None, step: 2 }).shape(), [1, 3, 4]);
    assert_eq!(x.i((.., 0..=-1)).shape(), [2, 3, 4]);
    // index tensors apart from each other: their dimension comes first
    let rows = tensor([0, 1, 1]);
    assert_eq!(x.i((&rows, .., &rows)).shape(), [3, 3]);
    assert_eq!(x.i((.., &rows, &rows)).to_vec::<i64>(), [0, 5, 5, 12, 17, 17]);
    let message = refusal(|| drop(x.i((0, 0, 0, 0))));
    assert_eq!(message, "i(i64[2,3,4]): 4 positions for 3 dimensions");
}

#[test]
fn parts_are_written_in_place() {
    let _alone = alone();
    let x = Tensor::zeros([2, 3]);
    let same = x.clone();
    x.set_((.., 1), 5.0);
    x.set_((0, 0..1), tensor([7.0]));
    x.set_(x.eq(0.0), -1.0);
    assert_eq!(same.to_vec::<f32>(), [7.0, 5.0, -1.0, -1.0, 5.0, -1.0]);
    let w = Tensor::zeros([3]).requires_grad_(true);
    let y = (&w * 2.0).index_put(&[Some(&tensor([0]))], 1.0, false);
    y.sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [0.0, 2.0, 2.0]);
}

#[test]
fn another_number_in_an_op_does_not_compile_again() {
    let _alone = alone();
    let x = Tensor::ones([4, 4]);
    let run = |k: f64| {
        let y = x.clamp(-k, k).leaky_relu(k).hardtanh(-k, k).softshrink(k).layer_norm(4, None, None, k);
        y.smooth_l1_loss(&x, k, Reduction::Mean).item()
    };
    run(0.5);
    let before = compiles();
    run(0.25);
    run(0.125);
    assert_eq!(compiles(), before);
}

#[test]
fn ops_that_need_values_say_so() {
    let _alone = alone();
    let x = tensor([1.0, -1.0, 2.0]) * 1.0;
    let picked = x.masked_select(&x.gt(0.0));
    assert_eq!(picked.shape(), [2]);
    let event = insight::events().pop().unwrap();
    assert_eq!(event.cause.name(), "op that needs concrete values");
    assert!(event.at.file().ends_with("ops.rs"));
}

#[test]
fn sparse_parts_get_their_gradients() {
    let _alone = alone();
    let words = Tensor::ones([4, 2]).requires_grad_(true);
    let y = tensor([[1, 1], [3, 1]]).embedding(&words);
    y.sum().backward();
    assert_eq!(words.grad().unwrap().to_vec::<f32>(), [0.0, 0.0, 3.0, 3.0, 0.0, 0.0, 1.0, 1.0]);
    let x = tensor([3.0, 1.0, 2.0]).requires_grad_(true);
    let (top, _) = x.topk(2, 0, true);
    (top * tensor([10.0, 20.0])).sum().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [10.0, 0.0, 20.0]);
}

#[test]
fn refusals_name_the_op_and_what_was_expected() {
    let _alone = alone();
    let x = Tensor::ones([1, 3, 8, 8]);
    let message = refusal(|| drop(x.conv2d(&Tensor::ones([4, 2, 3, 3]), None, ConvOptions::default())));
    assert_eq!(message, "conv2d(f32[1,3,8,8], f32[4,2,3,3]): the input has 3 channels, the weight takes 2 × 1 groups");
    let message = refusal(|| drop(x.gather(0, &Tensor::ones([1, 3, 8, 8]))));
    assert!(message.contains("the index is f32, expected integers"), "{message}");
    let message = refusal(|| drop(einsum("ij,jk", &[&x])));
    assert!(message.contains("names 2 operands, 1 are given"), "{message}");
}

#[test]
fn errors_and_nodes_carry_the_callers_line() {
    let _alone = alone();
    let x = Tensor::ones([2, 3, 8]);
    // methods made of several ops, in closures
    for y in [x.group_norm(3, None, None, 1e-5), x.avg_pool1d(2, AvgPoolOptions::default()), x.split(2, -1).remove(1)] {
        assert!(y.location().file().ends_with("ops.rs") && y.location().file().contains("tests"), "{}", y.location());
    }
}

/// What torch gives for the same calls.
#[test]
fn windows_and_frequencies_are_torchs() {
    let near = |y: Tensor, theirs: &[f32]| {
        let ours = y.to_vec::<f32>();
        let alike = ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(alike, "{ours:?}, torch has {theirs:?}");
    };
    near(Tensor::hann_window(5, true), &[0.0, 0.345_491_5, 0.904_508_5, 0.904_508_5, 0.345_491_5]);
    near(Tensor::hamming_window(5, true), &[0.08, 0.397_852_2, 0.912_147_9, 0.912_147_9, 0.397_852_2]);
    near(Tensor::hamming_window(5, false), &[0.08, 0.54, 1.0, 0.54, 0.08]);
    near(Tensor::blackman_window(5, true), &[0.0, 0.200_770_1, 0.849_229_8, 0.849_229_8, 0.200_770_1]);
    near(Tensor::bartlett_window(5, true), &[0.0, 0.4, 0.8, 0.8, 0.4]);
    near(Tensor::kaiser_window(5, true, 12.0), &[0.000_052_8, 0.101_719_7, 0.792_939_4, 0.792_939_4, 0.101_719_7]);
    near(Tensor::kaiser_window(1, false, 12.0), &[1.0]);
    near(Tensor::hann_window(0, true), &[]);
    near(Tensor::fftfreq(5, 0.5), &[0.0, 0.4, 0.8, -0.8, -0.4]);
    near(Tensor::rfftfreq(5, 0.5), &[0.0, 0.4, 0.8]);
    let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    assert_eq!(x.fftshift(()).to_vec::<i64>(), [5, 3, 4, 2, 0, 1]);
    assert_eq!(x.ifftshift(()).to_vec::<i64>(), [4, 5, 3, 1, 2, 0]);
    assert_eq!(x.fftshift(-1).to_vec::<i64>(), [2, 0, 1, 5, 3, 4]);
}

#[test]
fn choices_positions_and_repetitions_are_torchs() {
    let three = tensor([1, 2, 3]);
    let all = three.combinations(3, true).to_vec::<i64>();
    assert_eq!((all.len(), &all[..6], &all[27..]), (30, &[1, 1, 1, 1, 1, 2][..], &[3, 3, 3][..]));
    assert_eq!(three.combinations(0, false).shape(), [0]);
    assert_eq!(three.combinations(4, false).shape(), [0, 4]);
    let at = tensor([[0, 7], [-1, 23]]).unravel_index([2, 3, 4]);
    let at: Vec<Vec<i64>> = at.iter().map(Tensor::to_vec).collect();
    assert_eq!(at, [[0, 0, 1, 1], [0, 1, 2, 2], [0, 3, 3, 3]]);
    let (y, x) = (tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]]), tensor([0.0, 1.0, 3.0]));
    assert_eq!(y.cumulative_trapezoid(Some(&x), 1.0, -1).to_vec::<f32>(), [1.5, 7.5, 4.0, 18.0]);
    assert_eq!(y.cumulative_trapezoid(None, 1.0, 0).to_vec::<f32>(), [2.0, 3.5, 6.5]);
    // Halves beside floats are promoted.
    let half = y.half().trapezoid(Some(&x), 1.0, -1);
    assert_eq!((half.dtype(), half.to_vec::<f32>()), (F32, vec![7.5, 18.0]));
    let pairs = tensor([[1, 1], [1, 2], [2, 2]]);
    let found = pairs.unique_consecutive(None);
    assert_eq!(found.values.to_vec::<i64>(), [1, 2]);
    assert_eq!(found.inverse.shape(), [3, 2]);
    assert_eq!(found.inverse.to_vec::<i64>(), [0, 0, 0, 1, 1, 1]);
    assert_eq!(found.counts.to_vec::<i64>(), [3, 3]);
    let rows = tensor([[1, 1], [1, 1], [2, 2]]).unique_consecutive(Some(0));
    assert_eq!(rows.values.to_vec::<i64>(), [1, 1, 2, 2]);
    assert_eq!((rows.inverse.to_vec::<i64>(), rows.counts.to_vec::<i64>()), (vec![0, 0, 1], vec![2, 1]));
    assert_eq!(Tensor::ones([0]).unique_consecutive(None).counts.shape(), [0]);
    assert_eq!(tensor([f32::NAN, f32::NAN]).unique_consecutive(None).values.shape(), [2]);
    let wide = xlazy::broadcast_tensors(&[&tensor([1, 2]), &tensor([[3.0], [4.0]])]);
    assert_eq!((wide[0].to_vec::<i64>(), wide[1].to_vec::<f32>()), (vec![1, 2, 1, 2], vec![3.0, 3.0, 4.0, 4.0]));
}

/// How often each number up to `most` was drawn is as likely as `chance` of it says: chi squared, by three deviations and a half.
fn is_distributed(name: &str, drawn: &Tensor, most: usize, chance: impl Fn(f64) -> f64) {
    let drawn = drawn.to_vec::<f64>();
    assert!(drawn.iter().all(|v| *v >= 0.0 && v.fract() == 0.0), "{name}");
    let n = drawn.len() as f64;
    let (mut squares, mut cells) = (0.0f64, 0.0f64);
    for k in 0..=most {
        let expected = n * chance(k as f64);
        if expected >= 5.0 {
            let seen = drawn.iter().filter(|v| **v == k as f64).count() as f64;
            squares += (seen - expected).powi(2) / expected;
            cells += 1.0;
        }
    }
    assert!(cells >= 2.0 && squares < cells + 3.5 * f64::sqrt(2.0 * cells), "{name}: {squares} of {cells} numbers");
}

#[test]
fn what_is_drawn_has_its_distribution() {
    let _alone = alone();
    manual_seed(3);
    let n = 20_000;
    let log_factorial = |k: f64| (1..=k as u64).map(|i| (i as f64).ln()).sum::<f64>();
    for rate in [0.3, 4.0, 9.9, 10.1, 60.0] {
        let chance = |k: f64| (k * f64::ln(rate) - rate - log_factorial(k)).exp();
        is_distributed(&format!("poisson {rate}"), &Tensor::full([n], rate).double().poisson(), 200, chance);
    }
    for (count, p) in [(5.0, 0.3), (40.0, 0.5), (200.0, 0.02), (200.0, 0.3), (200.0, 0.9), (1.0, 0.99)] {
        let ways = |k: f64| log_factorial(count) - log_factorial(k) - log_factorial(count - k);
        let chance = |k: f64| (ways(k) + k * f64::ln(p) + (count - k) * f64::ln(1.0 - p)).exp();
        let drawn = Tensor::full([n], count).double().binomial(&Tensor::full([n], p).double());
        is_distributed(&format!("binomial {count} {p}"), &drawn, count as usize, chance);
    }
    // In one call, each element by its own parameters; and in float32, as they come.
    let mixed = tensor([0.0, 1.0, 5.0, 50.0, 500.0]).unsqueeze(1).expand([5, 4000]).poisson();
    assert_eq!(mixed.dtype(), F32);
    let means = mixed.mean_dim(1, false).double().to_vec::<f64>();
    for (mean, rate) in means.iter().zip([0.0f64, 1.0, 5.0, 50.0, 500.0]) {
        assert!((mean - rate).abs() <= 4.0 * (rate / 4000.0).sqrt(), "{means:?}");
    }
    let sure = tensor([0.0, 9.0, 9.0, 300.0]).binomial(&tensor([0.5, 0.0, 1.0, 1.0]));
    assert_eq!(sure.to_vec::<f32>(), [0.0, 0.0, 9.0, 300.0]);
    assert_eq!(Tensor::zeros([0]).poisson().shape(), [0]);
}

#[test]
fn normal_takes_numbers_and_tensors() {
    let _alone = alone();
    manual_seed(1);
    let x = Tensor::normal(3.0, 0.5, [4000]);
    assert!((x.mean().item() - 3.0).abs() < 0.05 && (x.std().item() - 0.5).abs() < 0.03);
    let (mean, std) = (tensor([1.0, 5.0]).requires_grad_(true), tensor([[0.0], [2.0]]).requires_grad_(true));
    let drawn = Tensor::normal(&mean, &std, [2, 2]);
    assert_eq!(drawn.i(0).to_vec::<f32>(), [1.0, 5.0]);
    drawn.sum().backward();
    assert_eq!(mean.grad().unwrap().to_vec::<f32>(), [2.0, 2.0]);
    assert!(refusal(|| drop(Tensor::normal(tensor([1.0, 2.0]), 1.0, [3]))).contains("normal"));
}

#[test]
fn a_signal_comes_back_from_its_windows() {
    let _alone = alone();
    let x = (Tensor::arange(0, 120, 1).float() * 0.37).sin().reshape([2, 60]);
    for (n_fft, hop, onesided, normalized) in [(16, 4, true, false), (16, 5, false, true), (15, 3, true, true)] {
        let options = StftOptions {
            hop_length: Some(hop),
            win_length: Some(12),
            window: Some(Tensor::arange(1, 13, 1).float() * 0.1),
            onesided: Some(onesided),
            normalized,
            ..Default::default()
        };
        let back = x.stft(n_fft, options.clone()).istft(n_fft, options.clone(), Some(60));
        assert_eq!(back.shape(), [2, 60]);
        assert!((&back - &x).abs().max().item() < 1e-4, "{n_fft} {hop}");
        let one = x.i(0).stft(n_fft, options.clone()).istft(n_fft, options.clone(), None);
        assert!((&one - x.i((0, ..one.size(0) as i64))).abs().max().item() < 1e-4);
        let longer = x.stft(n_fft, options.clone()).istft(n_fft, options, Some(80));
        assert_eq!(longer.shape(), [2, 80]);
        assert_eq!(longer.i((.., 79)).to_vec::<f32>(), [0.0; 2]);
    }
    assert!(refusal(|| drop(Tensor::ones([5, 3]).istft(8, StftOptions::default(), None))).contains("complex"));
}

#[test]
fn histograms_count_weigh_and_share() {
    let _alone = alone();
    // As numpy.histogram has them.
    let x = tensor([1.0, 2.0, 1.0, 4.0, 2.5]);
    let weigh = |w: Option<Tensor>, density| HistogramOptions { range: Some((0.0, 3.0)), weight: w, density };
    let (counts, edges) = x.histogram(3, weigh(None, false));
    assert_eq!((counts.to_vec::<f32>(), edges.to_vec::<f32>()), (vec![0.0, 2.0, 2.0], vec![0.0, 1.0, 2.0, 3.0]));
    let (counts, _) = x.histogram(3, weigh(Some(tensor([1.0, 2.0, 4.0, 8.0, 16.0])), false));
    assert_eq!(counts.to_vec::<f32>(), [0.0, 5.0, 18.0]);
    let (shares, _) = x.histogram(3, weigh(None, true));
    assert_eq!(shares.to_vec::<f32>(), [0.0, 0.5, 0.5]);
    let (shares, _) =
        x.histogram_edges(&tensor([1.0, 1.5, 2.5, 5.0]), HistogramOptions { density: true, ..Default::default() });
    assert!((&shares * 5.0 - tensor([4.0f32, 1.0, 0.8])).abs().max().item() < 1e-6);
    let (counts, edges) = tensor([2.0, 2.0]).histogram(2, HistogramOptions::default());
    assert_eq!((counts.to_vec::<f32>(), edges.to_vec::<f32>()), (vec![0.0, 2.0], vec![1.5, 2.0, 2.5]));
    assert!(refusal(|| drop(tensor([1]).histogram(2, HistogramOptions::default()))).contains("floats"));
}

#[test]
fn bits_have_their_operators() {
    let _alone = alone();
    let (a, b) = (tensor([true, true, false]), tensor([true, false, false]));
    assert_eq!((&a & &b).to_vec::<bool>(), [true, false, false]);
    assert_eq!((&a | b.clone()).to_vec::<bool>(), [true, true, false]);
    assert_eq!((a.clone() ^ true).to_vec::<bool>(), [false, false, true]);
    assert_eq!((!&a & !b).to_vec::<bool>(), [false, false, true]);
    let n = tensor([6, 5]);
    assert_eq!((&n & 3).to_vec::<i64>(), [2, 1]);
    assert_eq!((!n).to_vec::<i64>(), [-7, -6]);
    assert!(refusal(|| drop(tensor([1.0]) & true)).contains("bitwise_and"));
}

#[test]
fn rows_in_vectors_are_a_matrix() {
    let _alone = alone();
    let rows = vec![vec![1.0f32, 2.0], vec![3.0, 4.0], vec![5.0, 6.0]];
    assert_eq!(tensor(&rows).i((.., 1)).to_vec::<f32>(), [2.0, 4.0, 6.0]);
    assert_eq!(tensor(&rows[1..]).shape(), [2, 2]);
    assert_eq!(tensor(rows).shape(), [3, 2]);
    assert_eq!(tensor(vec![[1u8, 2], [3, 4]]).dtype(), U8);
    assert_eq!(tensor(vec![vec![[1.0f64; 4]; 2]; 3]).shape(), [3, 2, 4]);
    assert_eq!(tensor([vec![1i64], vec![2]]).shape(), [2, 1]);
    assert_eq!(tensor(Vec::<Vec<f32>>::new()).shape(), [0]);
    for uneven in [vec![vec![1.0f32], vec![1.0, 2.0]], vec![vec![1.0, 2.0], vec![1.0], vec![1.0, 2.0, 3.0]]] {
        assert!(refusal(|| drop(tensor(&uneven))).contains("as long as the first"));
    }
    assert!(refusal(|| drop(tensor([vec![1i64], vec![2, 3]]))).contains("as long as the first"));
}
