//! The digits lesson as a test: the same steps as `notebooks/02-digits.ipynb`, the same claims.
use std::sync::Mutex;
use xlazy::metrics::counter_value;
use xlazy::nn::functional::{accuracy, cross_entropy};
use xlazy::prelude::*;

// The runtime is one per process, and counters are its own: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// How the step is computed: as it is, or with halves where torch_xla's lists have them.
#[derive(Clone, Copy, PartialEq)]
enum In {
    Float32,
    BFloat16,
    /// With a loss that is scaled, by a scale that nobody reads.
    Float16,
}

/// Trains, and gives the share of digits that are told right which the network has not seen.
fn digits(kind: In) -> f64 {
    let _alone = ONE.lock().unwrap_or_else(|p| p.into_inner());
    manual_seed(1);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../notebooks/data/digits.csv.gz");
    let (values, rows, columns) = data::read_csv(file).unwrap();
    assert_eq!((rows, columns), (1797, 65));
    let table = Tensor::from_vec(values, [rows, columns]);
    let pixels = table.narrow(1, 0, 64) / 16.0;
    let labels = table.select(1, 64).long();

    // Every fourth row is kept for testing.
    let (train, test): (Vec<usize>, Vec<usize>) = (0..rows).partition(|i| i % 4 != 0);
    let all = data::TensorDataset::new([&pixels, &labels]);
    let [test_x, test_y] = all.subset(&test).tensors();
    let options = data::DataLoaderOptions { shuffle: true, seed: 1, drop_last: true, ..Default::default() };
    let loader = data::DataLoader::with(all.subset(&train), 50, options);

    let model =
        nn::Sequential::new((nn::Linear::new(64, 128), nn::ReLU, nn::Dropout::new(0.2), nn::Linear::new(128, 10)));
    let forward = |x: &Tensor| match kind {
        In::Float32 => model.forward(x),
        In::BFloat16 => autocast(BF16, || model.forward(x)),
        In::Float16 => autocast(F16, || model.forward(x)),
    };
    let mut opt = optim::AdamW::new(model.parameters(), 0.003);
    let mut scaler = (kind == In::Float16).then(optim::GradScaler::new);
    // The pixels are still to be divided.
    sync();
    let before = counter_value("UncachedCompile").unwrap();
    let mut losses = Vec::new();
    for _ in 0..20 {
        for [x, y] in &loader {
            opt.zero_grad();
            let y_hat = forward(&x);
            assert_eq!(y_hat.dtype(), [F32, BF16, F16][kind as usize]);
            let loss = cross_entropy(&y_hat.float(), &y);
            match &mut scaler {
                None => {
                    loss.backward();
                    optimizer_step(&mut opt);
                }
                Some(scaler) => {
                    scaler.scale(&loss).backward();
                    scaler.step(&mut opt);
                    scaler.update();
                    sync();
                }
            }
            losses.push(loss.item());
        }
    }
    assert_eq!(counter_value("UncachedCompile").unwrap() - before, 1, "one program for {} steps", losses.len());
    assert!(losses[losses.len() - 1] < 0.2 * losses[0]);
    model.eval();
    let share = no_grad(|| accuracy(&forward(&test_x).float(), &test_y)).item();
    println!("test accuracy {:.2} % after {} steps", share * 100.0, losses.len());
    share
}

#[test]
fn digits_are_learnt_with_one_compilation_of_the_step() {
    let share = digits(In::Float32);
    assert!(share > 0.96, "{share}");
}

#[test]
fn digits_are_learnt_in_bfloat16() {
    let share = digits(In::BFloat16);
    assert!(share > 0.96, "{share}");
}

#[test]
fn digits_are_learnt_in_float16_with_a_scaled_loss() {
    let share = digits(In::Float16);
    assert!(share > 0.96, "{share}");
}
