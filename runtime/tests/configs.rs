//! `config.json` as transformers writes it: read for each family, and refused by name where it asks for what is not here.
use serde_json::{Value, json};
use xlazy::models::*;
use xlazy::nn::Activation;

/// What transformers writes of a model of this type, with every setting.
fn written(model_type: &str) -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/configs.json");
    let all: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    all.into_iter().find(|c| c["model_type"] == model_type).unwrap()
}

/// With other settings.
fn with(config: &Value, settings: Value) -> String {
    let mut config = config.clone();
    config.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    config.to_string()
}

#[test]
fn berts_are_read_with_their_heads() {
    let (c, left) = BertConfig::from_json(&written("bert").to_string()).unwrap();
    assert_eq!(left, [""; 0]);
    assert_eq!((c.family, c.head, c.hidden_act), (Family::Bert, Head::Sequence(3), Activation::GELUTanh));
    assert_eq!((c.vocab_size, c.hidden_size, c.num_hidden_layers, c.num_attention_heads), (24, 8, 2, 2));
    assert_eq!((c.intermediate_size, c.max_position_embeddings, c.type_vocab_size, c.pad_token_id), (12, 10, 2, 1));
    assert_eq!((c.hidden_dropout_prob, c.attention_probs_dropout_prob, c.classifier_dropout), (0.0, 0.0, 0.25));
    let (c, left) = BertConfig::from_json(&written("roberta").to_string()).unwrap();
    assert_eq!((c.family, c.head, left.len()), (Family::Roberta, Head::Tokens(3), 0), "{left:?}");
    let (c, left) = BertConfig::from_json(&written("distilbert").to_string()).unwrap();
    assert_eq!((c.family, c.head, left.len()), (Family::DistilBert, Head::Sequence(3), 0), "{left:?}");
    assert_eq!((c.hidden_size, c.num_hidden_layers, c.num_attention_heads, c.intermediate_size), (8, 2, 2, 12));
    assert_eq!((c.hidden_dropout_prob, c.classifier_dropout), (0.0, 0.0));
    let heads = [
        ("BertModel", Head::None),
        ("BertForMaskedLM", Head::MaskedLM),
        ("BertForPreTraining", Head::PreTraining),
        ("BertForNextSentencePrediction", Head::NextSentence),
        ("BertForQuestionAnswering", Head::Answer),
        ("BertForMultipleChoice", Head::MultipleChoice),
    ];
    for (name, head) in heads {
        let (c, _) = BertConfig::from_json(&with(&written("bert"), json!({"architectures": [name]}))).unwrap();
        assert_eq!(c.head, head);
    }
}

#[test]
fn what_a_file_does_not_say_is_transformers_default() {
    let (c, _) = BertConfig::from_json(r#"{"model_type": "roberta"}"#).unwrap();
    assert_eq!((c.vocab_size, c.pad_token_id, c.num_hidden_layers, c.head), (50265, 1, 12, Head::None));
    let (c, _) = BertConfig::from_json(r#"{"model_type": "distilbert", "architectures": null}"#).unwrap();
    assert_eq!((c.vocab_size, c.num_hidden_layers, c.hidden_dropout_prob), (30522, 6, 0.1));
    let (c, _) = XLNetConfig::from_json(r#"{"model_type": "xlnet"}"#).unwrap();
    assert_eq!((c.d_model, c.n_layer, c.n_head, c.d_inner, c.head), (1024, 24, 16, 4096, Head::None));
    let (c, _) = Gpt2Config::from_json(r#"{"model_type": "gpt2"}"#).unwrap();
    assert_eq!((c.n_embd, c.n_inner, c.activation_function), (768, None, Activation::GELUTanh));
    let (c, _) = ViTConfig::from_json(r#"{"model_type": "vit"}"#).unwrap();
    assert_eq!((c.image_size, c.patch_size, c.num_labels), (224, 16, 2));
}

#[test]
fn xlnets_gpt2s_and_vits_are_read() {
    let (c, left) = XLNetConfig::from_json(&written("xlnet").to_string()).unwrap();
    assert_eq!((c.vocab_size, c.d_model, c.n_layer, c.n_head, c.d_inner), (24, 8, 2, 2, 12));
    assert_eq!((c.head, c.dropout, left.len()), (Head::Sequence(3), 0.0, 0), "{left:?}");
    let (c, left) = Gpt2Config::from_json(&written("gpt2").to_string()).unwrap();
    assert_eq!((c.vocab_size, c.n_positions, c.n_embd, c.n_layer, c.n_head, c.n_inner), (24, 12, 8, 2, 2, Some(20)));
    assert_eq!((c.resid_pdrop, c.embd_pdrop, c.attn_pdrop, left.len()), (0.0, 0.0, 0.0, 0), "{left:?}");
    let (c, left) = ViTConfig::from_json(&written("vit").to_string()).unwrap();
    assert_eq!((c.hidden_size, c.num_hidden_layers, c.num_attention_heads, c.intermediate_size), (8, 1, 2, 12));
    assert_eq!((c.image_size, c.patch_size, c.num_channels, c.num_labels, left.len()), (8, 4, 1, 5, 0), "{left:?}");
    let (_, left) = ViTConfig::from_json(&with(&written("vit"), json!({"architectures": ["ViTModel"]}))).unwrap();
    assert_eq!(left, ["its architecture is `ViTModel`, without classes: those here begin anew"]);
}

#[test]
fn what_is_not_here_is_refused_by_name() {
    let bert = |settings: Value| match BertConfig::from_json(&with(&written("bert"), settings)) {
        Ok((_, left)) => left.join("; "),
        Err(e) => e.to_string(),
    };
    let cases = [
        (json!({"model_type": "llama"}), r#"its `model_type` is "llama", expected `bert`, `roberta` or `distilbert`"#),
        (json!({"model_type": null}), "it has no `model_type`"),
        (json!({"architectures": ["BertForDreams"]}), r#"its architecture is "BertForDreams", expected `BertModel`, "#),
        (json!({"hidden_act": "laplace"}), r#"`hidden_act` is "laplace", expected "relu", "#),
        (json!({"hidden_size": "wide"}), r#"`hidden_size` is "wide", expected a size"#),
        (json!({"num_hidden_layers": -1}), "`num_hidden_layers` is -1, expected a size"),
        (
            json!({"position_embedding_type": "relative_key"}),
            r#"is "relative_key", which is not here: expected "absolute""#,
        ),
        (json!({"is_decoder": true}), "`is_decoder` is true, which is not here: expected false"),
        (json!({"pruned_heads": {"0": [1]}}), r#"`pruned_heads` is {"0":[1]}, which is not here"#),
        (json!({"directionality": "bidi"}), "`directionality` is not known here"),
    ];
    for (settings, expected) in cases {
        let told = bert(settings.clone());
        assert!(told.contains(expected), "{settings}: {told}");
    }
    let refused = |read: xlazy::Result<()>| read.unwrap_err().to_string();
    let gpt2 = with(&written("gpt2"), json!({"scale_attn_by_inverse_layer_idx": true}));
    assert!(refused(Gpt2Config::from_json(&gpt2).map(drop)).contains("`scale_attn_by_inverse_layer_idx` is true"));
    let xlnet = with(&written("xlnet"), json!({"attn_type": "uni"}));
    assert!(refused(XLNetConfig::from_json(&xlnet).map(drop)).contains("`attn_type` is \"uni\""));
    let vit = with(&written("vit"), json!({"image_size": [8, 16]}));
    assert!(refused(ViTConfig::from_json(&vit).map(drop)).contains("`image_size` is [8,16], expected a size"));
    assert!(refused(BertConfig::from_json("{").map(drop)).contains("cannot read the config: "));
    assert!(refused(BertConfig::from_json("[]").map(drop)).contains("an object is expected"));
}

#[test]
fn a_file_is_read_and_its_name_is_told() {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("xlazy-config-{}.json", std::process::id()));
    std::fs::write(&file, written("gpt2").to_string()).unwrap();
    assert_eq!(Gpt2Config::from_file(&file).unwrap().0.n_embd, 8);
    let why = BertConfig::from_file(&file).unwrap_err().to_string();
    assert!(why.contains(&*file.to_string_lossy()) && why.contains("its `model_type` is \"gpt2\""), "{why}");
    std::fs::remove_file(&file).unwrap();
    assert!(BertConfig::from_file(&file).unwrap_err().to_string().contains("cannot read "));
}
