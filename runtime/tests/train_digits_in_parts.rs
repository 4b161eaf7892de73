//! The digits of the second lesson, trained over eight devices in each of the ways to split a network: the losses are those of one.
mod support;

use xlazy::nn::functional::cross_entropy;
use xlazy::nn::{self, Module, Sequential, parallel};
use xlazy::prelude::*;

/// Of single precision, whose sums are added up in another order; what that changes, 130 steps carry on.
const CLOSE: f64 = 1e-4;

fn digits() -> data::TensorDataset<2> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../notebooks/data/digits.csv.gz");
    let (values, rows, columns) = data::read_csv(file).unwrap();
    let table = Tensor::from_vec(values, [rows, columns]);
    data::TensorDataset::new([&(table.narrow(1, 0, 64) / 16.0), &table.select(1, 64).long()])
}

/// How each parameter is to lie, by its name.
type Layout = Vec<(String, String)>;

/// What lays them out so.
type Lay<'a> = &'a dyn Fn(&Sequential) -> Layout;

/// The losses of five epochs; `lay` puts the parameters where they are to be, and there they stay.
fn losses(over: Option<(&Mesh, Lay)>) -> Vec<f64> {
    manual_seed(7);
    let net = Sequential::new((nn::Linear::new(64, 128), nn::ReLU, nn::Linear::new(128, 10)));
    sync();
    let options = data::DataLoaderOptions { shuffle: true, seed: 1, drop_last: true, ..Default::default() };
    let mut loader = data::DataLoader::with(digits(), 64, options);
    let mut layout = vec![];
    if let Some((mesh, lay)) = over {
        layout = lay(&net);
        loader = loader.shard(mesh, "data");
    }
    let mut opt = optim::AdamW::new(net.parameters(), 0.003);
    let mut all = Vec::new();
    for _ in 0..5 {
        for [x, y] in &loader {
            opt.zero_grad();
            let loss = cross_entropy(&net.forward(&x), &y);
            loss.backward();
            optimizer_step(&mut opt);
            all.push(loss.item());
        }
    }
    let lies = |(name, p): &(String, Tensor)| p.sharding().map(|s| (name.clone(), s.to_string()));
    assert_eq!(net.named_parameters().iter().filter_map(lies).collect::<Layout>(), layout);
    all
}

#[test]
fn digits_are_learnt_in_parts_as_on_one_device() {
    let _alone = support::alone_on(8);
    let mesh = Mesh::new(&[("data", 4), ("model", 2)]);
    let one = losses(None);
    assert!(one.len() == 140 && one[139] < 0.2 * one[0], "{one:?}");
    let check = |how: &str, lay: Lay| {
        let all = losses(Some((&mesh, lay)));
        let far = all.iter().zip(&one).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("{how}: {far:e} at most from the losses of one device");
        assert!(all.len() == one.len() && far < CLOSE, "{how}: {far}: {all:?} against {one:?}");
    };
    check("data parallel", &|net| parallel::data_parallel(net, &mesh));
    check("fsdp", &|net| parallel::fsdp(net, &mesh, "data"));
    let rules: &[(&str, &[Option<&str>])] = &[
        ("0.weight", &[Some("model"), None]),
        ("0.bias", &[Some("model")]),
        ("2.weight", &[None, Some("model")]),
        ("2.bias", &[None]),
    ];
    check("tensor parallel", &|net| parallel::shard_parameters(net, &mesh, rules));
}
