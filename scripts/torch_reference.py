#!/usr/bin/env python3
"""Writes what PyTorch gives for small modules, losses, optimizers and schedules: runtime/tests/torch/*.{json,safetensors}.

Run by hand where a case is added: python3 -m pip install torch safetensors && python3 scripts/torch_reference.py
Everything is computed in float64 from numbers that float32 holds, and written as float32.

The JSON lists cases: a name, the call in torch (for readers), and the names of the inputs. The safetensors has, for each case,
`CASE/state/NAME`, `CASE/in/I`, `CASE/out/I`, and of the sum of all outputs times cos(0.7 i + 0.3) `CASE/grad/in/I` and
`CASE/grad/NAME`. The Rust side (runtime/tests/torch_modules.rs, torch_optim.rs) has a line for each case under the same name.
"""
import json
import math
import pathlib
import torch
from safetensors.torch import save_file
from torch import nn, optim
from torch.optim import lr_scheduler as sched

HERE = pathlib.Path(__file__).resolve().parent.parent / "runtime/tests/torch"
F = torch.float64


def rand(*shape, low=-1.5, high=1.5):
    """Floats that float32 holds, no two of them the same: a maximum is one element."""
    n = math.prod(shape)
    values = torch.linspace(low, high, n, dtype=torch.float32)[torch.randperm(n)]
    return values.reshape(shape).to(F)


def ints(high, *shape):
    return torch.randint(0, high, shape)


def flat(value):
    """The tensors of nested tuples in order."""
    if value is None:
        return []
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in flat(part)]


class File:
    def __init__(self):
        self.tensors, self.cases = {}, []

    def put(self, name, t):
        t = t.detach()
        self.tensors[name] = (t.to(torch.float32) if t.dtype == F else t).contiguous().clone()

    def case(self, name, call, module, inputs, run=None, flows=9):
        """A module on inputs; gradients flow to the first `flows` of them."""
        if isinstance(module, nn.Module):
            module = module.to(F)
            for p in module.parameters():
                values = rand(*p.shape, low=-0.6, high=0.7)
                p.data = values
            for key, t in module.state_dict().items():
                self.put(f"{name}/state/{key}", t)
        inputs = [t.clone() for t in inputs]
        for i, t in enumerate(inputs):
            self.put(f"{name}/in/{i}", t)
            if t.dtype == F and i < flows:
                t.requires_grad_(True)
        outputs = flat((run or (lambda m, *x: m(*x)))(module, *inputs))
        total = 0
        for i, y in enumerate(outputs):
            self.put(f"{name}/out/{i}", y)
            if y.is_floating_point():
                total = total + (y * torch.cos(0.7 * torch.arange(y.numel(), dtype=F) + 0.3).reshape(y.shape)).sum()
        if isinstance(total, torch.Tensor) and total.requires_grad:
            total.backward()
        for i, t in enumerate(inputs):
            if t.grad is not None:
                self.put(f"{name}/grad/in/{i}", t.grad)
        if isinstance(module, nn.Module):
            for key, p in module.named_parameters():
                if p.grad is not None:
                    self.put(f"{name}/grad/{key}", p.grad)
            for key, t in module.named_buffers():
                self.put(f"{name}/after/{key}", t)
        self.cases.append({"name": name, "torch": call, "inputs": len(inputs), "outputs": len(outputs)})

    def write(self, name, **more):
        HERE.mkdir(parents=True, exist_ok=True)
        save_file(self.tensors, HERE / f"{name}.safetensors")
        text = json.dumps({"torch": torch.__version__, "cases": self.cases, **more}, indent=0, sort_keys=True)
        (HERE / f"{name}.json").write_text(text + "\n")


def modules():
    f = File()
    one = lambda name, call, *inputs, run=None: f.case(name, call, eval(call), inputs, run)

    # One dimension after another.
    seq, pic, vol = rand(2, 4, 9), rand(2, 4, 6, 5), rand(1, 4, 4, 3, 5)
    one("conv1d", "nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)", seq)
    one("conv2d_reflect", "nn.Conv2d(4, 3, (3, 2), padding=(2, 1), padding_mode='reflect')", pic)
    one("conv2d_same", "nn.Conv2d(4, 3, 4, padding='same', dilation=2, padding_mode='circular')", rand(1, 4, 7, 8))
    one("conv3d", "nn.Conv3d(4, 3, 2, stride=(1, 2, 1), bias=False)", vol)
    one("conv_transpose1d", "nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", seq)
    one("conv_transpose2d", "nn.ConvTranspose2d(4, 3, 3, stride=2, dilation=2)", rand(1, 4, 3, 4))
    one("conv_transpose3d", "nn.ConvTranspose3d(4, 2, 2, bias=False)", vol)
    one("max_pool1d", "nn.MaxPool1d(3, stride=2, padding=1)", seq)
    one("max_pool2d", "nn.MaxPool2d(2, ceil_mode=True)", pic)
    one("max_pool3d", "nn.MaxPool3d(2, stride=1)", vol)
    one("avg_pool1d", "nn.AvgPool1d(3, stride=2, padding=1)", seq)
    one("avg_pool2d", "nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)", pic)
    one("avg_pool3d", "nn.AvgPool3d(2)", vol)
    one("adaptive_avg_pool1d", "nn.AdaptiveAvgPool1d(4)", seq)
    one("adaptive_avg_pool2d", "nn.AdaptiveAvgPool2d((3, 2))", pic)
    one("adaptive_avg_pool3d", "nn.AdaptiveAvgPool3d((2, 2, 3))", vol)
    one("adaptive_max_pool1d", "nn.AdaptiveMaxPool1d(4)", seq)
    one("adaptive_max_pool2d", "nn.AdaptiveMaxPool2d((3, 2))", pic)
    one("adaptive_max_pool3d", "nn.AdaptiveMaxPool3d((2, 2, 3))", vol)
    one("lp_pool1d", "nn.LPPool1d(2, 3, stride=2)", seq)
    one("lp_pool2d", "nn.LPPool2d(3, 2)", pic.abs() + 0.1)
    one("lp_pool3d", "nn.LPPool3d(2, 2)", vol)
    pooled = lambda d: lambda m, x: m(*getattr(nn.functional, f"max_pool{d}d")(x, 2, return_indices=True))
    one("max_unpool1d", "nn.MaxUnpool1d(2)", rand(1, 2, 8), run=pooled(1))
    one("max_unpool2d", "nn.MaxUnpool2d(2)", rand(1, 2, 4, 6), run=pooled(2))
    one("max_unpool3d", "nn.MaxUnpool3d(2)", rand(1, 2, 2, 4, 4), run=pooled(3))

    one("batch_norm1d", "nn.BatchNorm1d(4)", seq)
    one("batch_norm2d", "nn.BatchNorm2d(4, momentum=0.3)", pic)
    one("batch_norm3d", "nn.BatchNorm3d(4, affine=False)", vol)
    one("batch_norm_untracked", "nn.BatchNorm1d(4, track_running_stats=False).eval()", rand(5, 4))
    one("batch_norm_eval", "nn.BatchNorm2d(4).eval()", pic)
    one("instance_norm1d", "nn.InstanceNorm1d(4)", seq)
    one("instance_norm2d", "nn.InstanceNorm2d(4, affine=True)", pic)
    one("instance_norm3d", "nn.InstanceNorm3d(4)", vol)
    one("group_norm", "nn.GroupNorm(2, 4)", pic)
    one("group_norm_plain", "nn.GroupNorm(2, 4, affine=False)", seq)
    one("layer_norm", "nn.LayerNorm([6, 5])", pic)
    one("layer_norm_no_bias", "nn.LayerNorm(5, bias=False)", pic)
    one("layer_norm_plain", "nn.LayerNorm(5, elementwise_affine=False)", pic)
    one("rms_norm", "nn.RMSNorm(5, eps=1e-6)", pic)
    one("local_response_norm", "nn.LocalResponseNorm(3, alpha=0.1)", pic)

    x = rand(3, 8, low=-4, high=4)
    for name, call in [
        ("relu", "nn.ReLU()"), ("relu6", "nn.ReLU6()"), ("sigmoid", "nn.Sigmoid()"), ("tanh", "nn.Tanh()"), ("silu", "nn.SiLU()"),
        ("mish", "nn.Mish()"), ("selu", "nn.SELU()"), ("hardsigmoid", "nn.Hardsigmoid()"), ("hardswish", "nn.Hardswish()"),
        ("log_sigmoid", "nn.LogSigmoid()"), ("softsign", "nn.Softsign()"), ("tanhshrink", "nn.Tanhshrink()"),
        ("gelu", "nn.GELU()"), ("gelu_tanh", "nn.GELU(approximate='tanh')"), ("softplus", "nn.Softplus()"),
        ("softplus_beta", "nn.Softplus(2.0, 3.0)"), ("leaky_relu", "nn.LeakyReLU(0.2)"), ("elu", "nn.ELU(0.7)"),
        ("celu", "nn.CELU(0.7)"), ("hardshrink", "nn.Hardshrink()"), ("softshrink", "nn.Softshrink(0.8)"),
        ("hardtanh", "nn.Hardtanh(-2.0, 1.0)"), ("threshold", "nn.Threshold(0.5, -3.0)"), ("glu", "nn.GLU()"),
        ("softmax", "nn.Softmax(0)"), ("softmin", "nn.Softmin(1)"), ("log_softmax", "nn.LogSoftmax(1)"),
        ("prelu", "nn.PReLU(8, 0.3)"), ("rrelu_eval", "nn.RReLU().eval()"), ("identity", "nn.Identity()"),
    ]:
        one(name, call, x)
    one("softmax2d", "nn.Softmax2d()", rand(1, 3, 2, 2))
    one("prelu_one", "nn.PReLU()", x)

    one("flatten", "nn.Flatten(1, 2)", pic)
    one("unflatten", "nn.Unflatten(1, (2, 2))", seq)
    one("pixel_shuffle", "nn.PixelShuffle(2)", pic)
    one("pixel_unshuffle", "nn.PixelUnshuffle(2)", rand(1, 2, 4, 6))
    one("channel_shuffle", "nn.ChannelShuffle(2)", pic)
    one("unfold", "nn.Unfold((2, 3), padding=1, stride=2)", rand(1, 2, 5, 4))
    one("fold", "nn.Fold((4, 5), (2, 3), stride=1)", rand(1, 12, 9))
    one("upsample_nearest", "nn.Upsample(scale_factor=2)", rand(1, 2, 3, 4))
    one("upsample_size", "nn.Upsample(size=(5, 7), mode='bilinear', align_corners=True)", rand(1, 2, 3, 4))
    one("upsample_bicubic", "nn.Upsample(scale_factor=1.5, mode='bicubic')", rand(1, 1, 4, 4))
    one("upsampling_nearest2d", "nn.UpsamplingNearest2d(scale_factor=2)", rand(1, 2, 2, 3))
    one("upsampling_bilinear2d", "nn.UpsamplingBilinear2d(scale_factor=3)", rand(1, 2, 2, 3))
    small = [rand(1, 2, 4), rand(1, 2, 3, 4), rand(1, 1, 3, 3, 4)]
    for d in (1, 2, 3):
        amounts = (1, 2, 0, 1, 2, 1)[: 2 * d]
        one(f"constant_pad{d}d", f"nn.ConstantPad{d}d({amounts}, 3.5)", small[d - 1])
        for kind in ("Zero", "Reflection", "Replication", "Circular"):
            one(f"{kind.lower()}_pad{d}d", f"nn.{kind}Pad{d}d({amounts})", small[d - 1])
    one("zero_pad_all", "nn.ZeroPad2d(1)", small[1])
    one("dropout_eval", "nn.Dropout2d(0.5).eval()", pic)
    one("alpha_dropout_eval", "nn.AlphaDropout(0.5).eval()", pic)

    one("linear", "nn.Linear(5, 3, bias=False)", pic)
    one("bilinear", "nn.Bilinear(4, 3, 2)", rand(5, 4), rand(5, 3))
    one("cosine_similarity", "nn.CosineSimilarity()", rand(5, 4), rand(5, 4))
    one("pairwise_distance", "nn.PairwiseDistance(3.0, keepdim=True)", rand(5, 4), rand(5, 4))
    one("embedding_padding", "nn.Embedding(7, 3, padding_idx=-1)", torch.tensor([[1, 6, 3], [6, 0, 1]]))
    bag, offsets = torch.tensor([1, 4, 4, 0, 2, 3]), torch.tensor([0, 2, 2, 6])
    one("bag_sum", "nn.EmbeddingBag(6, 3, mode='sum')", bag, offsets)
    one("bag_mean", "nn.EmbeddingBag(6, 3, padding_idx=4)", bag, offsets)
    one("bag_max", "nn.EmbeddingBag(6, 3, mode='max', include_last_offset=True)", bag, offsets)
    one("bag_weights", "nn.EmbeddingBag(6, 3, mode='sum')", bag.reshape(2, 3), rand(2, 3),
        run=lambda m, x, w: m(x, per_sample_weights=w))

    # Recurrent networks: outputs, last states, and gradients of first states.
    x = rand(5, 2, 3)
    h = lambda layers, n=4: rand(layers, 2, n)
    one("rnn", "nn.RNN(3, 4)", x)
    one("rnn_relu", "nn.RNN(3, 4, nonlinearity='relu', bias=False)", x, h(1))
    one("gru", "nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True)", x.transpose(0, 1).contiguous(), h(4))
    one("gru_one", "nn.GRU(3, 4)", rand(5, 3))
    pair = lambda m, x, h, c: m(x, (h, c))
    one("lstm", "nn.LSTM(3, 4, num_layers=2)", x, h(2), h(2), run=pair)
    one("lstm_both", "nn.LSTM(3, 4, bidirectional=True, bias=False)", x, h(2), h(2), run=pair)
    one("lstm_projected", "nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)", x, h(4, 2), h(4), run=pair)

    def packed(m, x, lengths, *state):
        state = state[0] if len(state) == 1 else state or None
        x = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False, batch_first=m.batch_first)
        y, state = m(x, state)
        return nn.utils.rnn.pad_packed_sequence(y, batch_first=m.batch_first, total_length=5)[0], state

    lengths = torch.tensor([3, 5, 1])
    one("lstm_packed", "nn.LSTM(3, 4, num_layers=2, bidirectional=True)", rand(5, 3, 3), lengths, rand(4, 3, 4), rand(4, 3, 4),
        run=packed)
    one("gru_packed", "nn.GRU(3, 4, batch_first=True, bidirectional=True)", rand(3, 5, 3), lengths, run=packed)
    one("rnn_cell", "nn.RNNCell(3, 4, nonlinearity='relu')", rand(2, 3), rand(2, 4))
    one("gru_cell", "nn.GRUCell(3, 4)", rand(2, 3), rand(2, 4))
    one("lstm_cell", "nn.LSTMCell(3, 4, bias=False)", rand(2, 3), rand(2, 4), rand(2, 4), run=pair)

    # Attention and transformers.
    q, k = rand(2, 3, 8), rand(2, 5, 8)
    one("mha", "nn.MultiheadAttention(8, 2, batch_first=True)", q, k, k)
    one("mha_masks", "nn.MultiheadAttention(8, 2, bias=False, add_zero_attn=True)", rand(3, 2, 8), rand(5, 2, 8), rand(5, 2, 8),
        torch.tensor([[False] * 5, [False, False, True, False, True]]),
        run=lambda m, q, k, v, pad: m(q, k, v, key_padding_mask=pad, average_attn_weights=False))
    one("mha_sizes", "nn.MultiheadAttention(8, 2, kdim=6, vdim=4, add_bias_kv=True)", rand(3, 2, 8), rand(5, 2, 6), rand(5, 2, 4))
    one("mha_causal", "nn.MultiheadAttention(8, 2)", rand(4, 2, 8),
        run=lambda m, x: m(x, x, x, attn_mask=torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)))
    kinds = "dim_feedforward=6, dropout=0.0"
    one("encoder_layer", f"nn.TransformerEncoderLayer(8, 2, {kinds})", rand(3, 2, 8))
    one("encoder_layer_first", f"nn.TransformerEncoderLayer(8, 2, {kinds}, activation='gelu', batch_first=True, norm_first=True, bias=False)",
        rand(2, 3, 8), torch.tensor([[False, False, True], [False, False, False]]),
        run=lambda m, x, pad: m(x, src_key_padding_mask=pad))
    causal = torch.triu(torch.full((3, 3), -math.inf, dtype=F), 1)
    one("decoder_layer", f"nn.TransformerDecoderLayer(8, 2, {kinds})", rand(3, 2, 8), rand(4, 2, 8),
        run=lambda m, x, y: m(x, y, tgt_mask=causal))
    one("decoder_layer_first", f"nn.TransformerDecoderLayer(8, 2, {kinds}, batch_first=True, norm_first=True)", rand(2, 3, 8), rand(2, 4, 8))
    one("encoder", f"nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, {kinds}), 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)", rand(3, 2, 8))
    one("transformer", f"nn.Transformer(8, 2, 1, 2, {kinds}, batch_first=True)", rand(2, 4, 8), rand(2, 3, 8),
        torch.tensor([[False] * 4, [False, False, False, True]]),
        run=lambda m, x, y, pad: m(x, y, tgt_mask=causal, src_key_padding_mask=pad, memory_key_padding_mask=pad))
    # Behind all that was there, whose numbers would be others.
    f.case("fractional_max_pool2d", "nn.FractionalMaxPool2d((2, 3), output_size=(4, 3), _random_samples=u)", None, [rand(2, 3, 9, 8), rand(2, 3, 2, low=0.01, high=0.99)],
           run=lambda m, x, u: nn.FractionalMaxPool2d((2, 3), output_size=(4, 3), _random_samples=u)(x), flows=1)
    f.case("fractional_max_pool3d", "nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.7, 0.4), _random_samples=u)", None, [rand(1, 2, 6, 7, 9), rand(1, 2, 3, low=0.01, high=0.99)],
           run=lambda m, x, u: nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.7, 0.4), _random_samples=u)(x), flows=1)
    one("adaptive_log_softmax", "nn.AdaptiveLogSoftmaxWithLoss(8, 15, [4, 9], div_value=2.0, head_bias=True)", rand(6, 8), torch.tensor([0, 3, 4, 8, 9, 14]),
        run=lambda m, x, t: (*m(x, t), m.log_prob(x)))
    f.write("modules")


def losses():
    f = File()
    one = lambda name, call, *inputs, flows=1, run=None: f.case(name, call, eval(call), inputs, run, flows)
    # Behind a log_softmax: torch's gradient of ctc_loss supposes one.
    logs = lambda m, x, *more: m(x.log_softmax(-1), *more)
    x, t = rand(4, 3), rand(4, 3)
    sign = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=F)
    for how in ("mean", "sum", "none"):
        r = f"reduction='{how}'"
        one(f"l1_{how}", f"nn.L1Loss({r})", x, t)
        one(f"mse_{how}", f"nn.MSELoss({r})", x, t)
        one(f"huber_{how}", f"nn.HuberLoss({r}, delta=0.7)", x, t)
        one(f"smooth_l1_{how}", f"nn.SmoothL1Loss({r}, beta=0.7)", x, t)
        one(f"poisson_{how}", f"nn.PoissonNLLLoss({r}, full=True)", x, t.abs() * 3)
        one(f"gaussian_{how}", f"nn.GaussianNLLLoss({r}, full=True)", x, t, rand(4, 3).abs() + 0.1)
        one(f"kl_{how}", f"nn.KLDivLoss({r})", x, t.softmax(1).float().to(F))
        one(f"bce_{how}", f"nn.BCELoss({r})", rand(4, 3, low=0.05, high=0.9), rand(4, 3, low=0, high=1))
        one(f"bce_logits_{how}", f"nn.BCEWithLogitsLoss({r}, pos_weight=torch.tensor([1.0, 2.0, 0.5], dtype=F))", x, rand(4, 3, low=0, high=1))
        one(f"margin_ranking_{how}", f"nn.MarginRankingLoss(0.3, {r})", rand(4), rand(4), sign, flows=2)
        one(f"hinge_embedding_{how}", f"nn.HingeEmbeddingLoss(1.2, {r})", rand(4), sign)
        one(f"soft_margin_{how}", f"nn.SoftMarginLoss({r})", rand(4), sign)
        one(f"cosine_{how}", f"nn.CosineEmbeddingLoss(0.1, {r})", x, t, sign, flows=2)
        one(f"multi_margin_{how}", f"nn.MultiMarginLoss(2, 0.8, {r})", x, ints(3, 4))
        one(f"multilabel_margin_{how}", f"nn.MultiLabelMarginLoss({r})", x, torch.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 0], [2, 1, 0]]))
        one(f"multilabel_soft_margin_{how}", f"nn.MultiLabelSoftMarginLoss({r})", x, ints(2, 4, 3).to(F))
        one(f"triplet_{how}", f"nn.TripletMarginLoss(0.8, swap=True, {r})", x, t, rand(4, 3), flows=3)
        one(f"triplet_distance_{how}", f"nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=0.8, {r})",
            x, t, rand(4, 3), flows=3)
        one(f"nll_{how}", f"nn.NLLLoss(torch.tensor([1.0, 0.5, 2.0], dtype=F), ignore_index=1, {r})", x, torch.tensor([0, 1, 2, 2]))
        one(f"cross_entropy_{how}", f"nn.CrossEntropyLoss(torch.tensor([1.0, 0.5, 2.0], dtype=F), ignore_index=1, label_smoothing=0.1, {r})",
            x, torch.tensor([0, 1, 2, 2]))
        one(f"cross_entropy_pixels_{how}", f"nn.CrossEntropyLoss({r})", rand(2, 3, 2, 2), ints(3, 2, 2, 2))
        one(f"cross_entropy_shares_{how}", f"nn.CrossEntropyLoss(label_smoothing=0.2, {r})", x, t.softmax(1).float().to(F))
        lengths = torch.tensor([6, 5, 4]), torch.tensor([3, 1, 0])
        padded = torch.tensor([[1, 1, 3], [2, 0, 0], [0, 0, 0]])
        one(f"ctc_{how}", f"nn.CTCLoss({r})", rand(6, 3, 4), padded, *lengths, run=logs)
        one(f"ctc_joined_{how}", f"nn.CTCLoss(3, zero_infinity=True, {r})", rand(4, 2, 4),
            torch.tensor([1, 1, 1, 2]), torch.tensor([4, 3]), torch.tensor([3, 1]), run=logs)
    one("kl_batchmean_log", "nn.KLDivLoss(reduction='batchmean', log_target=True)", x, t.log_softmax(1).float().to(F))
    f.write("losses")


class LAMB(optim.Optimizer):
    """You et al. 2019, algorithm 2, with Adam's corrections."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            (b1, b2), lr = g["betas"], g["lr"]
            for p in g["params"]:
                s = self.state[p]
                t = s["t"] = s.get("t", 0) + 1
                s["m"] = b1 * s.get("m", 0) + (1 - b1) * p.grad
                s["v"] = b2 * s.get("v", 0) + (1 - b2) * p.grad**2
                r = s["m"] / (1 - b1**t) / ((s["v"] / (1 - b2**t)).sqrt() + g["eps"]) + g["weight_decay"] * p
                a, b = p.norm(), r.norm()
                p -= lr * (a / b if a > 0 and b > 0 else 1) * r


class Lion(optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            (b1, b2), lr = g["betas"], g["lr"]
            for p in g["params"]:
                m = self.state[p].get("m", torch.zeros_like(p))
                u = (b1 * m + (1 - b1) * p.grad).sign()
                p -= lr * (u + g["weight_decay"] * p)
                self.state[p]["m"] = b2 * m + (1 - b2) * p.grad


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, 0.1),
    "sgd_momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9, dampening=0.2, weight_decay=0.05),
    "sgd_nesterov": lambda p: optim.SGD(p, 0.01, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: optim.Adam(p, 0.05, weight_decay=0.1),
    "adam_amsgrad": lambda p: optim.Adam(p, 0.05, betas=(0.7, 0.6), amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, 0.05, weight_decay=0.1),
    "adamw_amsgrad": lambda p: optim.AdamW(p, 0.05, betas=(0.7, 0.6), amsgrad=True),
    "rmsprop": lambda p: optim.RMSprop(p, 0.02),
    "rmsprop_all": lambda p: optim.RMSprop(p, 0.02, alpha=0.9, momentum=0.8, centered=True, weight_decay=0.1),
    "adagrad": lambda p: optim.Adagrad(p, 0.1, lr_decay=0.3, weight_decay=0.1, initial_accumulator_value=0.5),
    "adadelta": lambda p: optim.Adadelta(p, 1.0, weight_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, 0.05, weight_decay=0.1),
    "nadam": lambda p: optim.NAdam(p, 0.05, weight_decay=0.1),
    "nadam_decoupled": lambda p: optim.NAdam(p, 0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda p: optim.RAdam(p, 0.05, betas=(0.9, 0.99)),
    "radam_decoupled": lambda p: optim.RAdam(p, 0.05, betas=(0.9, 0.99), weight_decay=0.1, decoupled_weight_decay=True),
    "asgd": lambda p: optim.ASGD(p, 0.05, lambd=0.1, weight_decay=0.1),
    "rprop": lambda p: optim.Rprop(p, 0.05),
    "adafactor": lambda p: optim.Adafactor(p, 0.05, weight_decay=0.1),
    "lamb": lambda p: LAMB(p, 0.05),
    "lion": lambda p: Lion(p, 0.02, weight_decay=0.1),
    "groups": lambda p: optim.AdamW([{"params": p[:2]}, {"params": p[2:], "lr": 0.2, "weight_decay": 0.3}], 0.05),
}
STEPS = 8


def objective(params, step):
    """Every parameter gets another gradient in every step."""
    w, b, s = params
    wave = torch.cos(torch.arange(w.numel(), dtype=F).reshape(w.shape) + step)
    return (w * wave).sum() + (w @ b - 1).square().sum() + ((s - step * 0.25) ** 2).sum() * w.mean()


def optimizers():
    f = File()
    # Not around zero: a gradient of nothing but rounding would be a step of its own to Adam.
    start = [rand(3, 4, low=-0.9, high=1.6), rand(4, low=-0.7, high=1.3), rand(2, 1, 3, low=-1.3, high=0.8)]
    for i, p in enumerate(start):
        f.put(f"start/{i}", p)
    for name, make in OPTIMIZERS.items():
        params = [p.clone().requires_grad_(True) for p in start]
        opt = make(params)
        for step in range(STEPS):
            opt.zero_grad()
            objective(params, step).backward()
            opt.step()
            if step in (0, STEPS - 1):
                for i, p in enumerate(params):
                    f.put(f"{name}/{step}/{i}", p)
        f.cases.append({"name": name})
    # Gradients clipped, and averages of parameters.
    for name, clip in [("norm", lambda p: nn.utils.clip_grad_norm_(p, 1.0)), ("norm_inf", lambda p: nn.utils.clip_grad_norm_(p, 0.5, math.inf)),
                       ("norm_3", lambda p: nn.utils.clip_grad_norm_(p, 1.0, 3.0)), ("value", lambda p: nn.utils.clip_grad_value_(p, 0.4))]:
        params = [p.clone().requires_grad_(True) for p in start]
        objective(params, 1).backward()
        clip(params)
        for i, p in enumerate(params):
            f.put(f"clip_{name}/{i}", p.grad)
    f.write("optimizers", steps=STEPS)


SCHEDULES = {
    "step": lambda o: sched.StepLR(o, 7, 0.7),
    "multi_step": lambda o: sched.MultiStepLR(o, [3, 10, 10, 40], 0.5),
    "constant": lambda o: sched.ConstantLR(o, 0.3, 12),
    "linear": lambda o: sched.LinearLR(o, 0.1, 1.0, 20),
    "exponential": lambda o: sched.ExponentialLR(o, 0.97),
    "polynomial": lambda o: sched.PolynomialLR(o, 60, 2.0),
    "cosine": lambda o: sched.CosineAnnealingLR(o, 30, 0.01),
    "warm_restarts": lambda o: sched.CosineAnnealingWarmRestarts(o, 10, 2, 0.01),
    "warm_restarts_even": lambda o: sched.CosineAnnealingWarmRestarts(o, 7),
    "lambda": lambda o: sched.LambdaLR(o, lambda n: 1 / (n + 1)),
    "one_cycle": lambda o: sched.OneCycleLR(o, 1.0, total_steps=101),
    "one_cycle_linear": lambda o: sched.OneCycleLR(o, 1.0, total_steps=101, anneal_strategy="linear", three_phase=True, pct_start=0.4),
    "sequential": lambda o: sched.SequentialLR(o, [sched.LinearLR(o, 0.1, 1.0, 10), sched.CosineAnnealingLR(o, 50), sched.ExponentialLR(o, 0.9)], [10, 60]),
    "multiplicative": lambda o: sched.MultiplicativeLR(o, lambda n: 0.95 if n % 2 else 0.99),
    "chained": lambda o: sched.ChainedScheduler([sched.ConstantLR(o, 0.1, 5), sched.ExponentialLR(o, 0.97), sched.StepLR(o, 10, 0.7)]),
    "cyclic": lambda o: sched.CyclicLR(o, 0.01, 0.4, step_size_up=7, step_size_down=12),
    "cyclic_half": lambda o: sched.CyclicLR(o, 0.01, 0.4, step_size_up=9, mode="triangular2"),
    "cyclic_range": lambda o: sched.CyclicLR(o, 0.01, 0.4, step_size_up=8, mode="exp_range", gamma=0.98),
}


def schedules():
    out = {}
    for name, make in SCHEDULES.items():
        p = [torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
        opt = optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.25}], 0.5, momentum=0.9)
        schedule = make(opt)
        rows = []
        for _ in range(101):
            rows.append([g["lr"] for g in opt.param_groups] + [opt.param_groups[0]["momentum"]])
            if len(rows) < 101:
                opt.step()
                schedule.step()
        out[name] = rows
    metrics = [round(3 / (n + 1) + 0.4 * math.sin(n), 6) for n in range(100)]
    for name, more in [("plateau", dict(patience=3)), ("plateau_max", dict(mode="max", factor=0.5, patience=2, threshold_mode="abs", cooldown=3, min_lr=0.01))]:
        opt = optim.SGD([torch.zeros(1, requires_grad=True)], 0.5)
        schedule = sched.ReduceLROnPlateau(opt, **more)
        rows = []
        for m in metrics:
            schedule.step(m)
            rows.append(opt.param_groups[0]["lr"])
        out[name] = rows
    HERE.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"torch": torch.__version__, "metrics": metrics, "rates": out}, sort_keys=True)
    (HERE / "schedules.json").write_text(text + "\n")


if __name__ == "__main__":
    for write in (modules, losses, optimizers, schedules):
        torch.manual_seed(7)
        write()
