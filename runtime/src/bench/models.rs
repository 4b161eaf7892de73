//! What training steps and inference of whole models cost: `xlazy bench models`.
use crate::json::json;
use crate::models::{Bert, BertConfig, Dlrm, DlrmConfig, Head, ResNet, ResNetConfig, ViT, ViTConfig};
use crate::nn::functional::cross_entropy;
use crate::optim::{AdamW, SGD};
use crate::prelude::*;
use std::time::Instant;

/// What one model cost.
pub struct Row {
    pub name: &'static str,
    /// Programs compiled, all told.
    pub programs: u64,
    /// Until the first step's result was there, and the processors' seconds in it: less a later step, what compiling takes.
    pub first_s: f64,
    pub first_cpu_s: f64,
    /// The middle one of the steps behind it, and the processors' time of each in the mean.
    pub step_ms: f64,
    pub step_cpu_ms: f64,
}

type Step = Box<dyn FnMut() -> Tensor>;
type Make = fn() -> Step;

/// The models, as the peers' script has them.
const MODELS: &[(&str, Make)] = &[
    ("mlp", mlp),
    ("resnet18_32", resnet18),
    ("resnet50_inference", resnet50),
    ("bert_4", bert),
    ("vit_tiny", vit),
    ("dlrm", dlrm),
    ("bert_base_bf16", bert_base),
    ("vit_base_bf16", vit_base),
];

/// A step that trains `model`: gives the loss.
fn training<M: Module + 'static>(
    model: M,
    mut opt: impl Optimizer + 'static,
    loss: impl Fn(&M) -> Tensor + 'static,
) -> Step {
    Box::new(move || {
        let loss = loss(&model);
        loss.backward();
        opt.step();
        opt.zero_grad();
        sync();
        loss
    })
}

fn ints(high: i64, shape: impl Into<xlazy_core::ty::Dims>) -> Tensor {
    Tensor::randint(0, high, shape)
}

/// 784-512-512-10, 128 rows, SGD with momentum.
fn mlp() -> Step {
    let model = nn::Sequential::new((
        nn::Linear::new(784, 512),
        nn::ReLU,
        nn::Linear::new(512, 512),
        nn::ReLU,
        nn::Linear::new(512, 10),
    ));
    let opt = SGD::with(model.parameters(), 0.01, optim::SGDOptions { momentum: 0.9, ..Default::default() });
    let (x, y) = (Tensor::rand([128, 784]), ints(10, [128]));
    training(model, opt, move |m| cross_entropy(&m.forward(&x), &y))
}

/// ResNet-18 with 10 classes on 32 pictures of 32×32, SGD with momentum.
fn resnet18() -> Step {
    let model = ResNet::new(&ResNetConfig { layers: [2; 4], bottleneck: false, num_classes: 10, ..Default::default() });
    let opt = SGD::with(model.parameters(), 0.01, optim::SGDOptions { momentum: 0.9, ..Default::default() });
    let (x, y) = (Tensor::rand([32, 3, 32, 32]), ints(10, [32]));
    training(model, opt, move |m| cross_entropy(&m.forward(&x), &y))
}

/// ResNet-50 on 4 pictures of 224×224, inference.
fn resnet50() -> Step {
    let model = ResNet::new(&ResNetConfig::default());
    model.eval();
    let x = Tensor::rand([4, 3, 224, 224]);
    Box::new(move || {
        let y = no_grad(|| model.forward(&x));
        sync();
        y
    })
}

/// BERT of 4 layers of 256, 8 texts of 128 tokens, AdamW, without dropout.
fn bert() -> Step {
    let of = BertConfig {
        vocab_size: 8000,
        hidden_size: 256,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        intermediate_size: 1024,
        ..Default::default()
    };
    bert_of(of, 8, |f| f())
}

/// BERT of 12 layers of 768, 32 texts of 128 tokens, AdamW, in bfloat16 by autocast, without dropout.
fn bert_base() -> Step {
    bert_of(BertConfig::default(), 32, |f| autocast(BF16, f))
}

fn bert_of(config: BertConfig, rows: i64, precision: fn(&dyn Fn() -> Tensor) -> Tensor) -> Step {
    let (hidden_dropout_prob, attention_probs_dropout_prob) = (0.0, 0.0);
    let words = config.vocab_size as i64;
    let head = Head::Sequence(2);
    let model = Bert::new(&BertConfig { head, hidden_dropout_prob, attention_probs_dropout_prob, ..config });
    let opt = AdamW::new(model.parameters(), 1e-4);
    let (x, y) = (ints(words, [rows, 128]), ints(2, [rows]));
    training(model, opt, move |m| precision(&|| cross_entropy(&m.forward(&x, None, None), &y)))
}

/// ViT of 12 layers of 192, 8 pictures of 32×32 in patches of 4, AdamW, without dropout.
fn vit() -> Step {
    let of = ViTConfig {
        hidden_size: 192,
        num_attention_heads: 3,
        intermediate_size: 768,
        image_size: 32,
        patch_size: 4,
        num_labels: 10,
        ..Default::default()
    };
    vit_of(of, 8, |f| f())
}

/// ViT of 12 layers of 768, 64 pictures of 224×224 in patches of 16, AdamW, in bfloat16 by autocast, without dropout.
fn vit_base() -> Step {
    vit_of(ViTConfig { num_labels: 1000, ..Default::default() }, 64, |f| autocast(BF16, f))
}

fn vit_of(config: ViTConfig, rows: i64, precision: fn(&dyn Fn() -> Tensor) -> Tensor) -> Step {
    let (side, classes) = (config.image_size as i64, config.num_labels as i64);
    let model = ViT::new(&ViTConfig { hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0, ..config });
    let opt = AdamW::new(model.parameters(), 1e-4);
    let (x, y) = (Tensor::rand([rows, 3, side, side]), ints(classes, [rows]));
    training(model, opt, move |m| precision(&|| cross_entropy(&m.forward(&x), &y)))
}

/// DLRM with 8 tables of 10,000 rows of 16, 128 samples, SGD.
fn dlrm() -> Step {
    const TABLES: usize = 8;
    let model = Dlrm::new(&DlrmConfig {
        tables: vec![10_000; TABLES],
        size: 16,
        bot: vec![13, 64],
        top: vec![64, 1],
        itself: false,
    });
    let opt = SGD::new(model.parameters(), 0.1);
    let (dense, y) = (Tensor::rand([128, 13]), Tensor::rand([128, 1]).round());
    let bags: Vec<Tensor> = (0..TABLES).map(|_| ints(10_000, [128])).collect();
    let offsets = Tensor::arange(0, 128, 1);
    training(model, opt, move |m| {
        let bags: Vec<(&Tensor, &Tensor)> = bags.iter().map(|b| (b, &offsets)).collect();
        nn::BCELoss::new().forward(&m.forward(&dense, &bags), &y)
    })
}

/// The processors' time of this process so far, in seconds.
fn cpu() -> f64 {
    /// Linux counts a hundred to the second.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the program's name, which may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Measures one model, by its name: so many steps behind the first two.
pub fn measure(name: &str, rounds: usize) -> Option<Row> {
    let (name, make) = MODELS.iter().find(|(n, _)| *n == name)?;
    manual_seed(0);
    let mut step = make();
    sync();
    let programs = || crate::metrics::counter_value("UncachedCompile").unwrap_or(0);
    let before = programs();
    let (start, busy) = (Instant::now(), cpu());
    step().wait();
    let (first_s, first_cpu_s) = (start.elapsed().as_secs_f64(), cpu() - busy);
    // What a first step leaves behind, such as donations of what has become its own.
    step().wait();
    let busy = cpu();
    let mut times: Vec<f64> = (0..rounds.max(1))
        .map(|_| {
            let start = Instant::now();
            step().wait();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let step_cpu_ms = (cpu() - busy) * 1e3 / times.len() as f64;
    times.sort_unstable_by(f64::total_cmp);
    Some(Row {
        name,
        programs: programs() - before,
        first_s,
        first_cpu_s,
        step_ms: times[times.len() / 2],
        step_cpu_ms,
    })
}

impl Row {
    /// The figures as a JSON object.
    pub fn json(&self) -> String {
        let round = |v: f64| (v * 1e3).round() / 1e3;
        let figures = json!({
            "programs": self.programs,
            "first_s": round(self.first_s),
            "first_cpu_s": round(self.first_cpu_s),
            "step_ms": round(self.step_ms),
            "step_cpu_ms": round(self.step_cpu_ms),
        });
        figures.to_string()
    }
}
