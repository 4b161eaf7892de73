//! Tensors in parts on eight devices of the CPU plugin: where parts lie, what is refused, what compiles, and that values,
//! gradients and training are those of one device.
mod support;

use std::sync::MutexGuard;
use support::{compiles, refusal};
use xlazy::insight::{Class, compilations};
use xlazy::nn::{self, Module, Sequential};
use xlazy::optim::{SGD, SGDOptions};
use xlazy::prelude::*;

fn alone() -> MutexGuard<'static, ()> {
    support::alone_on(8)
}

fn grid() -> Mesh {
    Mesh::new(&[("data", 4), ("model", 2)])
}

fn ramp(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let sizes: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
    (Tensor::arange(0.0, n as f64, 1.0) * 0.25 - 1.0).reshape(sizes)
}

fn data(shape: &[usize]) -> Tensor {
    let t = ramp(shape);
    t.wait();
    sync();
    t
}

#[test]
fn a_marked_tensor_lies_in_parts_and_reads_whole() {
    let _alone = alone();
    let mesh = grid();
    let x = data(&[8, 6]);
    let whole: Vec<f32> = x.to_vec();
    let y = mark_sharding(&x, &mesh, &[Some("data"), Some("model")]);
    assert!(y.is_same(&x), "the tensor itself is laid out");
    assert_eq!(x.to_vec::<f32>(), whole);
    assert_eq!(
        (x.sharding().unwrap().to_string(), x.device()),
        ("(data, model)".into(), "mesh(data=4, model=2)".into())
    );
    let shards = x.shards();
    assert_eq!(shards.len(), 8);
    assert_eq!((shards[3].device.as_str(), shards[3].index.clone()), ("cpu:3", vec![2..4, 3..6]));
    assert_eq!(shards[3].data.to_vec::<f32>(), [15, 16, 17, 21, 22, 23].map(|i| whole[i]));
    assert_eq!(shards[3].data.device(), "cpu:3");
    // Other layouts of the same values, from where they lie.
    for spec in [[None, Some("model")], [Some("model"), None], [Some("model+data"), None], [None, None]] {
        x.mark_sharding(&mesh, &spec);
        assert_eq!(x.to_vec::<f32>(), whole, "{spec:?}");
    }
    let other = Mesh::new(&[("x", 2)]);
    assert_eq!(x.mark_sharding(&other, &[Some("x"), None]).shards().len(), 2);
    assert_eq!(x.to("cpu:1").to_vec::<f32>(), whole);
    assert!(data(&[2]).sharding().is_none());
    assert_eq!(data(&[2]).shards().len(), 1);
}

#[test]
fn ops_on_parts_give_what_they_give_on_one_device() {
    let _alone = alone();
    let mesh = grid();
    let (x, w) = (data(&[8, 6]), data(&[6, 4]));
    let run = |x: &Tensor, w: &Tensor| {
        let h = x.matmul(w).relu();
        let picked = h.index_select(0, &tensor([5, 0, 7]));
        [
            h.sum_dim(0, false),
            h.softmax(1).transpose(0, 1),
            picked,
            (&h - h.mean()).sum(),
            h.i((1..7, 0..3)),
            h.argmax_dim(0, false).to(F32),
        ]
        .map(|t| t.to_vec::<f32>())
    };
    let expected = run(&x, &w);
    for (a, b) in [
        ([Some("data"), None], [None, Some("model")]),
        ([None, Some("model")], [Some("model"), None]),
        ([Some("data+model"), None], [None, None]),
        ([Some("data"), Some("model")], [Some("model"), Some("data")]),
    ] {
        let (x, w) = (x.detach().copy(), w.detach().copy());
        sync();
        mark_sharding(&x, &mesh, &a);
        mark_sharding(&w, &mesh, &b);
        for (got, expected) in run(&x, &w).iter().zip(&expected) {
            assert_eq!(got.len(), expected.len());
            let far = got.iter().zip(expected).find(|(a, b)| (*a - *b).abs() > 1e-4 * (1.0 + b.abs()));
            assert_eq!(far, None, "{a:?} {b:?}");
        }
    }
}

#[test]
fn what_is_pending_is_constrained_and_gradients_lie_like_their_tensors() {
    let _alone = alone();
    let mesh = grid();
    let w = data(&[6, 4]).requires_grad_(true);
    w.mark_sharding(&mesh, &[None, Some("model")]);
    let x = data(&[8, 6]).mark_sharding(&mesh, &[Some("data"), None]);
    let h = x.matmul(&w);
    h.mark_sharding(&mesh, &[Some("data"), Some("model")]);
    assert_eq!(h.sharding().unwrap().to_string(), "(data, model)", "known before it runs");
    h.pow(2.0).sum().backward();
    let dw = w.grad().unwrap();
    sync();
    assert_eq!(h.shards()[1].index, [0..2, 2..4]);
    assert_eq!(dw.sharding().unwrap().to_string(), "(None, model)");
    let (x1, w1) = (data(&[8, 6]), data(&[6, 4]).requires_grad_(true));
    x1.matmul(&w1).pow(2.0).sum().backward();
    let (got, expected) = (dw.to_vec::<f32>(), w1.grad().unwrap().to_vec::<f32>());
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-4 * (1.0 + b.abs())), "{got:?} {expected:?}");
    let like = data(&[8, 4]).shard_as(&h);
    assert_eq!(like.sharding(), h.sharding());
}

#[test]
fn what_is_wrong_with_a_spec_is_said() {
    let _alone = alone();
    let mesh = grid();
    let x = data(&[10, 6]);
    let said = |spec: &[Option<&str>]| refusal(|| mark_sharding(&x, &mesh, spec));
    assert!(
        said(&[Some("data"), None]).contains("dimension 0 of size 10 does not split evenly in 4 parts"),
        "{}",
        said(&[Some("data"), None])
    );
    assert!(said(&[Some("data"), None]).contains("pad it to 12"));
    assert!(said(&[Some("model")]).contains("the spec has 1 entries, and the tensor has 2 dimensions"));
    assert!(said(&[Some("rows"), None]).contains("no axis `rows`: it has data and model"));
    assert!(said(&[Some("model"), Some("model")]).contains("named twice"));
    assert!(refusal(|| Mesh::new(&[("x", 9)])).contains("needs 9 devices, and there are 8 devices"));
    assert!(refusal(|| data(&[2, 2]).shard_as(&x)).contains("on one device"));
    assert!(x.sharding().is_none(), "nothing has changed");
    let (a, b) = (
        data(&[8]).mark_sharding(&mesh, &[Some("data")]),
        data(&[8]).mark_sharding(&Mesh::new(&[("x", 8)]), &[Some("x")]),
    );
    let e = refusal(|| &a + &b);
    assert!(
        e.contains("on mesh(data=4, model=2)") && e.contains("lay both out on one mesh with `mark_sharding`"),
        "{e}"
    );
    let e = refusal(|| &a + data(&[8]).to("cpu:3"));
    assert!(e.contains("cpu:3") && e.contains("mark_sharding"), "{e}");
}

fn network() -> Sequential {
    manual_seed(3);
    Sequential::new((nn::Linear::new(8, 16), nn::ReLU, nn::Linear::new(16, 4)))
}

/// Losses of some steps of training; `lay` puts the parameters where they are to be, `batch` the inputs.
fn losses(lay: impl Fn(&str, &Tensor), batch: impl Fn(&Tensor)) -> Vec<f64> {
    let net = network();
    sync();
    net.named_parameters().iter().for_each(|(name, p)| lay(name, p));
    let options = SGDOptions { momentum: 0.9, ..Default::default() };
    let mut optimizer = SGD::with(net.parameters(), 0.1, options);
    let mut all = Vec::new();
    for step in 0..3 {
        let x = (data(&[16, 8]) * 0.1 * (1.0 + step as f64)).sin();
        let y = Tensor::arange(0, 16, 1) % 4;
        sync();
        batch(&x);
        batch(&y);
        let loss = net.forward(&x).cross_entropy(&y, Default::default());
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        all.push(loss.item());
    }
    all
}

/// Sums are added up in another order: single precision leaves so much.
const CLOSE: f64 = 2e-6;

#[test]
fn training_in_parts_gives_the_losses_of_one_device() {
    let _alone = alone();
    let mesh = grid();
    let one = losses(|_, _| {}, |_| {});
    let check = |how: &str, all: Vec<f64>| {
        let far = all.iter().zip(&one).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < CLOSE, "{how}: {all:?} against {one:?}");
    };
    let rows = |t: &Tensor| {
        let spec: Vec<Option<&str>> = (0..t.dim()).map(|d| (d == 0).then_some("data")).collect();
        t.mark_sharding(&mesh, &spec);
    };
    check("data parallel", losses(|_, _| {}, rows));
    check("fsdp", losses(|_, p| rows(p), rows));
    let tensor_parallel = |name: &str, p: &Tensor| {
        let spec: &[Option<&str>] = match name {
            "0.weight" => &[Some("model"), None],
            "0.bias" => &[Some("model")],
            "2.weight" => &[None, Some("model")],
            _ => &[None],
        };
        p.mark_sharding(&mesh, spec);
    };
    check("tensor parallel", losses(tensor_parallel, rows));
}

#[test]
fn a_step_in_parts_compiles_once_and_gives_its_buffers_away() {
    let _alone = alone();
    let mesh = grid();
    let w = data(&[16, 8]).mark_sharding(&mesh, &[Some("data"), None]);
    let step = |w: &Tensor| {
        let x = data(&[4, 16]).mark_sharding(&mesh, &[None, Some("data")]);
        let new = w - x.matmul(w).sum() * 0.001;
        w.copy_(&new);
    };
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(compiles(|| {
            step(&w);
            sync();
        }));
    }
    assert_eq!(counts[1..], [0, 0, 0], "{counts:?}");
    let last = xlazy::insight::events().pop().unwrap();
    assert_eq!((last.donated, last.device), (1, "mesh(data=4, model=2)"));
    assert_eq!(w.sharding().unwrap().to_string(), "(data, None)");
}

#[test]
fn an_axis_of_one_device_splits_nothing_and_compiles_once() {
    let _alone = alone();
    let one = losses(|_, _| {}, |_| {});
    for axes in [&[("data", 1)][..], &[("data", 4), ("model", 1)], &[("data", 1), ("model", 2)]] {
        let mesh = Mesh::new(axes);
        let lay = |t: &Tensor| {
            let names = ["data", "model"].map(|name| axes.iter().any(|a| a.0 == name).then_some(name));
            t.mark_sharding(&mesh, &(0..t.dim()).map(|d| names.get(d).copied().flatten()).collect::<Vec<_>>());
        };
        // What is drawn, what is computed and the loss, several results at one barrier; later steps are as the first.
        let train = || losses(|_, p| lay(p), lay);
        let all = train();
        let far = all.iter().zip(&one).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < CLOSE, "{axes:?}: {all:?} against {one:?}");
        assert_eq!(compiles(|| drop(train())), 0, "{axes:?}");
    }
    let mesh = Mesh::new(&[("data", 4), ("model", 1)]);
    let x = data(&[8, 6]);
    x.mark_sharding(&mesh, &[Some("data"), Some("model")]);
    assert_eq!(x.shards().len(), 4);
    // A gradient through a body for each device is the same as without.
    let x = data(&[8, 6]).requires_grad_(true);
    let spec: &[&[Option<&str>]] = &[&[Some("data"), Some("model")]];
    spmd::manual(&mesh, spec, spec, |part: Tensor| part.square() * &part, &x).sum().backward();
    let given: Vec<f32> = x.grad().unwrap().to_vec();
    assert_eq!(given, (x.detach().square() * 3.0).to_vec::<f32>());
    let twice = [Some("model"), Some("model")];
    assert!(refusal(|| drop(x.mark_sharding(&mesh, &twice))).contains("named twice"));
}

#[test]
fn a_changed_sharding_is_a_cause_of_its_own() {
    let _alone = alone();
    let mesh = grid();
    let step = |x: &Tensor| (x.tanh() * 2.0).sum_dim(0, false).to_vec::<f32>();
    let x = data(&[8, 8]);
    let y = data(&[8, 8]);
    x.mark_sharding(&mesh, &[Some("data"), None]);
    let first = line!() - 1;
    step(&x);
    y.mark_sharding(&mesh, &[None, Some("model")]);
    let second = line!() - 1;
    step(&y);
    let why = compilations().pop().unwrap().why.unwrap();
    assert_eq!(why.class, Class::Sharding);
    let d = &why.differences[0];
    assert_eq!(
        (d.was.as_str(), d.now.as_str()),
        ("(data, None) of mesh(data=4, model=2)", "(None, model) of mesh(data=4, model=2)")
    );
    assert_eq!((d.was_at.unwrap().line(), d.now_at.unwrap().line()), (first, second));
    // Beside another difference.
    let z = data(&[16, 8]).mark_sharding(&mesh, &[Some("data"), Some("model")]);
    step(&z);
    let why = compilations().pop().unwrap().why.unwrap();
    assert_eq!(why.class, Class::Shape, "{why:?}");
    // From one device to several.
    let step = |x: &Tensor| (x.sigmoid() * 3.0).sum_dim(1, false).to_vec::<f32>();
    step(&data(&[8, 8]));
    step(&x);
    let why = compilations().pop().unwrap().why.unwrap();
    assert_eq!((why.class, why.differences[0].was.as_str()), (Class::Sharding, "cpu:0"), "{why:?}");
    // The spec of a constraint.
    let step = |spec: &[Option<&str>]| {
        let h = x.cos() + 1.0;
        h.mark_sharding(&mesh, spec);
        (h * 2.0).sum().item()
    };
    step(&[Some("data"), None]);
    step(&[None, Some("data")]);
    let why = compilations().pop().unwrap().why.unwrap();
    assert_eq!(
        (why.class, why.differences[0].was.as_str(), why.differences[0].now.as_str()),
        (Class::Sharding, "(data, None)", "(None, data)")
    );
}

/// Each device looks up what it has of the table: neither forward nor backward is the whole table anywhere.
#[test]
fn a_split_table_is_never_gathered() {
    let _alone = alone();
    let mesh = Mesh::new(&[("cores", 8)]);
    let table = nn::parallel::ParallelEmbedding::new(512, 6, &mesh, "cores");
    let ids = tensor([[3, 511, 64], [65, 0, 3]]);
    sync();
    let found = table.forward(&ids);
    found.pow(2.0).sum().backward();
    sync();
    let collectives = xlazy::show::collectives(&(table.forward(&ids) * 3.0), true);
    let all: serde_json::Value = serde_json::from_str(collectives.get("application/json").unwrap()).unwrap();
    assert!(all.as_array().is_some_and(|a| !a.is_empty()), "{all}");
    let dw = table.0.weight.grad().unwrap();
    assert_eq!(dw.sharding().unwrap().to_string(), "(cores, None)");
    let mut last = xlazy::show::collectives(&(&dw + 1.0), true);
    for bundle in [&collectives, &mut last] {
        let all: serde_json::Value = serde_json::from_str(bundle.get("application/json").unwrap()).unwrap_or_default();
        for c in all.as_array().into_iter().flatten() {
            assert!(c["bytes"].as_u64().unwrap() < 512 * 6 * 4 / 4, "{c}");
        }
    }
    let weight: Vec<f32> = table.0.weight.to_vec();
    let expected: Vec<f32> = [3, 511, 64, 65, 0, 3].iter().flat_map(|&i| weight[i * 6..i * 6 + 6].to_vec()).collect();
    assert_eq!(found.to_vec::<f32>(), expected);
    let expected = 4.0 * weight[18];
    assert!((dw.to_vec::<f32>()[18] - expected).abs() < 1e-5, "looked up twice");
}

/// What a loss picks by labels, and what flows back there, is each device's own: nothing but sums goes from one to the other.
#[test]
fn labels_stay_where_their_rows_are() {
    let _alone = alone();
    let mesh = Mesh::new(&[("data", 8)]);
    let (x, w) = (data(&[64, 6]), data(&[6, 10]).requires_grad_(true));
    let y = Tensor::arange(0, 64, 1) % 10;
    sync();
    let slope = |x: &Tensor, y: &Tensor| {
        let loss = nn::functional::cross_entropy(&x.matmul(&w).tanh(), y);
        grad(&loss, &[&w]).remove(0).unwrap()
    };
    let expected = slope(&x, &y).to_vec::<f32>();
    let x = mark_sharding(&x, &mesh, &[Some("data"), None]);
    let y = mark_sharding(&y, &mesh, &[Some("data")]);
    let found = slope(&x, &y);
    let collectives = xlazy::show::collectives(&found, true);
    let all: serde_json::Value = serde_json::from_str(collectives.get("application/json").unwrap()).unwrap();
    let all = all.as_array().unwrap();
    assert!(!all.is_empty() && all.iter().all(|c| c["kind"] == "all-reduce"), "{all:?}");
    let bytes: u64 = all.iter().filter_map(|c| c["bytes"].as_u64()).sum();
    assert!(bytes < 6 * 10 * 4 + 64, "the gradient and a few numbers: {all:?}");
    let off = found.to_vec::<f32>().iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 1e-5, "{off}");
}

/// From one split to another that has other axes in another dimension XLA finds no way but the whole on each device: told with its
/// line, and gone where what is told is done.
#[test]
fn what_is_put_together_whole_is_told_with_its_line() {
    let _alone = alone();
    let mesh = Mesh::new(&[("a", 2), ("b", 2), ("c", 2)]);
    let line = line!() + 3;
    let moved = |before: [Option<&str>; 2]| {
        let x = mark_sharding(&data(&[16, 16]), &mesh, &before);
        let y = x.tanh() + 1.0;
        y.mark_sharding(&mesh, &[Some("a+c"), None]);
        let z = y.exp();
        let told = xlazy::show::collectives(&z, false).plain().to_owned();
        let json = xlazy::show::collectives(&z, true).get("application/json").unwrap_or("[]").to_owned();
        let all: serde_json::Value = serde_json::from_str(&json).unwrap();
        (told, all.as_array().cloned().unwrap_or_default())
    };
    let (told, all) = moved([None, Some("a")]);
    assert_eq!(all.len(), 1, "{told}");
    assert_eq!((&all[0]["kind"], &all[0]["for"]), (&"all-gather".into(), &"resharding, whole".into()), "{told}");
    assert_eq!((&all[0]["bytes"], &all[0]["at"]["line"]), (&(16 * 16 * 4).into(), &line.into()), "{told}");
    let says = format!("1.0 kB put together whole on each device and cut again for `add` at meshes.rs:{line}");
    assert!(told.contains(&says) && told.contains("an involuntary full rematerialization"), "{told}");
    // `mark_sharding` of what comes before, split as what comes behind.
    let (told, all) = moved([Some("a+c"), None]);
    assert!(all.is_empty() && told.starts_with("no collectives"), "{told}");
}

#[test]
fn rules_over_names_lay_a_model_out_and_loaders_split_batches() {
    let _alone = alone();
    let mesh = grid();
    let net = network();
    let laid = nn::parallel::fsdp(&net, &mesh, "data");
    assert_eq!(laid[0], ("0.weight".to_owned(), "(data, None)".to_owned()));
    assert_eq!(laid[2], ("2.weight".to_owned(), "(None, data)".to_owned()));
    assert_eq!(net.parameters()[2].sharding().unwrap().to_string(), "(None, data)");
    let e = refusal(|| nn::parallel::shard_parameters(&net, &mesh, &[("*", &[None, Some("model")])]));
    assert!(e.contains("the rule for \"*\" is of 2 dimensions, and `0.bias` has 1"), "{e}");
    nn::parallel::data_parallel(&net, &mesh);
    assert!(net.parameters().iter().all(|p| p.sharding().unwrap().is_replicated()));
    let set = xlazy::data::TensorDataset::new([&data(&[10, 3]), &Tensor::arange(0, 10, 1)]);
    let loader = xlazy::data::DataLoader::new(set, 4).shard(&mesh, "data");
    let mut batches = loader.iter();
    let [x, y] = batches.next().unwrap();
    assert_eq!(
        (x.sharding().unwrap().to_string(), y.sharding().unwrap().to_string()),
        ("(data, None)".into(), "(data)".into())
    );
    assert_eq!(y.to_vec::<i64>(), [0, 1, 2, 3]);
    batches.next();
    let e = refusal(|| batches.next());
    assert!(
        e.contains("a batch of 2 samples does not split evenly over the 4 parts") && e.contains("drop_last"),
        "{e}"
    );
    let (up, down) = (
        nn::parallel::ColumnParallelLinear::new(8, 16, &mesh, "model"),
        nn::parallel::RowParallelLinear::new(16, 8, &mesh, "model"),
    );
    let x = data(&[4, 8]);
    let y = down.forward(&up.forward(&x).relu());
    let all = xlazy::show::collectives(&y, false);
    assert!(
        all.plain().contains("all-reduce") && all.plain().contains("matmul at") && !all.plain().contains("resharding"),
        "{}",
        all.plain()
    );
    let plain = |l: &nn::Linear, x: &Tensor| {
        let whole = |t: &Tensor| Tensor::from_vec(t.to_vec::<f32>(), t.shape());
        x.matmul(&whole(&l.weight).t()) + whole(l.bias.as_ref().unwrap())
    };
    let expected = plain(&down.0, &plain(&up.0, &x).relu()).to_vec::<f32>();
    assert!(y.to_vec::<f32>().iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// Numbers are drawn as on one device, however they are split.
#[test]
fn what_is_drawn_in_parts_is_what_is_drawn_whole() {
    let _alone = alone();
    let mesh = grid();
    manual_seed(5);
    let whole = Tensor::rand([8, 6]).to_vec::<f32>();
    manual_seed(5);
    let parts = Tensor::rand([8, 6]).mark_sharding(&mesh, &[Some("data"), Some("model")]);
    sync();
    assert_eq!(parts.shards()[7].index, [6..8, 3..6]);
    assert_eq!(parts.to_vec::<f32>(), whole);
}

#[test]
fn a_hybrid_mesh_keeps_a_slice_together() {
    let _alone = alone();
    let plain = Mesh::hybrid(&[("data", 1), ("model", 4)], &[("data", 2)]);
    assert_eq!(plain, Mesh::new(&[("data", 2), ("model", 4)]), "the outer axis goes over slices");
    // The inner axis goes over both slices of four devices.
    let mesh = Mesh::hybrid(&[("data", 2), ("model", 2)], &[("model", 2)]);
    assert_eq!(mesh.to_string(), "mesh(data=2, model=4; slices model=2)");
    assert_eq!(mesh.devices(), [0, 1, 4, 5, 2, 3, 6, 7]);
    let whole: Vec<f32> = data(&[8, 8]).to_vec();
    let x = data(&[8, 8]).mark_sharding(&mesh, &[Some("data"), Some("model")]);
    let w = data(&[8, 8]).mark_sharding(&mesh, &[Some("model"), None]);
    let shards = x.shards();
    assert_eq!((shards[2].device.as_str(), shards[2].index.clone()), ("cpu:4", vec![0..4, 4..6]));
    assert_eq!(x.to_vec::<f32>(), whole);
    let y = x.matmul(&w);
    sync();
    let expected = data(&[8, 8]).matmul(&data(&[8, 8]));
    assert!((y.to("cpu:0") - expected).abs().max().item() < 1e-4);
    let said = refusal(|| Mesh::hybrid(&[("data", 4)], &[("pod", 2)]));
    assert!(said.contains("`pod` is an axis over slices only"), "{said}");
    let said = refusal(|| Mesh::hybrid(&[("data", 8)], &[("data", 2)]));
    assert!(said.contains("needs 16 devices"), "{said}");
}
