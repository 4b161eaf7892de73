//! Whole models against PyTorch: outputs, loss, gradients, and parameters after steps of SGD and AdamW.
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Mutex;
use xlazy::prelude::*;

// The runtime is one per process, and counters are its own: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A reference: tensors by their name in the file, and what the JSON beside it says.
struct Reference {
    tensors: HashMap<String, Tensor>,
    spec: Value,
}

impl Reference {
    fn open(name: &str) -> Reference {
        let file = |end: &str| format!("{}/tests/models/{name}.{end}", env!("CARGO_MANIFEST_DIR"));
        let spec = serde_json::from_str(&std::fs::read_to_string(file("json")).unwrap()).unwrap();
        Reference { tensors: nn::load(file("safetensors")).unwrap().into_iter().collect(), spec }
    }

    fn get(&self, name: &str) -> &Tensor {
        &self.tensors[name]
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        let names = self.tensors.iter().filter_map(|(n, t)| Some((n.strip_prefix("state/")?.to_owned(), t.clone())));
        names.collect()
    }

    /// By the JSON's rule: largest and mean difference within `a + r * |want| + k * noise`.
    fn check(&self, name: &str, got: &Tensor) {
        let want = self.get(name);
        assert_eq!(got.shape(), want.shape(), "{name}");
        let (got, want) = (values(got), values(want));
        let prefix = name.split('/').next().unwrap();
        let rules = &self.spec["tolerance"];
        let rules = if rules[prefix].is_null() { &rules["default"] } else { &rules[prefix] };
        let noise = &self.spec["f32_err"][name];
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let max = |v: &[f64]| v.iter().copied().fold(0.0, f64::max);
        let apart: Vec<f64> = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).collect();
        let size: Vec<f64> = want.iter().map(|w| w.abs()).collect();
        for (which, apart, size, noise) in
            [("max", max(&apart), max(&size), &noise[0]), ("mean", mean(&apart), mean(&size), &noise[1])]
        {
            let rule = &rules[which];
            let allowed = number(&rule[0]) + number(&rule[1]) * size + number(&rule[2]) * number(noise);
            assert!(apart <= allowed, "{name}: {which} difference {apart:e}, allowed {allowed:e}");
        }
    }

    fn load<M: Module>(&self, model: M) -> M {
        model.load_state_dict(&self.state()).unwrap();
        model
    }

    /// One step of SGD: loss, gradients, and where the file has them the parameters after it.
    fn sgd<M: Module>(&self, model: &M, loss: impl Fn(&M) -> Tensor) {
        let spec = &self.spec["optimizers"]["sgd1"];
        let options = optim::SGDOptions { momentum: number(&spec["momentum"]), ..Default::default() };
        let mut opt = optim::SGD::with(model.parameters(), number(&spec["lr"]), options);
        let l = loss(model);
        l.backward();
        optimizer_step(&mut opt);
        self.check("loss", &l);
        for (name, p) in model.named_parameters() {
            self.check(&format!("grad/{name}"), &p.grad().unwrap_or_else(|| panic!("{name} has no gradient")));
            if self.tensors.contains_key(&format!("sgd1/{name}")) {
                self.check(&format!("sgd1/{name}"), &p);
            }
        }
    }

    /// Three steps of AdamW: the losses, the parameters, and one program for all.
    fn adamw<M: Module>(&self, model: &M, loss: impl Fn(&M) -> Tensor) {
        let spec = &self.spec["optimizers"]["adamw3"];
        let betas = (number(&spec["betas"][0]), number(&spec["betas"][1]));
        let (eps, weight_decay) = (number(&spec["eps"]), number(&spec["weight_decay"]));
        let options = optim::AdamOptions { betas, eps, weight_decay };
        let mut opt = optim::AdamW::with(model.parameters(), number(&spec["lr"]), options);
        let before = metrics::counter_value("UncachedCompile").unwrap();
        let losses: Vec<Tensor> = (0..3)
            .map(|_| {
                opt.zero_grad();
                let l = loss(model);
                l.backward();
                optimizer_step(&mut opt);
                l
            })
            .collect();
        assert_eq!(metrics::counter_value("UncachedCompile").unwrap() - before, 1, "one program for three steps");
        self.check("adamw3_losses", &stack(&losses.iter().collect::<Vec<_>>(), 0));
        for (name, p) in model.named_parameters() {
            self.check(&format!("adamw3/{name}"), &p);
        }
    }
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap()
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(|p| p.into_inner())
}

// Conversions on the device would be programs to compile.
fn values(t: &Tensor) -> Vec<f64> {
    match t.dtype() {
        I64 => t.to_vec::<i64>().into_iter().map(|v| v as f64).collect(),
        _ => t.to_vec::<f32>().into_iter().map(f64::from).collect(),
    }
}

struct Dlrm {
    emb_l: Vec<nn::EmbeddingBag>,
    bot_l: nn::Sequential,
    top_l: nn::Sequential,
}

impl Module for Dlrm {
    parts!(emb_l, bot_l, top_l);
}

impl Dlrm {
    fn forward(&self, dense: &Tensor, bags: &[(&Tensor, &Tensor)]) -> Tensor {
        let x = self.bot_l.forward(dense);
        let mut features = vec![x.clone()];
        features.extend(self.emb_l.iter().zip(bags).map(|(table, (indices, offsets))| table.bags(indices, offsets)));
        let all = stack(&features.iter().collect::<Vec<_>>(), 1);
        let products = all.bmm(&all.transpose(1, 2));
        let below = (1..features.len() as i64).map(|i| products.select(1, i).narrow(1, 0, i));
        let parts: Vec<Tensor> = std::iter::once(x).chain(below).collect();
        self.top_l.forward(&cat(&parts.iter().collect::<Vec<_>>(), 1))
    }
}

#[test]
fn dlrm() {
    let _alone = alone();
    let r = Reference::open("dlrm");
    let make = || Dlrm {
        emb_l: [50, 30, 80, 20].map(|n| nn::EmbeddingBag::new(n, 8)).into(),
        bot_l: nn::Sequential::new((nn::Linear::new(5, 16), nn::ReLU, nn::Linear::new(16, 8), nn::ReLU)),
        top_l: nn::Sequential::new((
            nn::Linear::new(18, 24),
            nn::ReLU,
            nn::Linear::new(24, 12),
            nn::ReLU,
            nn::Linear::new(12, 1),
            nn::Sigmoid,
        )),
    };
    let inputs: Vec<(&Tensor, &Tensor)> =
        (0..4).map(|i| (r.get(&format!("input/indices_{i}")), r.get(&format!("input/offsets_{i}")))).collect();
    let forward = |m: &Dlrm| m.forward(r.get("input/dense"), &inputs);
    let loss = |m: &Dlrm| forward(m).binary_cross_entropy(r.get("target/labels"), None, Reduction::Mean);
    let model = r.load(make());
    r.check("debug/bot_l", &model.bot_l.forward(r.get("input/dense")));
    r.check("out/prob", &forward(&model));
    r.sgd(&model, loss);
    r.adamw(&r.load(make()), loss);
}

struct ViT {
    cls_token: Tensor,
    position_embeddings: Tensor,
    projection: nn::Conv2d,
    layers: Vec<ViTLayer>,
    layernorm: nn::LayerNorm,
    classifier: nn::Linear,
}

struct ViTLayer {
    query: nn::Linear,
    key: nn::Linear,
    value: nn::Linear,
    attention: nn::Linear,
    intermediate: nn::Linear,
    output: nn::Linear,
    before: nn::LayerNorm,
    after: nn::LayerNorm,
}

impl Module for ViT {
    fn parts(&self, p: &mut nn::Parts) {
        p.add("vit.embeddings.cls_token", &self.cls_token);
        p.add("vit.embeddings.position_embeddings", &self.position_embeddings);
        p.add("vit.embeddings.patch_embeddings.projection", &self.projection);
        p.add("vit.encoder.layer", &self.layers);
        p.add("vit.layernorm", &self.layernorm);
        p.add("classifier", &self.classifier);
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let patches = self.projection.forward(x).flatten_dims(2, 3).transpose(1, 2);
        let cls = self.cls_token.expand([x.size(0) as i64, -1, -1]);
        let x = cat(&[&cls, &patches], 1) + &self.position_embeddings;
        let x = self.layers.iter().fold(x, |x, layer| layer.forward(&x));
        self.classifier.forward(&self.layernorm.forward(&x).select(1, 0))
    }
}

impl Module for ViTLayer {
    fn parts(&self, p: &mut nn::Parts) {
        p.add("attention.attention.query", &self.query);
        p.add("attention.attention.key", &self.key);
        p.add("attention.attention.value", &self.value);
        p.add("attention.output.dense", &self.attention);
        p.add("intermediate.dense", &self.intermediate);
        p.add("output.dense", &self.output);
        p.add("layernorm_before", &self.before);
        p.add("layernorm_after", &self.after);
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let y = self.before.forward(x);
        let heads = |l: &nn::Linear| l.forward(&y).reshape([y.size(0), y.size(1), 4, 8]).transpose(1, 2);
        let (q, k, v) = (heads(&self.query), heads(&self.key), heads(&self.value));
        let seen = q.scaled_dot_product_attention(&k, &v, AttentionOptions::default());
        let x = x + self.attention.forward(&seen.transpose(1, 2).reshape(x.shape()));
        let y = self.intermediate.forward(&self.after.forward(&x)).gelu();
        x + self.output.forward(&y)
    }
}

#[test]
fn vit_cls() {
    let _alone = alone();
    let r = Reference::open("vit_cls");
    let layer = || ViTLayer {
        query: nn::Linear::new(32, 32),
        key: nn::Linear::new(32, 32),
        value: nn::Linear::new(32, 32),
        attention: nn::Linear::new(32, 32),
        intermediate: nn::Linear::new(32, 64),
        output: nn::Linear::new(64, 32),
        before: nn::LayerNorm::with(32, 1e-12),
        after: nn::LayerNorm::with(32, 1e-12),
    };
    let make = || ViT {
        cls_token: nn::parameter(Tensor::zeros([1, 1, 32])),
        position_embeddings: nn::parameter(Tensor::zeros([1, 17, 32])),
        projection: nn::Conv2d::with(3, 32, 8, ConvOptions { stride: 8.into(), ..Default::default() }),
        layers: vec![layer(), layer()],
        layernorm: nn::LayerNorm::with(32, 1e-12),
        classifier: nn::Linear::new(32, 10),
    };
    let x = r.get("input/pixel_values");
    let loss = |m: &ViT| nn::functional::cross_entropy(&m.forward(x), r.get("target/labels"));
    let model = r.load(make());
    r.check("out/logits", &model.forward(x));
    r.sgd(&model, loss);
    r.adamw(&r.load(make()), loss);
}

struct ResNet {
    conv1: nn::Conv2d,
    bn1: nn::BatchNorm2d,
    layer1: Vec<Bottleneck>,
    layer2: Vec<Bottleneck>,
    layer3: Vec<Bottleneck>,
    layer4: Vec<Bottleneck>,
    fc: nn::Linear,
}

impl Module for ResNet {
    parts!(conv1, bn1, layer1, layer2, layer3, layer4, fc);

    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.bn1.forward(&self.conv1.forward(x)).relu();
        let pool = MaxPoolOptions { stride: 2.into(), padding: 1.into(), ..Default::default() };
        let x = x.max_pool2d(3, pool);
        let layers = [&self.layer1, &self.layer2, &self.layer3, &self.layer4];
        let x = layers.into_iter().flatten().fold(x, |x, block| block.forward(&x));
        self.fc.forward(&x.adaptive_avg_pool2d(1).flatten_dims(1, -1))
    }
}

struct Bottleneck {
    conv1: nn::Conv2d,
    bn1: nn::BatchNorm2d,
    conv2: nn::Conv2d,
    bn2: nn::BatchNorm2d,
    conv3: nn::Conv2d,
    bn3: nn::BatchNorm2d,
    downsample: Option<nn::Sequential>,
}

impl Bottleneck {
    fn new(from: usize, planes: usize, stride: i64) -> Bottleneck {
        let conv = |from, to, size: i64, stride: i64| {
            let options = ConvOptions { stride: stride.into(), padding: (size / 2).into(), ..Default::default() };
            nn::Conv2d::without_bias(from, to, size, options)
        };
        let down = nn::Sequential::new((conv(from, planes * 4, 1, stride), nn::BatchNorm2d::new(planes * 4)));
        Bottleneck {
            conv1: conv(from, planes, 1, 1),
            bn1: nn::BatchNorm2d::new(planes),
            conv2: conv(planes, planes, 3, stride),
            bn2: nn::BatchNorm2d::new(planes),
            conv3: conv(planes, planes * 4, 1, 1),
            bn3: nn::BatchNorm2d::new(planes * 4),
            downsample: (stride != 1 || from != planes * 4).then_some(down),
        }
    }
}

impl Module for Bottleneck {
    parts!(conv1, bn1, conv2, bn2, conv3, bn3, downsample);

    fn forward(&self, x: &Tensor) -> Tensor {
        let y = self.bn1.forward(&self.conv1.forward(x)).relu();
        let y = self.bn2.forward(&self.conv2.forward(&y)).relu();
        let y = self.bn3.forward(&self.conv3.forward(&y));
        let shortcut = self.downsample.as_ref().map_or(x.clone(), |d| d.forward(x));
        (y + shortcut).relu()
    }
}

#[test]
fn resnet_bottleneck() {
    let _alone = alone();
    let r = Reference::open("resnet_bottleneck");
    let stem = ConvOptions { stride: 2.into(), padding: 3.into(), ..Default::default() };
    let model = r.load(ResNet {
        conv1: nn::Conv2d::without_bias(3, 6, 7, stem),
        bn1: nn::BatchNorm2d::new(6),
        layer1: vec![Bottleneck::new(6, 6, 1)],
        layer2: vec![Bottleneck::new(24, 12, 2)],
        layer3: vec![Bottleneck::new(48, 24, 2)],
        layer4: vec![Bottleneck::new(96, 48, 2)],
        fc: nn::Linear::new(192, 10),
    });
    let x = r.get("input/x");
    model.eval();
    r.check("out_eval/logits", &model.forward(x));
    model.train(true);
    let out = std::cell::OnceCell::new();
    r.sgd(&model, |m| {
        let logits = m.forward(x);
        let _ = out.set(logits.clone());
        nn::functional::cross_entropy(&logits, r.get("target/labels"))
    });
    r.check("out/logits", out.get().unwrap());
    for (name, buffer) in model.named_buffers() {
        r.check(&format!("buf1/{name}"), &buffer);
    }
}
