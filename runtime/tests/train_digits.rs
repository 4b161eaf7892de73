//! The digits lesson as a test: the same steps as `notebooks/02-digits.ipynb`, the same claims.
use xlazy::metrics::counter_value;
use xlazy::nn::functional::{accuracy, cross_entropy};
use xlazy::prelude::*;

#[test]
fn digits_are_learnt_with_one_compilation_of_the_step() {
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
    let mut opt = optim::AdamW::new(model.parameters(), 0.003);
    // The pixels are still to be divided.
    sync();
    let before = counter_value("UncachedCompile").unwrap();
    let mut losses = Vec::new();
    for _ in 0..20 {
        for [x, y] in &loader {
            opt.zero_grad();
            let loss = cross_entropy(&model.forward(&x), &y);
            loss.backward();
            optimizer_step(&mut opt);
            losses.push(loss.item());
        }
    }
    assert_eq!(counter_value("UncachedCompile").unwrap() - before, 1, "one program for {} steps", losses.len());
    assert!(losses[losses.len() - 1] < 0.2 * losses[0]);
    model.eval();
    let share = no_grad(|| accuracy(&model.forward(&test_x), &test_y)).item();
    println!("test accuracy {:.2} % after {} steps", share * 100.0, losses.len());
    assert!(share > 0.96, "{share}");
}
