//! Modules and losses against PyTorch: outputs, gradients of inputs and parameters, buffers, names of parameters.
mod support;
mod torch_support;

use std::collections::BTreeSet;
use std::sync::Arc;
use torch_support::{Data, json};
use xlazy::prelude::*;

type Run = Box<dyn Fn(&[Tensor]) -> Vec<Tensor>>;
type Loss = Box<dyn Fn(&[Tensor]) -> Tensor>;

struct Case {
    name: String,
    module: Option<Arc<dyn Module>>,
    run: Run,
}

fn one(name: &str, m: impl Module + 'static) -> Case {
    with(name, m, |m, x| vec![m.forward(&x[0])])
}

/// In evaluation.
fn eval(name: &str, m: impl Module + 'static) -> Case {
    m.eval();
    one(name, m)
}

fn with<M: Module + 'static>(name: &str, m: M, run: fn(&M, &[Tensor]) -> Vec<Tensor>) -> Case {
    let m = Arc::new(m);
    Case { name: name.to_owned(), module: Some(m.clone()), run: Box::new(move |x| run(&m, x)) }
}

/// Of several inputs, without state.
fn of(name: &str, run: impl Fn(&[Tensor]) -> Tensor + 'static) -> Case {
    Case { name: name.to_owned(), module: None, run: Box::new(move |x| vec![run(x)]) }
}

fn conv(stride: impl Into<xlazy::Dims>, padding: impl Into<Padding>, groups: usize) -> ConvOptions {
    ConvOptions { stride: stride.into(), padding: padding.into(), groups, ..Default::default() }
}

fn pools() -> Vec<Case> {
    let windows = || MaxPoolOptions { stride: 2.into(), ..Default::default() };
    let avg = |count_include_pad| AvgPoolOptions {
        stride: 2.into(),
        padding: 1.into(),
        count_include_pad,
        ..Default::default()
    };
    let transposed = ConvTransposeOptions {
        stride: 2.into(),
        padding: 1.into(),
        output_padding: 1.into(),
        groups: 2,
        ..Default::default()
    };
    let spread = ConvTransposeOptions { stride: 2.into(), dilation: 2.into(), ..Default::default() };
    let plain = ConvTransposeOptions::default();
    vec![
        one("conv1d", nn::Conv1d::with(4, 6, 3, conv(2, 1, 2))),
        one("conv2d_reflect", nn::Conv2d::new(4, 3, [3, 2]).padding([2, 1]).padding_mode(PadMode::Reflect)),
        one("conv2d_same", nn::Conv2d::new(4, 3, 4).padding(Padding::Same).dilation(2).padding_mode(PadMode::Circular)),
        one("conv3d", nn::Conv3d::without_bias(4, 3, 2, conv([1, 2, 1], 0, 1))),
        one("conv_transpose1d", nn::ConvTranspose1d::with(4, 6, 3, transposed)),
        one("conv_transpose2d", nn::ConvTranspose2d::with(4, 3, 3, spread)),
        one("conv_transpose3d", nn::ConvTranspose3d::without_bias(4, 2, 2, plain)),
        one("max_pool1d", nn::MaxPool1d::with(3, windows()).padding(1)),
        one("max_pool2d", nn::MaxPool2d::new(2).ceil_mode(true)),
        one("max_pool3d", nn::MaxPool3d::new(2).stride(1)),
        one("avg_pool1d", nn::AvgPool1d::with(3, avg(true))),
        one("avg_pool2d", nn::AvgPool2d::with(3, avg(false))),
        one("avg_pool3d", nn::AvgPool3d::new(2)),
        one("adaptive_avg_pool1d", nn::AdaptiveAvgPool1d::new(4)),
        one("adaptive_avg_pool2d", nn::AdaptiveAvgPool2d::new([3, 2])),
        one("adaptive_avg_pool3d", nn::AdaptiveAvgPool3d::new([2, 2, 3])),
        one("adaptive_max_pool1d", nn::AdaptiveMaxPool1d::new(4)),
        one("adaptive_max_pool2d", nn::AdaptiveMaxPool2d::new([3, 2])),
        one("adaptive_max_pool3d", nn::AdaptiveMaxPool3d::new([2, 2, 3])),
        one("lp_pool1d", nn::LPPool1d::new(2.0, 3).stride(2)),
        one("lp_pool2d", nn::LPPool2d::new(3.0, 2)),
        one("lp_pool3d", nn::LPPool3d::new(2.0, 2)),
        of("fractional_max_pool2d", |x| nn::FractionalMaxPool2d::new([2, 3], [4, 3]).forward_with(&x[0], &x[1])),
        of("fractional_max_pool3d", |x| {
            nn::FractionalMaxPool3d::with_ratio(2, [0.5, 0.7, 0.4]).forward_with(&x[0], &x[1])
        }),
        with("adaptive_log_softmax", nn::AdaptiveLogSoftmaxWithLoss::with(8, 15, &[4, 9], 2.0, true), |m, x| {
            let (output, loss) = m.forward(&x[0], &x[1]);
            vec![output, loss, m.log_prob(&x[0])]
        }),
        of("max_unpool1d", |x| {
            let (y, at) = (x[0].max_pool1d(2, Default::default()), x[0].max_pool_indices(1, 2, Default::default()));
            nn::MaxUnpool1d::new(2).forward(&y, &at, None)
        }),
        of("max_unpool2d", |x| {
            let (y, at) = (x[0].max_pool2d(2, Default::default()), x[0].max_pool_indices(2, 2, Default::default()));
            nn::MaxUnpool2d::new(2).forward(&y, &at, None)
        }),
        of("max_unpool3d", |x| {
            let (y, at) = (x[0].max_pool3d(2, Default::default()), x[0].max_pool_indices(3, 2, Default::default()));
            nn::MaxUnpool3d::new(2).forward(&y, &at, None)
        }),
    ]
}

fn norms() -> Vec<Case> {
    vec![
        one("batch_norm1d", nn::BatchNorm1d::new(4)),
        one("batch_norm2d", nn::BatchNorm2d::with(4, 1e-5, 0.3)),
        one("batch_norm3d", nn::BatchNorm3d::new(4).without_affine()),
        eval("batch_norm_untracked", nn::BatchNorm1d::new(4).without_running_stats()),
        eval("batch_norm_eval", nn::BatchNorm2d::new(4)),
        one("instance_norm1d", nn::InstanceNorm1d::new(4)),
        one("instance_norm2d", nn::InstanceNorm2d::new(4).affine()),
        one("instance_norm3d", nn::InstanceNorm3d::new(4)),
        one("group_norm", nn::GroupNorm::new(2, 4)),
        one("group_norm_plain", nn::GroupNorm::new(2, 4).without_affine()),
        one("layer_norm", nn::LayerNorm::new([6, 5])),
        one("layer_norm_no_bias", nn::LayerNorm::new(5).without_bias()),
        one("layer_norm_plain", nn::LayerNorm::new(5).without_affine()),
        one("rms_norm", nn::RMSNorm::new(5, 1e-6)),
        one("local_response_norm", nn::LocalResponseNorm { alpha: 0.1, ..nn::LocalResponseNorm::new(3) }),
    ]
}

fn activations() -> Vec<Case> {
    vec![
        one("relu", nn::ReLU),
        one("relu6", nn::ReLU6),
        one("sigmoid", nn::Sigmoid),
        one("tanh", nn::Tanh),
        one("silu", nn::SiLU),
        one("mish", nn::Mish),
        one("selu", nn::SELU),
        one("hardsigmoid", nn::Hardsigmoid),
        one("hardswish", nn::Hardswish),
        one("log_sigmoid", nn::LogSigmoid),
        one("softsign", nn::Softsign),
        one("tanhshrink", nn::Tanhshrink),
        one("gelu", nn::GELU),
        one("gelu_tanh", nn::GELU.approximate(true)),
        one("softplus", nn::Softplus),
        one("softplus_beta", nn::Softplus.beta(2.0).threshold(3.0)),
        one("leaky_relu", nn::LeakyReLU(0.2)),
        one("elu", nn::ELU(0.7)),
        one("celu", nn::CELU(0.7)),
        one("hardshrink", nn::Hardshrink::default()),
        one("softshrink", nn::Softshrink(0.8)),
        one("hardtanh", nn::Hardtanh(-2.0, 1.0)),
        one("threshold", nn::Threshold(0.5, -3.0)),
        one("glu", nn::GLU::default()),
        one("softmax", nn::Softmax(0)),
        one("softmin", nn::Softmin(1)),
        one("log_softmax", nn::LogSoftmax(1)),
        one("softmax2d", nn::Softmax2d),
        one("prelu", nn::PReLU::new(8, 0.3)),
        one("prelu_one", nn::PReLU::new(1, 0.25)),
        eval("rrelu_eval", nn::RReLU::default()),
        one("identity", nn::Identity),
    ]
}

fn shapes() -> Vec<Case> {
    use xlazy::PatchOptions;
    let patches = PatchOptions { padding: 1.into(), stride: 2.into(), ..Default::default() };
    let twice = || InterpolateOptions { scale_factor: Some(vec![2.0; 2]), ..Default::default() };
    let sized = InterpolateOptions {
        size: Some([5, 7].into()),
        mode: Interpolation::Linear,
        align_corners: true,
        ..Default::default()
    };
    let cubic =
        InterpolateOptions { scale_factor: Some(vec![1.5; 2]), mode: Interpolation::Bicubic, ..Default::default() };
    let mut all = vec![
        one("flatten", nn::Flatten.end_dim(2)),
        one("unflatten", nn::Unflatten::new(1, [2, 2])),
        one("pixel_shuffle", nn::PixelShuffle::new(2)),
        one("pixel_unshuffle", nn::PixelUnshuffle::new(2)),
        one("channel_shuffle", nn::ChannelShuffle::new(2)),
        one("unfold", nn::Unfold::new([2, 3], patches)),
        one("fold", nn::Fold::new([4, 5], [2, 3], PatchOptions::default())),
        one("upsample_nearest", nn::Upsample::new(twice())),
        one("upsample_size", nn::Upsample::new(sized)),
        one("upsample_bicubic", nn::Upsample::new(cubic)),
        one("upsampling_nearest2d", nn::UpsamplingNearest2d::new(2.0)),
        one("upsampling_bilinear2d", nn::UpsamplingBilinear2d::new(3.0)),
        one("zero_pad_all", nn::ZeroPad2d::new(1)),
        eval("dropout_eval", nn::Dropout2d::new(0.5)),
        eval("alpha_dropout_eval", nn::AlphaDropout::new(0.5)),
    ];
    let amounts = [1i64, 2, 0, 1, 2, 1];
    macro_rules! pads {
        ($($name:literal $kind:ident $n:literal;)*) => {
            $(all.push(one($name, nn::$kind::new(&amounts[..2 * $n])));)*
        };
    }
    pads! {
        "zero_pad1d" ZeroPad1d 1; "zero_pad2d" ZeroPad2d 2; "zero_pad3d" ZeroPad3d 3;
        "reflection_pad1d" ReflectionPad1d 1; "reflection_pad2d" ReflectionPad2d 2; "reflection_pad3d" ReflectionPad3d 3;
        "replication_pad1d" ReplicationPad1d 1; "replication_pad2d" ReplicationPad2d 2; "replication_pad3d" ReplicationPad3d 3;
        "circular_pad1d" CircularPad1d 1; "circular_pad2d" CircularPad2d 2; "circular_pad3d" CircularPad3d 3;
    }
    all.push(one("constant_pad1d", nn::ConstantPad1d::new(&amounts[..2], 3.5)));
    all.push(one("constant_pad2d", nn::ConstantPad2d::new(&amounts[..4], 3.5)));
    all.push(one("constant_pad3d", nn::ConstantPad3d::new(&amounts[..], 3.5)));
    all
}

fn tables() -> Vec<Case> {
    use xlazy::BagMode;
    vec![
        one("linear", nn::Linear::without_bias(5, 3)),
        with("bilinear", nn::Bilinear::new(4, 3, 2), |m, x| vec![m.forward(&x[0], &x[1])]),
        of("cosine_similarity", |x| nn::CosineSimilarity::default().forward(&x[0], &x[1])),
        of("pairwise_distance", |x| {
            nn::PairwiseDistance { p: 3.0, keepdim: true, ..Default::default() }.forward(&x[0], &x[1])
        }),
        one("embedding_padding", nn::Embedding::new(7, 3).padding_idx(-1)),
        with("bag_sum", nn::EmbeddingBag::new(6, 3), |m, x| vec![m.bags(&x[0], &x[1])]),
        with("bag_mean", nn::EmbeddingBag::new(6, 3).mode(BagMode::Mean).padding_idx(4), |m, x| {
            vec![m.bags(&x[0], &x[1])]
        }),
        with("bag_max", nn::EmbeddingBag::new(6, 3).mode(BagMode::Max).include_last_offset(true), |m, x| {
            vec![m.bags(&x[0], &x[1])]
        }),
        with("bag_weights", nn::EmbeddingBag::new(6, 3), |m, x| vec![m.weighted(&x[0], None, &x[1])]),
    ]
}

fn recurrent() -> Vec<Case> {
    use nn::RNNOptions as O;
    let both = |num_layers, batch_first| O { num_layers, bidirectional: true, batch_first, ..Default::default() };
    let lstm = |name: &str, options| {
        with(name, nn::LSTM::with(3, 4, options), |m, x| {
            let (y, (h, c)) = m.forward(&x[0], Some((x[1].clone(), x[2].clone())));
            vec![y, h, c]
        })
    };
    vec![
        with("rnn", nn::RNN::new(3, 4), |m, x| <[Tensor; 2]>::from(m.forward(&x[0], None)).into()),
        with("rnn_relu", nn::RNN::with(3, 4, O { relu: true, bias: false, ..Default::default() }), |m, x| {
            <[Tensor; 2]>::from(m.forward(&x[0], Some(x[1].clone()))).into()
        }),
        with("gru", nn::GRU::with(3, 4, both(2, true)), |m, x| {
            <[Tensor; 2]>::from(m.forward(&x[0], Some(x[1].clone()))).into()
        }),
        with("gru_one", nn::GRU::new(3, 4), |m, x| <[Tensor; 2]>::from(m.forward(&x[0], None)).into()),
        lstm("lstm", O { num_layers: 2, ..Default::default() }),
        lstm("lstm_both", O { bias: false, ..both(1, false) }),
        lstm("lstm_projected", O { proj_size: 2, ..both(2, false) }),
        with("lstm_packed", nn::LSTM::with(3, 4, both(2, false)), |m, x| {
            let (y, (h, c)) = m.packed(&x[0], &x[1], Some((x[2].clone(), x[3].clone())));
            vec![y, h, c]
        }),
        with("gru_packed", nn::GRU::with(3, 4, both(1, true)), |m, x| {
            <[Tensor; 2]>::from(m.packed(&x[0], &x[1], None)).into()
        }),
        with("rnn_cell", nn::RNNCell::new(3, 4).relu(), |m, x| vec![m.step(&x[0], &x[1])]),
        with("gru_cell", nn::GRUCell::new(3, 4), |m, x| vec![m.step(&x[0], &x[1])]),
        with("lstm_cell", nn::LSTMCell::without_bias(3, 4), |m, x| {
            <[Tensor; 2]>::from(m.step(&x[0], &x[1], &x[2])).into()
        }),
    ]
}

fn attention() -> Vec<Case> {
    use nn::{AttentionMasks, MultiheadAttention, MultiheadAttentionOptions, TransformerMasks, TransformerOptions};
    let heads = |o| MultiheadAttention::with(8, 2, o);
    let small = || TransformerOptions { dim_feedforward: 6, dropout: 0.0, ..Default::default() };
    let first = || TransformerOptions { batch_first: true, norm_first: true, ..small() };
    let plain = MultiheadAttentionOptions { bias: false, add_zero_attn: true, ..Default::default() };
    let sizes = MultiheadAttentionOptions { kdim: Some(6), vdim: Some(4), add_bias_kv: true, ..Default::default() };
    vec![
        with("mha", MultiheadAttention::new(8, 2), |m, x| {
            <[Tensor; 2]>::from(m.forward_with(&x[0], &x[1], &x[2], AttentionMasks::default())).into()
        }),
        with("mha_masks", heads(plain), |m, x| {
            let masks = AttentionMasks { key_padding_mask: Some(x[3].clone()), per_head: true, ..Default::default() };
            <[Tensor; 2]>::from(m.forward_with(&x[0], &x[1], &x[2], masks)).into()
        }),
        with("mha_sizes", heads(sizes), |m, x| {
            <[Tensor; 2]>::from(m.forward_with(&x[0], &x[1], &x[2], AttentionMasks::default())).into()
        }),
        with("mha_causal", heads(MultiheadAttentionOptions::default()), |m, x| {
            let masks = AttentionMasks { is_causal: true, ..Default::default() };
            <[Tensor; 2]>::from(m.forward_with(&x[0], &x[0], &x[0], masks)).into()
        }),
        one("encoder_layer", nn::TransformerEncoderLayer::with(8, 2, small())),
        with(
            "encoder_layer_first",
            nn::TransformerEncoderLayer::with(
                8,
                2,
                TransformerOptions { activation: nn::Activation::GELU, bias: false, ..first() },
            ),
            |m, x| {
                let masks = TransformerMasks { src_key_padding_mask: Some(x[1].clone()), ..Default::default() };
                vec![m.forward_with(&x[0], &masks)]
            },
        ),
        with("decoder_layer", nn::TransformerDecoderLayer::with(8, 2, small()), |m, x| {
            let tgt_mask = Some(nn::Transformer::generate_square_subsequent_mask(3));
            vec![m.forward(&x[0], &x[1], &TransformerMasks { tgt_mask, ..Default::default() })]
        }),
        with("decoder_layer_first", nn::TransformerDecoderLayer::with(8, 2, first()), |m, x| {
            vec![m.forward(&x[0], &x[1], &TransformerMasks::default())]
        }),
        one("encoder", {
            let layer = nn::TransformerEncoderLayer::with(8, 2, small());
            nn::TransformerEncoder::new(layer, 2, Some(nn::LayerNorm::new(8)))
        }),
        with(
            "transformer",
            nn::Transformer::with(8, 2, 1, 2, TransformerOptions { batch_first: true, ..small() }),
            |m, x| {
                let masks = TransformerMasks {
                    tgt_is_causal: true,
                    src_key_padding_mask: Some(x[2].clone()),
                    memory_key_padding_mask: Some(x[2].clone()),
                    ..Default::default()
                };
                vec![m.forward(&x[0], &x[1], &masks)]
            },
        ),
    ]
}

fn losses() -> Vec<Case> {
    let mut all = vec![of("kl_batchmean_log", |x| {
        nn::KLDivLoss::new().reduction(Reduction::BatchMean).log_target(true).forward(&x[0], &x[1])
    })];
    let weight = || Some(tensor([1.0f32, 0.5, 2.0]));
    for (how, r) in [("mean", Reduction::Mean), ("sum", Reduction::Sum), ("none", Reduction::None)] {
        let mut put = |name: &str, run: Loss| all.push(of(&format!("{name}_{how}"), run));
        macro_rules! two {
            ($($name:literal $loss:expr;)*) => {$(
                let loss = $loss.reduction(r);
                put($name, Box::new(move |x| loss.forward(&x[0], &x[1])));
            )*};
        }
        macro_rules! three {
            ($($name:literal $loss:expr;)*) => {$(
                let loss = $loss.reduction(r);
                put($name, Box::new(move |x| loss.forward(&x[0], &x[1], &x[2])));
            )*};
        }
        macro_rules! four {
            ($($name:literal $loss:expr;)*) => {$(
                let loss = $loss.reduction(r);
                put($name, Box::new(move |x| loss.forward(&x[0].log_softmax(-1), &x[1], &x[2], &x[3])));
            )*};
        }
        two! {
            "l1" nn::L1Loss::new();
            "mse" nn::MSELoss::new();
            "huber" nn::HuberLoss::new().delta(0.7);
            "smooth_l1" nn::SmoothL1Loss::new().beta(0.7);
            "poisson" nn::PoissonNLLLoss::new().full(true);
            "kl" nn::KLDivLoss::new();
            "bce" nn::BCELoss::new();
            "bce_logits" nn::BCEWithLogitsLoss::new().pos_weight(Some(tensor([1.0f32, 2.0, 0.5])));
            "hinge_embedding" nn::HingeEmbeddingLoss::new().margin(1.2);
            "soft_margin" nn::SoftMarginLoss::new();
            "multi_margin" nn::MultiMarginLoss::new().p(2).margin(0.8);
            "multilabel_margin" nn::MultiLabelMarginLoss::new();
            "multilabel_soft_margin" nn::MultiLabelSoftMarginLoss::new();
            "nll" nn::NLLLoss::new().weight(weight()).ignore_index(1);
            "cross_entropy" nn::CrossEntropyLoss::new().weight(weight()).ignore_index(1).label_smoothing(0.1);
            "cross_entropy_pixels" nn::CrossEntropyLoss::new();
            "cross_entropy_shares" nn::CrossEntropyLoss::new().label_smoothing(0.2);
        }
        three! {
            "gaussian" nn::GaussianNLLLoss::new().full(true);
            "margin_ranking" nn::MarginRankingLoss::new().margin(0.3);
            "cosine" nn::CosineEmbeddingLoss::new().margin(0.1);
            "triplet" nn::TripletMarginLoss::new().margin(0.8).swap(true);
            "triplet_distance" nn::TripletMarginWithDistanceLoss::new()
                .margin(0.8)
                .distance_function(|a, b| (a - b).abs().sum_dim(-1, false));
        }
        four! {
            "ctc" nn::CTCLoss::new();
            "ctc_joined" nn::CTCLoss::new().blank(3).zero_infinity(true);
        }
    }
    all
}

/// A case that has been recorded.
struct Done {
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

fn recorded(data: &Data, case: &Case, inputs: usize) -> Done {
    let name = &case.name;
    let inputs: Vec<Tensor> = (0..inputs)
        .map(|i| {
            let (x, grad) = (data.0[&format!("{name}/in/{i}")].detach(), format!("{name}/grad/in/{i}"));
            x.requires_grad_(data.0.contains_key(&grad))
        })
        .collect();
    let outputs = (case.run)(&inputs);
    let weighed = |y: &Tensor| {
        let n = y.numel() as i64;
        // as in the script, in float64: the cosine of a large number is one of its last digits
        (y * (Tensor::arange(0, n, 1).double() * 0.7 + 0.3).cos().float().reshape(y.shape())).sum()
    };
    let total = outputs.iter().map(weighed).reduce(|a, b| a + b).unwrap();
    if total.requires_grad() {
        total.backward();
    }
    Done { inputs, outputs }
}

/// Everything that is wrong with a case.
fn wrong(data: &Data, case: &Case, done: &Done, outputs: usize) -> Vec<String> {
    let name = &case.name;
    let mut all = Vec::new();
    if done.outputs.len() != outputs {
        return vec![format!("{name}: {} outputs, torch has {outputs}", done.outputs.len())];
    }
    let mut check = |name: &str, got: Option<Tensor>| match got {
        None => all.push(format!("{name}: no gradient")),
        Some(got) => all.extend(data.check(name, &got).err()),
    };
    done.outputs.iter().enumerate().for_each(|(i, y)| check(&format!("{name}/out/{i}"), Some(y.clone())));
    for (i, x) in done.inputs.iter().enumerate().filter(|(_, x)| x.requires_grad()) {
        check(&format!("{name}/grad/in/{i}"), x.grad());
    }
    if let Some(m) = &case.module {
        let parameters = m.named_parameters();
        for (key, _) in data.under(&format!("{name}/grad/")).iter().filter(|(k, _)| !k.starts_with("in/")) {
            let p = parameters.iter().find(|(n, _)| n == key);
            check(&format!("{name}/grad/{key}"), p.and_then(|(_, p)| p.grad()));
        }
        for (key, buffer) in m.named_buffers() {
            check(&format!("{name}/after/{key}"), Some(buffer));
        }
    }
    all
}

/// All cases of a room are one program: most of the time goes into compiling.
fn are_torchs(file: &str, cases: Vec<Case>) {
    let _alone = support::alone();
    let (data, spec) = (Data::open(file), json(file));
    let count = |case: &Case, what: &str| {
        let c = spec["cases"].as_array().unwrap().iter().find(|c| c["name"] == case.name.as_str()).unwrap();
        c[what].as_u64().unwrap() as usize
    };
    for case in &cases {
        if let Some(m) = &case.module {
            let state = data.under(&format!("{}/state/", case.name));
            m.load_state_dict(&state).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        }
    }
    let done: Vec<Done> = cases.iter().map(|c| recorded(&data, c, count(c, "inputs"))).collect();
    sync();
    let all = cases.iter().zip(&done).flat_map(|(c, d)| wrong(&data, c, d, count(c, "outputs")));
    let wrong: Vec<String> = all.collect();
    assert!(wrong.is_empty(), "{} differ from torch:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! rooms {
    ($($file:literal: $($room:ident)*;)*) => {
        $($(
            mod $room {
                #[test]
                fn are_torchs() {
                    super::are_torchs($file, super::$room());
                }
            }
        )*)*

        #[test]
        fn every_case_of_the_reference_is_here() {
            let _alone = support::alone();
            $(
                let spec = json($file);
                let theirs = spec["cases"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap().to_owned());
                let ours = [$($room()),*].into_iter().flatten().map(|c| c.name);
                assert_eq!(ours.collect::<BTreeSet<_>>(), theirs.collect::<BTreeSet<_>>(), $file);
            )*
        }
    };
}
rooms! {
    "modules": pools norms activations shapes tables recurrent attention;
    "losses": losses;
}

#[test]
fn a_sequence_is_one_small_program_however_long() {
    let _alone = support::alone();
    let lstm = nn::LSTM::with(4, 6, nn::RNNOptions { num_layers: 2, bidirectional: true, ..Default::default() });
    let ops = |n: i64| {
        let y = lstm.forward(&Tensor::ones([n, 2, 4]), None).0;
        xlazy::show::stablehlo(&y, false).plain().lines().count()
    };
    assert_eq!(ops(5), ops(200));
}

#[test]
fn dropout_keeps_what_it_says() {
    let _alone = support::alone();
    manual_seed(3);
    let x = Tensor::ones([64, 32, 5]);
    let y = nn::Dropout1d::new(0.25).forward(&x);
    let (of_channel, first) = (y.sum_dim(2, false), y.select(2, 0));
    assert!((&of_channel - first * 5.0).abs().max().item() < 1e-5, "a channel goes or stays as a whole");
    assert!((y.mean().item() - 1.0).abs() < 0.05);
    // mean and variance stay
    let x = Tensor::randn([4000]);
    let y = nn::AlphaDropout::new(0.3).forward(&x);
    assert!(
        y.mean().item().abs() < 0.1 && (y.var().item() - 1.0).abs() < 0.15,
        "{} {}",
        y.mean().item(),
        y.var().item()
    );
    let slopes = nn::RReLU::default().forward(&(Tensor::ones([1000]) * -1.0));
    let (low, high) = (slopes.min().item(), slopes.max().item());
    assert!(low >= -1.0 / 3.0 && high <= -1.0 / 8.0 && high - low > 0.15);
}

#[test]
fn modules_are_walked_and_tied() {
    let _alone = support::alone();
    let words = nn::Embedding::new(5, 3);
    let mut head = nn::Linear::without_bias(3, 5);
    head.weight = words.weight.clone();
    let net = nn::Sequential::new((words, nn::ReLU, head));
    assert_eq!((net.state_dict().len(), net.parameters().len()), (2, 1));
    let kinds: Vec<_> = net.named_modules().into_iter().map(|m| m.1).collect();
    assert_eq!(kinds, ["Sequential", "Embedding", "ReLU", "Linear"]);
    let mut met = vec![];
    net.apply(&mut |m| met.push(m.parameters().len()));
    assert_eq!(met, [1, 0, 1, 1]);
    net[0].requires_grad_(false);
    assert!(!net.parameters()[0].requires_grad());
    assert!(support::refusal(|| net[7].parameters()).contains("there is no module 7: there are 3"));
}
