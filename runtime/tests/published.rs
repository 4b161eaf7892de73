//! Weights under the names of the files in which they are published: each family's load strictly, and what does not fit is told.
mod support;

use std::path::PathBuf;
use support::alone;
use xlazy::models::*;
use xlazy::prelude::*;

type State = Vec<(String, Tensor)>;

/// A state under other names; a name for which there is none is left out.
fn renamed(state: &[(String, Tensor)], name: impl Fn(&str) -> Option<String>) -> State {
    state.iter().filter_map(|(n, t)| Some((name(n)?, t.clone()))).collect()
}

/// That a state of `from`, under other names, makes a new model give what `from` gives.
fn meets<M: Module>(what: &str, from: &M, new: &M, state: &State, run: impl Fn(&M) -> Tensor) {
    [from, new].iter().for_each(|m| m.eval());
    let before = run(new).to_vec::<f32>();
    new.load_state_dict(state).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (expected, got) = (run(from).to_vec::<f32>(), run(new).to_vec::<f32>());
    assert_eq!(got, expected, "{what}");
    assert_ne!(before, expected, "{what}: they were the same before");
}

fn refused<M: Module>(model: &M, state: &[(String, Tensor)]) -> String {
    model.load_state_dict(state).expect_err("it does not fit").to_string()
}

fn ids() -> Tensor {
    tensor([[5, 6, 7, 8], [9, 3, 4, 5]])
}

fn bert(family: Family, head: Head) -> Bert {
    Bert::new(&bert_config(family, head))
}

fn bert_config(family: Family, head: Head) -> BertConfig {
    BertConfig {
        family,
        head,
        vocab_size: 24,
        hidden_size: 8,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        intermediate_size: 12,
        max_position_embeddings: 10,
        ..Default::default()
    }
}

const FAMILIES: [(Family, &str); 3] =
    [(Family::Bert, "bert."), (Family::Roberta, "roberta."), (Family::DistilBert, "distilbert.")];

#[test]
fn the_first_berts_load_by_the_names_of_tensorflow() {
    let _alone = alone();
    for head in [Head::None, Head::MaskedLM, Head::Sequence(3)] {
        let (from, new) = (bert(Family::Bert, head), bert(Family::Bert, head));
        let mut state = renamed(&from.state_dict(), |n| {
            let norm = n.contains("LayerNorm.");
            let n = if norm { n.replace(".weight", ".gamma").replace(".bias", ".beta") } else { n.to_owned() };
            Some(if head == Head::None { format!("bert.{n}") } else { n })
        });
        state.push(("bert.embeddings.position_ids".into(), Tensor::arange(0, 10, 1).unsqueeze(0)));
        meets(&format!("{head:?}"), &from, &new, &state, |m| m.forward(&ids(), None, None));
    }
}

#[test]
fn encoders_load_with_and_without_the_name_before_them() {
    let _alone = alone();
    for (family, base) in FAMILIES {
        // what a sentence encoder's file has, into the encoder of a classifier, and the reverse
        let (plain, headed) = (bert(family, Head::None), bert(family, Head::Tokens(3)));
        let state = plain.state_dict();
        assert!(state.iter().all(|(n, _)| !n.starts_with(base)));
        let left = headed.load_state_dict_loosely(&state).unwrap();
        let pooler = |left: &[String]| left.iter().filter(|l| l.contains("pooler.dense")).count();
        let poolers = if family == Family::DistilBert { 0 } else { 2 };
        assert_eq!((pooler(&left), left.len()), (poolers, poolers + 2), "{left:?}");
        assert!(left.contains(&"`classifier.weight` is missing".to_owned()), "{left:?}");
        [&plain, &headed].iter().for_each(|m| m.eval());
        let hidden = |m: &Bert| m.hidden(&ids(), None, None).to_vec::<f32>();
        assert_eq!(hidden(&headed), hidden(&plain));
        let (other, based) = (bert(family, Head::None), renamed(&state, |n| Some(format!("{base}{n}"))));
        meets(base, &plain, &other, &based, |m| m.forward(&ids(), None, None));
    }
}

#[test]
fn heads_load_with_and_without_what_they_share() {
    let _alone = alone();
    for (family, _) in FAMILIES {
        let (from, new) = (bert(family, Head::MaskedLM), bert(family, Head::MaskedLM));
        let shared = ["cls.predictions.decoder.", "lm_head.decoder.", "vocab_projector.weight"];
        let state = renamed(&from.state_dict(), |n| (!shared.iter().any(|s| n.starts_with(s))).then(|| n.to_owned()));
        assert!(state.len() < from.state_dict().len());
        meets(&format!("{family:?}"), &from, &new, &state, |m| m.forward(&ids(), None, None));
        // an encoder has no use for the head, and says so by name
        let encoder = bert(family, Head::None);
        let why = refused(&encoder, &from.state_dict());
        let named = ["`cls.predictions.transform.dense.weight`", "`lm_head.dense.weight`", "`vocab_transform.weight`"];
        assert!(named.iter().any(|n| why.contains(&format!("{n} is not part of the module"))), "{why}");
        assert!(!why.contains("embeddings.word"), "{why}");
    }
}

fn gpt2(config: impl Fn(&mut Gpt2Config)) -> Gpt2 {
    let mut c = Gpt2Config { vocab_size: 24, n_positions: 12, n_embd: 8, n_layer: 3, n_head: 2, ..Default::default() };
    config(&mut c);
    Gpt2::new(&c)
}

#[test]
fn gpt2_loads_as_the_hub_has_it() {
    let _alone = alone();
    let (from, new) = (gpt2(|_| ()), gpt2(|_| ()));
    let mut hub = renamed(&from.state_dict(), |n| n.strip_prefix("transformer.").map(str::to_owned));
    assert!(hub.iter().any(|(n, _)| n == "h.2.mlp.c_fc.weight"));
    for layer in 0..3 {
        hub.push((format!("h.{layer}.attn.bias"), Tensor::ones([12, 12]).tril(0).reshape([1, 1, 12, 12])));
        hub.push((format!("h.{layer}.attn.masked_bias"), tensor(-1e4)));
    }
    meets("of the hub", &from, &new, &hub, |m| m.forward(&ids()));
    let new = gpt2(|_| ());
    let halves: State = hub.iter().map(|(n, t)| (n.clone(), t.to(F16))).collect();
    new.load_state_dict(&halves).unwrap();
    assert!(new.parameters().iter().all(|p| p.dtype() == F32));
    // layers that are not there, and sizes that differ
    let why = refused(&gpt2(|c| c.n_layer = 1), &hub);
    assert!(why.contains("`h.{1..2}.mlp.c_fc.weight` is not part of the module"), "{why}");
    let why = refused(&gpt2(|c| c.vocab_size = 30), &hub);
    let expected = "`wte.weight` has shape [24,8], expected [30,8]; its config seems to have another `vocab_size`";
    assert!(why.ends_with(expected), "{why}");
    let why = refused(&gpt2(|c| c.n_inner = Some(20)), &hub);
    assert!(why.contains("`h.{0..2}.mlp.c_fc.weight` has shape [8,32], expected [8,20]"), "{why}");
    assert!(why.ends_with("another `n_inner`"), "{why}");
    // nothing of it: not a list of everything
    let loosely = gpt2(|_| ()).load_state_dict_loosely(&bert(Family::Bert, Head::None).state_dict());
    let why = loosely.expect_err("nothing fits").to_string();
    assert!(why.contains("no name is in both") && why.contains("`transformer.wte.weight`"), "{why}");
}

#[test]
fn a_name_that_comes_twice_is_refused() {
    let _alone = alone();
    let model = bert(Family::Bert, Head::Sequence(2));
    let mut state = model.state_dict();
    state.push(("embeddings.LayerNorm.gamma".into(), Tensor::ones([8])));
    let why = refused(&model, &state);
    let expected = "`bert.embeddings.LayerNorm.weight` and `embeddings.LayerNorm.gamma` are both its `bert.embeddings.LayerNorm.weight`";
    assert!(why.contains(expected), "{why}");
}

#[test]
fn xlnets_load_with_and_without_a_head() {
    let _alone = alone();
    let config = XLNetConfig { vocab_size: 24, d_model: 8, n_layer: 2, n_head: 2, d_inner: 12, ..Default::default() };
    let words = XLNetConfig { head: Head::MaskedLM, ..config.clone() };
    let (from, new) = (XLNet::new(&words), XLNet::new(&words));
    let run = |m: &XLNet| m.forward(&ids(), None, None);
    // the published file has the embedding under both names, or under the head's alone
    meets("both names", &from, &new, &from.state_dict(), run);
    let new = XLNet::new(&words);
    let one = renamed(&from.state_dict(), |n| (n != "lm_loss.weight").then(|| n.to_owned()));
    meets("one name", &from, &new, &one, run);
    let layers = XLNetConfig { head: Head::None, ..config };
    let (from, new) = (XLNet::new(&layers), XLNet::new(&layers));
    let based = renamed(&from.state_dict(), |n| Some(format!("transformer.{n}")));
    meets("of a model with a head", &from, &new, &based, run);
    let why = refused(&XLNet::new(&XLNetConfig { d_inner: 16, ..layers }), &based);
    assert!(why.ends_with("another `d_inner`"), "{why}");
}

#[test]
fn resnets_load_from_files_that_count_no_batches() {
    let _alone = alone();
    let config = ResNetConfig { layers: [1, 1, 1, 1], planes: 4, num_classes: 5, ..Default::default() };
    let (from, new) = (ResNet::new(&config), ResNet::new(&config));
    let older = renamed(&from.state_dict(), |n| (!n.ends_with("num_batches_tracked")).then(|| n.to_owned()));
    assert!(older.len() < from.state_dict().len());
    let x = Tensor::ones([1, 3, 32, 32]);
    meets("resnet", &from, &new, &older, |m| m.forward(&x));
    let why = refused(&ResNet::new(&ResNetConfig { num_classes: 7, ..config }), &older);
    assert!(why.contains("`fc.weight` has shape [5,128], expected [7,128]"), "{why}");
    assert!(why.ends_with("another `num_classes`"), "{why}");
}

fn vit_config() -> ViTConfig {
    ViTConfig {
        hidden_size: 8,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        intermediate_size: 12,
        image_size: 8,
        patch_size: 4,
        num_labels: 5,
        ..Default::default()
    }
}

/// torchvision's names; the three projections of attention are one, which is made here.
fn torchvisions(state: &[(String, Tensor)], older: bool) -> State {
    let part = |n: &str| n.replace("vit.encoder.layer.", "encoder.layers.encoder_layer_");
    let [first, second] = if older { ["mlp.linear_1", "mlp.linear_2"] } else { ["mlp.0", "mlp.3"] };
    let mut out = renamed(state, |n| match n {
        "vit.embeddings.cls_token" => Some("class_token".into()),
        "vit.embeddings.position_embeddings" => Some("encoder.pos_embedding".into()),
        n if n.contains("attention.attention") => None,
        n => Some(
            part(n)
                .replace("vit.embeddings.patch_embeddings.projection", "conv_proj")
                .replace("layernorm_before", "ln_1")
                .replace("attention.output.dense", "self_attention.out_proj")
                .replace("layernorm_after", "ln_2")
                .replace("intermediate.dense", first)
                .replace("output.dense", second)
                .replace("vit.layernorm", "encoder.ln")
                .replace("classifier", "heads.head"),
        ),
    });
    for layer in 0..2 {
        for kind in ["weight", "bias"] {
            let one = |which: &str| {
                let name = format!("vit.encoder.layer.{layer}.attention.attention.{which}.{kind}");
                state.iter().find(|(n, _)| *n == name).expect("it is there").1.clone()
            };
            let all = cat(&[&one("query"), &one("key"), &one("value")], 0);
            out.push((format!("encoder.layers.encoder_layer_{layer}.self_attention.in_proj_{kind}"), all));
        }
    }
    out
}

#[test]
fn vits_load_as_transformers_and_as_torchvision_have_them() {
    let _alone = alone();
    let x = Tensor::arange(0, 192, 1).float().sin().reshape([1, 3, 8, 8]);
    for older in [false, true] {
        let (from, new) = (ViT::new(&vit_config()), ViT::new(&vit_config()));
        let state = torchvisions(&from.state_dict(), older);
        assert!(state.iter().all(|(n, _)| !n.starts_with("vit.") && !n.contains("layernorm")), "{state:?}");
        meets("torchvision's", &from, &new, &state, |m| m.forward(&x));
    }
    let (from, new) = (ViT::new(&vit_config()), ViT::new(&vit_config()));
    let plain = renamed(&from.state_dict(), |n| Some(n.strip_prefix("vit.").unwrap_or(n).to_owned()));
    meets("transformers'", &from, &new, &plain, |m| m.forward(&x));
    let other = ViT::new(&ViTConfig { image_size: 16, num_labels: 4, ..vit_config() });
    let why = refused(&other, &torchvisions(&from.state_dict(), false));
    assert!(why.contains("`encoder.pos_embedding` has shape [1,5,8], expected [1,17,8]"), "{why}");
    assert!(why.ends_with("another `image_size` and `num_labels`"), "{why}");
}

/// A folder of its own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xlazy-published-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn weights_in_several_files_load_by_their_index_or_folder() {
    let _alone = alone();
    let folder = folder("sharded");
    let (from, new) = (gpt2(|_| ()), gpt2(|_| ()));
    let empty = nn::load(&folder).unwrap_err().to_string();
    assert!(empty.contains("it has no model.safetensors and no model.safetensors.index.json"), "{empty}");
    std::fs::write(folder.join("pytorch_model.bin"), "").unwrap();
    let pickled = nn::load(&folder).unwrap_err().to_string();
    assert!(pickled.contains("`safetensors.torch.save_file`"), "{pickled}");
    let state = from.state_dict();
    let shards = state.chunks(state.len() / 2 + 1).enumerate();
    let file = |i: usize| format!("model-{:05}-of-00002.safetensors", i + 1);
    let mut map = serde_json::Map::new();
    for (i, shard) in shards {
        nn::save(folder.join(file(i)), shard).unwrap();
        map.extend(shard.iter().map(|(n, _)| (n.clone(), file(i).into())));
    }
    let index = folder.join("model.safetensors.index.json");
    let write = |map: &serde_json::Map<String, serde_json::Value>| {
        let all = serde_json::json!({"metadata": {"total_size": 1}, "weight_map": map});
        std::fs::write(&index, all.to_string()).unwrap();
    };
    write(&map);
    for path in [&folder, &index] {
        assert_eq!(nn::load(path).unwrap().len(), state.len());
    }
    meets("shards", &from, &new, &nn::load(&folder).unwrap(), |m| m.forward(&ids()));
    let refused = |name: &str, file: &str| {
        let mut wrong = map.clone();
        wrong.insert(name.into(), file.into());
        write(&wrong);
        nn::load(&folder).unwrap_err().to_string()
    };
    assert!(refused("more", &file(1)).contains(&format!("`more` is not in {}", file(1))));
    assert!(refused("more", "missing.safetensors").contains("missing.safetensors"));
    assert!(refused("more", "../model.safetensors").contains("is not the name of a file beside it"));
    std::fs::write(&index, "{}").unwrap();
    assert!(nn::load(&folder).unwrap_err().to_string().contains("it has no `weight_map` of names"));
    std::fs::remove_dir_all(folder).unwrap();
}
