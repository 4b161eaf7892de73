#!/usr/bin/env python3
"""Writes what PyTorch's models give in small sizes: runtime/tests/models/*.{json,safetensors}.

Run by hand: python3 -m pip install torch torchvision transformers safetensors && python3 scripts/torch_models.py
A JSON has the config and, for each tensor, how far float32 is from float64 (`f32_err`: largest and mean); the safetensors has the state
under PyTorch's names, inputs, outputs, the loss, every gradient, and the parameters after a step of SGD and three of AdamW, all
computed in float64.
"""
import copy
import json
import pathlib
import sys
import torch
from safetensors.torch import save_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent.parent / "runtime/tests/models"
SGD = {"type": "SGD", "lr": 0.1, "momentum": 0.9, "steps": 1}
ADAMW = {"type": "AdamW", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "steps": 3}
TOLERANCE = {"default": {"max": [1e-6, 5e-5, 8], "mean": [5e-7, 2e-5, 8]}, "grad": {"max": [1e-6, 2e-3, 8], "mean": [5e-7, 1e-3, 8]}}


def run(model, dtype, inputs, forward, loss):
    """All that the reference holds, computed in a dtype."""
    cast = lambda t: t.to(dtype) if t.is_floating_point() else t
    inputs = {k: cast(v) for k, v in inputs.items()}
    out = {}

    def fresh():
        return copy.deepcopy(model).to(dtype)

    m = fresh()
    y = forward(m, inputs)
    out["out/y"] = y
    value = loss(y)
    out["loss"] = value
    value.backward()
    for name, p in m.named_parameters():
        if p.grad is not None:
            out[f"grad/{name}"] = p.grad.clone()
    for name, b in m.named_buffers():
        if name in m.state_dict() and b.is_floating_point():
            out[f"buf1/{name}"] = b.clone()
    opt = torch.optim.SGD(m.parameters(), SGD["lr"], momentum=SGD["momentum"])
    opt.step()
    for name, p in m.named_parameters():
        if p.grad is not None:
            out[f"sgd1/{name}"] = p
    m = fresh()
    opt = torch.optim.AdamW(m.parameters(), ADAMW["lr"], ADAMW["betas"], ADAMW["eps"], ADAMW["weight_decay"])
    losses = []
    for _ in range(3):
        opt.zero_grad()
        value = loss(forward(m, inputs))
        losses.append(value.detach())
        value.backward()
        opt.step()
    out["adamw3_losses"] = torch.stack(losses)
    for name, p in m.named_parameters():
        if p.grad is not None:
            out[f"adamw3/{name}"] = p
    return {k: v.detach() for k, v in out.items()}


def write(name, config, model, inputs, forward, loss, steps=True):
    torch.manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            # as data that float32 holds; biases and norms not at their zeros and ones
            p.copy_((p + 0.05 * torch.randn_like(p)).float())
    exact, single = (run(model, d, inputs, forward, loss) for d in (torch.float64, torch.float32))
    tensors, errors = {}, {}
    for key, t in exact.items():
        if not steps and key.split("/")[0] in ("sgd1", "adamw3"):
            continue
        tensors[key] = t.float().contiguous().clone()
        apart = (single[key].double() - t).abs()
        errors[key] = [float(f"{apart.max():.3g}"), float(f"{apart.mean():.3g}")]
    seen = {}
    for key, t in model.state_dict().items():
        if t.data_ptr() in seen and t.numel() > 1:
            continue
        seen[t.data_ptr()] = key
        tensors[f"state/{key}"] = (t.float() if t.is_floating_point() else t).contiguous().clone()
    for key, t in inputs.items():
        tensors[f"input/{key}"] = t.contiguous().clone()
    if isinstance(loss, Classes):
        tensors["target/labels"] = loss.labels
    save_file(tensors, HERE / f"{name}.safetensors")
    spec = {"name": name, "config": config, "optimizers": {"sgd1": SGD, "adamw3": ADAMW}, "tolerance": TOLERANCE, "f32_err": errors}
    (HERE / f"{name}.json").write_text(json.dumps(spec, indent=0, sort_keys=True) + "\n")


class Classes:
    """The cross entropy against class numbers that are drawn once."""

    def __init__(self, n, *shape):
        self.n, self.labels = n, torch.randint(0, n, shape)

    def __call__(self, y):
        return nn.functional.cross_entropy(y.reshape(-1, self.n), self.labels.reshape(-1))


SMALL = dict(vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, type_vocab_size=2,
             pad_token_id=1, layer_norm_eps=1e-12, attn_implementation="eager", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
DISTIL = dict(vocab_size=24, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=10, pad_token_id=1, dropout=0.0,
              attention_dropout=0.0, seq_classif_dropout=0.0)
XLNET = dict(vocab_size=24, d_model=8, n_layer=2, n_head=2, d_inner=12, dropout=0.0, summary_last_dropout=0.0)
GPT2 = dict(vocab_size=24, n_positions=12, n_embd=8, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def padded():
    """Three texts of several lengths, and the kinds of their tokens."""
    ids = torch.randint(3, 24, (3, 7))
    mask = torch.ones(3, 7, dtype=torch.int64)
    for row, length in enumerate([7, 4, 6]):
        ids[row, length:] = 1
        mask[row, length:] = 0
    types = (torch.arange(7) > 3).long().expand(3, 7).contiguous()
    return {"input_ids": ids, "attention_mask": mask}, types


def logits(m, x):
    return m(**x).logits


def ends(m, x):
    return torch.stack([m(**x).start_logits, m(**x).end_logits], -1)


def waves(y):
    """A loss of many outputs, of which each counts otherwise."""
    return (y * torch.cos(torch.arange(y.numel())).reshape(y.shape)).sum()


def texts():
    import transformers as tf

    plain, types = padded()
    small = SMALL
    bert = tf.BertConfig(max_position_embeddings=10, **small)
    for kind, labels, loss in [("SequenceClassification", 3, Classes(3, 3)), ("TokenClassification", 4, Classes(4, 3, 7)),
                               ("MaskedLM", 2, Classes(24, 3, 7))]:
        bert.num_labels = labels
        model = getattr(tf, f"BertFor{kind}")(bert)
        write(f"bert_{kind}".lower(), small, model, plain | {"token_type_ids": types}, logits, loss)
    bert.num_labels = 2
    write("bert_questionanswering", small, tf.BertForQuestionAnswering(bert), plain | {"token_type_ids": types}, ends, waves)
    roberta = tf.RobertaConfig(max_position_embeddings=10, num_labels=3, **small)
    write("roberta", small, tf.RobertaForSequenceClassification(roberta), plain, logits, Classes(3, 3))
    write("roberta_lm", small, tf.RobertaForMaskedLM(roberta), plain, logits, Classes(24, 3, 7))
    sizes = DISTIL
    distil = tf.DistilBertConfig(num_labels=3, attn_implementation="eager", **sizes)
    write("distilbert", sizes, tf.DistilBertForSequenceClassification(distil), plain, logits, Classes(3, 3))
    write("distilbert_lm", sizes, tf.DistilBertForMaskedLM(distil), plain, logits, Classes(24, 3, 7))
    xlnet = tf.XLNetConfig(num_labels=3, **XLNET)
    write("xlnet", XLNET, tf.XLNetForSequenceClassification(xlnet), plain | {"token_type_ids": types},
          lambda m, x: xlnets(m, x).logits, Classes(3, 3))
    gpt2 = tf.GPT2Config(attn_implementation="eager", **GPT2)
    write("gpt2", GPT2, tf.GPT2LMHeadModel(gpt2), {"input_ids": plain["input_ids"]}, lambda m, x: m(**x, use_cache=False).logits,
          Classes(24, 3, 7))


def xlnets(m, x):
    # transformers' takes the mask as floats
    return m(**x | {"attention_mask": x["attention_mask"].to(m.dtype)}, use_mems=False)


def heads():
    """Further heads of the same families."""
    import transformers as tf

    plain, types = padded()
    typed = plain | {"token_type_ids": types}
    # three choices of two texts each
    ids = torch.randint(3, 24, (2, 3, 7))
    mask = (torch.arange(7) < torch.tensor([[7, 5, 6], [4, 7, 7]])[..., None]).long()
    choices = {"input_ids": torch.where(mask == 1, ids, 1), "attention_mask": mask}
    bert = tf.BertConfig(max_position_embeddings=10, **SMALL)
    both = lambda m, x: torch.cat([m(**x).prediction_logits.flatten(), m(**x).seq_relationship_logits.flatten()])
    write("bert_pretraining", SMALL, tf.BertForPreTraining(bert), typed, both, waves)
    write("bert_nextsentence", SMALL, tf.BertForNextSentencePrediction(bert), typed, logits, Classes(2, 3))
    roberta = tf.RobertaConfig(max_position_embeddings=10, **SMALL)
    distil = tf.DistilBertConfig(qa_dropout=0.0, attn_implementation="eager", **DISTIL)
    xlnet = tf.XLNetConfig(num_labels=4, **XLNET)
    for name, sizes, model in [
        ("bert", SMALL, tf.BertForMultipleChoice(bert)),
        ("roberta", SMALL, tf.RobertaForMultipleChoice(roberta)),
        ("distilbert", DISTIL, tf.DistilBertForMultipleChoice(distil)),
    ]:
        write(f"{name}_multiplechoice", sizes, model, choices, logits, Classes(3, 2))
    write("distilbert_questionanswering", DISTIL, tf.DistilBertForQuestionAnswering(distil), plain, ends, waves)
    words = lambda m, x: xlnets(m, x).logits
    write("xlnet_multiplechoice", XLNET, tf.XLNetForMultipleChoice(xlnet), choices, words, Classes(3, 2))
    write("xlnet_tokenclassification", XLNET, tf.XLNetForTokenClassification(xlnet), typed, words, Classes(4, 3, 7))
    write("xlnet_lm", XLNET, tf.XLNetLMHeadModel(xlnet), typed, words, Classes(24, 3, 7))
    xlnet.num_labels = 2
    ending = lambda m, x: torch.stack([xlnets(m, x).start_logits, xlnets(m, x).end_logits], -1)
    write("xlnet_questionanswering", XLNET, tf.XLNetForQuestionAnsweringSimple(xlnet), typed, ending, waves)
    sizes = GPT2 | {"n_inner": 20}
    gpt2 = tf.GPT2Config(attn_implementation="eager", **sizes)
    write("gpt2_inner", sizes, tf.GPT2LMHeadModel(gpt2), {"input_ids": plain["input_ids"]}, lambda m, x: m(**x, use_cache=False).logits,
          Classes(24, 3, 7))


def pictures():
    import torchvision.models.resnet as tv

    class Narrow(tv.ResNet):
        """torchvision's, with fewer channels."""

        def __init__(self, block, layers, planes, **more):
            super().__init__(block, layers, num_classes=5, **more)
            self.inplanes = planes
            self.conv1 = nn.Conv2d(3, planes, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(planes)
            for i in range(4):
                layer = self._make_layer(block, planes << i, layers[i], stride=1 if i == 0 else 2)
                setattr(self, f"layer{i + 1}", layer)
            self.fc = nn.Linear((planes << 3) * block.expansion, 5)

    x = torch.randn(4, 3, 32, 32)
    forward = lambda m, x: m(x["x"])
    write("resnet_basic", {}, Narrow(tv.BasicBlock, [2, 1, 1, 1], 4), {"x": x}, forward, Classes(5, 4), steps=False)
    write("resnext", {}, Narrow(tv.Bottleneck, [1, 1, 1, 1], 4, groups=2, width_per_group=16), {"x": x}, forward, Classes(5, 4), steps=False)


def configs():
    """What transformers writes as config.json, with every setting, of models of sizes that are not its defaults."""
    import transformers as tf

    small = {k: v for k, v in SMALL.items() if k != "attn_implementation"}
    bert = dict(max_position_embeddings=10, hidden_act="gelu_new", num_labels=3, **small)
    models = [
        tf.BertForSequenceClassification(tf.BertConfig(classifier_dropout=0.25, **bert)),
        tf.RobertaForTokenClassification(tf.RobertaConfig(**bert)),
        tf.DistilBertForSequenceClassification(tf.DistilBertConfig(num_labels=3, **DISTIL)),
        tf.XLNetForSequenceClassification(tf.XLNetConfig(num_labels=3, d_head=4, **XLNET)),
        tf.GPT2LMHeadModel(tf.GPT2Config(n_inner=20, **GPT2)),
        tf.ViTForImageClassification(tf.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
                                                  image_size=8, patch_size=4, num_channels=1, num_labels=5)),
    ]
    for model in models:
        model.config.architectures = [type(model).__name__]
    (HERE / "configs.json").write_text(json.dumps([m.config.to_dict() for m in models], indent=0, sort_keys=True) + "\n")


class Translation(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_embed, self.tgt_embed, self.pos_embed = nn.Embedding(16, 8), nn.Embedding(14, 8), nn.Embedding(9, 8)
        self.transformer = nn.Transformer(8, 2, 1, 1, 12, 0.0, batch_first=True)
        self.generator = nn.Linear(8, 14)

    def forward(self, src, tgt, src_pad):
        place = lambda t: self.pos_embed.weight[: t.shape[1]]
        x, y = self.src_embed(src) * 8**0.5 + place(src), self.tgt_embed(tgt) * 8**0.5 + place(tgt)
        mask = torch.triu(torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool), 1)
        y = self.transformer(x, y, tgt_mask=mask, src_key_padding_mask=src_pad, memory_key_padding_mask=src_pad)
        return self.generator(y)


def translation():
    src, tgt = torch.randint(2, 16, (3, 7)), torch.randint(2, 14, (3, 5))
    pad = torch.arange(7)[None] >= torch.tensor([7, 4, 6])[:, None]
    write("translation", {}, Translation(), {"src": src, "tgt": tgt, "src_pad": pad}, lambda m, x: m(**x), Classes(14, 3, 5))


if __name__ == "__main__":
    for part in [texts, heads, configs, pictures, translation]:
        if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
            torch.manual_seed(11)
            part()
