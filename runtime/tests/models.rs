//! Whole models against PyTorch: outputs, loss, gradients, and parameters after steps of SGD and AdamW. `XLAZY_ERRORS` names a file to
//! which the differences are written, of which `scripts/model_errors.py` makes the table of docs/models.md.
mod support;

use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;
use xlazy::models::*;
use xlazy::prelude::*;

// The runtime is one per process, and counters are its own: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A reference: tensors by their name in the file, and what the JSON beside it says.
struct Reference {
    name: String,
    tensors: HashMap<String, Tensor>,
    spec: Value,
}

impl Reference {
    fn open(name: &str) -> Reference {
        support::in_float32();
        let file = |end: &str| format!("{}/tests/models/{name}.{end}", env!("CARGO_MANIFEST_DIR"));
        let spec = serde_json::from_str(&std::fs::read_to_string(file("json")).unwrap()).unwrap();
        let tensors = nn::load(file("safetensors")).unwrap().into_iter().collect();
        Reference { name: name.into(), tensors, spec }
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
        if let Some(file) = std::env::var_os("XLAZY_ERRORS") {
            let line = format!("{} {prefix} {:e} {:e}\n", self.name, max(&apart), max(&size));
            let file = std::fs::File::options().create(true).append(true).open(file);
            file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
        }
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

    /// Outputs, loss, gradients, and steps of both optimizers, of a model in evaluation or training.
    fn all<M: Module>(&self, make: impl Fn() -> M, forward: impl Fn(&M) -> Tensor, loss: impl Fn(&Tensor) -> Tensor) {
        let model = self.load(make());
        let y = forward(&model);
        let names: Vec<&String> = self.tensors.keys().filter(|n| n.starts_with("out/")).collect();
        self.check(names[0], &y);
        // a module with running statistics begins again
        let model = self.load(make());
        self.sgd(&model, |m| loss(&forward(m)));
        for (name, buffer) in model.named_buffers().iter().filter(|(_, b)| b.dtype().is_float()) {
            self.check(&format!("buf1/{name}"), buffer);
        }
        self.adamw(&self.load(make()), |m| loss(&forward(m)));
    }

    /// One step of SGD: loss, gradients, and where the file has them the parameters after it.
    fn sgd<M: Module>(&self, model: &M, loss: impl Fn(&M) -> Tensor) {
        let spec = &self.spec["optimizers"]["sgd1"];
        let options = optim::SGDOptions { momentum: number(&spec["momentum"]), ..Default::default() };
        let mut opt = optim::SGD::with(model.parameters(), number(&spec["lr"]), options);
        let l = loss(model);
        l.backward();
        optimizer_step_retain_grad(&mut opt);
        self.check("loss", &l);
        for (name, p) in model.named_parameters() {
            match (p.grad(), self.tensors.contains_key(&format!("grad/{name}"))) {
                (Some(grad), true) => self.check(&format!("grad/{name}"), &grad),
                (grad, theirs) => assert_eq!(grad.is_some(), theirs, "{name}: whether there is a gradient"),
            }
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
        let options = optim::AdamOptions { betas, eps, weight_decay, ..Default::default() };
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
            if self.tensors.contains_key(&format!("adamw3/{name}")) {
                self.check(&format!("adamw3/{name}"), &p);
            }
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

#[test]
fn dlrm() {
    let _alone = alone();
    let r = Reference::open("dlrm");
    let make = || {
        let (tables, bot, top) = (vec![50, 30, 80, 20], vec![5, 16], vec![24, 12, 1]);
        Dlrm::new(&DlrmConfig { tables, size: 8, bot, top, itself: false })
    };
    let inputs: Vec<(&Tensor, &Tensor)> =
        (0..4).map(|i| (r.get(&format!("input/indices_{i}")), r.get(&format!("input/offsets_{i}")))).collect();
    let loss = |y: &Tensor| y.binary_cross_entropy(r.get("target/labels"), None, Reduction::Mean);
    r.all(make, |m| m.forward(r.get("input/dense"), &inputs), loss);
}

#[test]
fn vit() {
    let _alone = alone();
    let r = Reference::open("vit_cls");
    let config = ViTConfig {
        hidden_size: 32,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        intermediate_size: 64,
        image_size: 32,
        patch_size: 8,
        num_labels: 10,
        ..Default::default()
    };
    let loss = |y: &Tensor| nn::functional::cross_entropy(y, r.get("target/labels"));
    r.all(|| ViT::new(&config), |m| m.forward(r.get("input/pixel_values")), loss);
}

#[test]
fn resnet_bottleneck() {
    let _alone = alone();
    let r = Reference::open("resnet_bottleneck");
    let config = ResNetConfig { layers: [1, 1, 1, 1], planes: 6, num_classes: 10, ..Default::default() };
    let model = r.load(ResNet::new(&config));
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

#[test]
fn a_narrow_resnet50() {
    let _alone = alone();
    let r = Reference::open("resnet50_narrow");
    let config = ResNetConfig { planes: 4, num_classes: 10, ..Default::default() };
    let make = || ResNet::new(&config);
    let model = r.load(make());
    model.eval();
    r.check("out_eval/logits", &model.forward(r.get("input/x")));
    r.all(make, |m| m.forward(r.get("input/x")), entropy(&r));
}

/// A loss of class numbers that the script draws: they are the reference's, as a tensor.
fn entropy(r: &Reference) -> impl Fn(&Tensor) -> Tensor {
    let target = r.get("target/labels").clone();
    move |y| {
        let classes = y.size(-1) as i64;
        nn::functional::cross_entropy(&y.reshape([-1, classes]), &target.flatten())
    }
}

#[test]
fn resnets_of_other_kinds() {
    let _alone = alone();
    let basic =
        ResNetConfig { layers: [2, 1, 1, 1], bottleneck: false, planes: 4, num_classes: 5, ..Default::default() };
    let grouped = ResNetConfig {
        layers: [1, 1, 1, 1],
        planes: 4,
        num_classes: 5,
        groups: 2,
        width_per_group: 16,
        ..Default::default()
    };
    for (name, config) in [("resnet_basic", basic), ("resnext", grouped)] {
        let r = Reference::open(name);
        r.all(|| ResNet::new(&config), |m| m.forward(r.get("input/x")), entropy(&r));
    }
}

#[test]
fn a_resnet18_has_the_numbers_of_the_published_one() {
    let _alone = alone();
    let model = resnet18(1000);
    assert_eq!(model.parameters().iter().map(Tensor::numel).sum::<usize>(), 11_689_512);
}

fn berts() -> BertConfig {
    BertConfig {
        vocab_size: 24,
        hidden_size: 8,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        intermediate_size: 12,
        max_position_embeddings: 10,
        pad_token_id: 1,
        hidden_dropout_prob: 0.0,
        attention_probs_dropout_prob: 0.0,
        classifier_dropout: 0.0,
        ..Default::default()
    }
}

/// A loss of many outputs, of which each counts otherwise.
fn waves(y: &Tensor) -> Tensor {
    (y * Tensor::arange(0, y.numel() as i64, 1).float().cos().reshape(y.shape())).sum()
}

/// A model of texts, of which the reference has tokens, a mask, and where the model takes them kinds of tokens.
fn texts<M: Module>(
    name: &str,
    make: impl Fn() -> M,
    forward: impl Fn(&M, &Tensor, Option<&Tensor>, Option<&Tensor>) -> Tensor,
) {
    let _alone = alone();
    let r = Reference::open(name);
    let (mask, types) = (r.tensors.get("input/attention_mask"), r.tensors.get("input/token_type_ids"));
    let forward = |m: &M| forward(m, r.get("input/input_ids"), mask, types);
    match r.tensors.contains_key("target/labels") {
        true => r.all(make, forward, entropy(&r)),
        false => r.all(make, forward, waves),
    }
}

fn bert(name: &str, family: Family, head: Head) {
    texts(name, || Bert::new(&BertConfig { family, head, ..berts() }), Bert::forward);
}

#[test]
fn bert_classifies() {
    bert("bert_sequenceclassification", Family::Bert, Head::Sequence(3));
}

#[test]
fn bert_classifies_tokens() {
    bert("bert_tokenclassification", Family::Bert, Head::Tokens(4));
}

#[test]
fn bert_fills_gaps() {
    bert("bert_maskedlm", Family::Bert, Head::MaskedLM);
}

#[test]
fn bert_answers() {
    bert("bert_questionanswering", Family::Bert, Head::Answer);
}

#[test]
fn bert_chooses() {
    bert("bert_multiplechoice", Family::Bert, Head::MultipleChoice);
}

#[test]
fn bert_tells_the_next_sentence() {
    bert("bert_nextsentence", Family::Bert, Head::NextSentence);
}

#[test]
fn bert_is_trained_at_first() {
    let make = || Bert::new(&BertConfig { head: Head::PreTraining, ..berts() });
    texts("bert_pretraining", make, |m, ids, mask, types| {
        let next = m.next_sentence(&m.hidden(ids, mask, types));
        cat(&[&m.forward(ids, mask, types).flatten(), &next.flatten()], 0)
    });
}

#[test]
fn a_larger_bert_classifies() {
    let config = BertConfig {
        vocab_size: 99,
        hidden_size: 32,
        num_attention_heads: 4,
        intermediate_size: 64,
        max_position_embeddings: 32,
        pad_token_id: 0,
        head: Head::Sequence(3),
        ..berts()
    };
    texts("bert_cls", || Bert::new(&config), Bert::forward);
}

#[test]
fn heads_that_a_family_lacks_are_refused() {
    let _alone = alone();
    let make = || Bert::new(&BertConfig { family: Family::Roberta, head: Head::NextSentence, ..berts() });
    assert!(support::refusal(make).contains("Roberta has no head NextSentence, which is BERT's alone"));
    let make = || XLNet::new(&XLNetConfig { head: Head::PreTraining, ..xlnets() });
    assert!(support::refusal(make).contains("XLNet has no head PreTraining"));
    let model = Bert::new(&BertConfig { head: Head::MultipleChoice, ..berts() });
    let why = support::refusal(|| model.forward(&tensor([[3, 4]]), None, None));
    assert!(why.contains("tokens [n, texts, length]"), "{why}");
}

#[test]
fn roberta_chooses() {
    bert("roberta_multiplechoice", Family::Roberta, Head::MultipleChoice);
}

#[test]
fn distilbert_chooses() {
    bert("distilbert_multiplechoice", Family::DistilBert, Head::MultipleChoice);
}

#[test]
fn distilbert_answers() {
    bert("distilbert_questionanswering", Family::DistilBert, Head::Answer);
}

#[test]
fn roberta_classifies() {
    bert("roberta", Family::Roberta, Head::Sequence(3));
}

#[test]
fn roberta_fills_gaps() {
    bert("roberta_lm", Family::Roberta, Head::MaskedLM);
}

#[test]
fn distilbert_classifies() {
    bert("distilbert", Family::DistilBert, Head::Sequence(3));
}

#[test]
fn distilbert_fills_gaps() {
    bert("distilbert_lm", Family::DistilBert, Head::MaskedLM);
}

fn xlnets() -> XLNetConfig {
    XLNetConfig {
        vocab_size: 24,
        d_model: 8,
        n_layer: 2,
        n_head: 2,
        d_inner: 12,
        dropout: 0.0,
        summary_last_dropout: 0.0,
        ..Default::default()
    }
}

#[test]
fn xlnet_with_each_head() {
    for (name, head) in [
        ("xlnet", Head::Sequence(3)),
        ("xlnet_lm", Head::MaskedLM),
        ("xlnet_tokenclassification", Head::Tokens(4)),
        ("xlnet_questionanswering", Head::Answer),
        ("xlnet_multiplechoice", Head::MultipleChoice),
    ] {
        texts(name, || XLNet::new(&XLNetConfig { head, ..xlnets() }), XLNet::forward);
    }
}

fn gpt2s() -> Gpt2Config {
    Gpt2Config {
        vocab_size: 24,
        n_positions: 12,
        n_embd: 8,
        n_layer: 2,
        n_head: 2,
        resid_pdrop: 0.0,
        embd_pdrop: 0.0,
        attn_pdrop: 0.0,
        ..Default::default()
    }
}

#[test]
fn gpt2() {
    let _alone = alone();
    let r = Reference::open("gpt2");
    r.all(|| Gpt2::new(&gpt2s()), |m| m.forward(r.get("input/input_ids")), entropy(&r));
    let r = Reference::open("gpt2_inner");
    let inner = Gpt2Config { n_inner: Some(20), ..gpt2s() };
    r.all(|| Gpt2::new(&inner), |m| m.forward(r.get("input/input_ids")), entropy(&r));
}

#[test]
fn gpt2_writes_with_a_cache_what_it_would_without() {
    let _alone = alone();
    let r = Reference::open("gpt2");
    let model = r.load(Gpt2::new(&gpt2s()));
    let given = r.get("input/input_ids").narrow(1, 0, 4).copy();
    let other = &given + 1;
    sync();
    let written = model.generate(&given, 7);
    let mut plain = given.clone();
    for _ in 0..7 {
        let next = model.forward(&plain).select(1, -1).argmax_dim(-1, true);
        plain = cat(&[&plain, &next], 1);
    }
    assert_eq!(written.to_vec::<i64>(), plain.to_vec::<i64>());
    // one program for all steps, and for other words
    let before = metrics::counter_value("UncachedCompile").unwrap();
    model.generate(&other, 7).to_vec::<i64>();
    assert_eq!(metrics::counter_value("UncachedCompile").unwrap(), before);
}

fn translator() -> Translation {
    Translation::new(&TranslationConfig {
        src_vocab: 16,
        tgt_vocab: 14,
        max_len: 9,
        d_model: 8,
        nhead: 2,
        num_encoder_layers: 1,
        num_decoder_layers: 1,
        options: nn::TransformerOptions { dim_feedforward: 12, dropout: 0.0, ..Default::default() },
    })
}

#[test]
fn translation() {
    let _alone = alone();
    let r = Reference::open("translation");
    let forward = |m: &Translation| m.forward(r.get("input/src"), r.get("input/tgt"), Some(r.get("input/src_pad")));
    r.all(translator, forward, entropy(&r));
}

#[test]
fn a_larger_translation_with_padded_labels() {
    let _alone = alone();
    let r = Reference::open("transformer_encdec");
    let make = || {
        Translation::new(&TranslationConfig {
            src_vocab: 60,
            tgt_vocab: 70,
            max_len: 16,
            d_model: 32,
            nhead: 4,
            num_encoder_layers: 2,
            num_decoder_layers: 2,
            options: nn::TransformerOptions { dim_feedforward: 64, dropout: 0.0, ..Default::default() },
        })
    };
    assert!(r.get("target/labels").to_vec::<i64>().contains(&-100));
    let forward = |m: &Translation| m.forward(r.get("input/src"), r.get("input/tgt"), Some(r.get("input/src_pad")));
    r.all(make, forward, entropy(&r));
}

#[test]
fn a_beam_search_on_the_device_finds_what_one_on_the_host_finds() {
    let _alone = alone();
    let r = Reference::open("translation");
    let model = r.load(translator());
    let (src, pad) = (r.get("input/src"), r.get("input/src_pad"));
    let (start, end) = (1, 0);
    for beams in [1, 3] {
        let (words, scores) = model.beam_search(src, Some(pad), beams, start, end);
        let (words, scores) = (words.to_vec::<i64>(), scores.to_vec::<f32>());
        for n in 0..3 {
            let row = |t: &Tensor| t.narrow(0, n, 1).copy();
            let (src, pad) = (row(src), row(pad));
            sync();
            // candidates: words, the sum of logarithms
            let mut all: Vec<(Vec<i64>, f32)> = vec![(vec![start], 0.0)];
            for _ in 1..9 {
                let mut next: Vec<(Vec<i64>, f32)> = vec![];
                for (words, score) in &all {
                    if words.len() > 1 && words.ends_with(&[end]) {
                        next.push((words.iter().copied().chain([end]).collect(), *score));
                        continue;
                    }
                    // what is behind is not looked at, and one program serves all lengths
                    let behind = std::iter::repeat_n(end, 9 - words.len());
                    let tgt = Tensor::from_vec(words.iter().copied().chain(behind).collect(), [1, 9]);
                    let logs = model.forward(&src, &tgt, Some(&pad)).log_softmax(-1).to_vec::<f32>();
                    let logs = &logs[(words.len() - 1) * 14..words.len() * 14];
                    let more =
                        |(w, log): (usize, &f32)| (words.iter().copied().chain([w as i64]).collect(), score + log);
                    next.extend(logs.iter().enumerate().map(more));
                }
                next.sort_by(|a, b| b.1.total_cmp(&a.1));
                next.truncate(beams);
                all = next;
            }
            let (n, best) = (n as usize, &all[0]);
            assert_eq!(words[n * 9..(n + 1) * 9], best.0[..], "text {n}, {beams} beams");
            assert!((scores[n] - best.1).abs() < 1e-4, "{} against {}", scores[n], best.1);
        }
    }
}

#[test]
fn models_train_with_dropout_in_one_program() {
    let _alone = alone();
    let config =
        BertConfig { hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, head: Head::Sequence(3), ..berts() };
    let model = Bert::new(&config);
    let mut opt = optim::AdamW::new(model.parameters(), 1e-3);
    let ids = tensor([[3, 4, 5, 1], [6, 7, 1, 1]]);
    let mask = ids.ne(1).long();
    let labels = tensor([0, 2]);
    sync();
    let before = metrics::counter_value("UncachedCompile").unwrap();
    for _ in 0..3 {
        opt.zero_grad();
        nn::functional::cross_entropy(&model.forward(&ids, Some(&mask), None), &labels).backward();
        optimizer_step(&mut opt);
    }
    assert_eq!(metrics::counter_value("UncachedCompile").unwrap() - before, 1);
}
