"""The models of `xlazy bench models` as its peers run them: python -c SCRIPT jax|torch_xla|eager|compiled MODEL ROUNDS cpu|cuda|tpu.

Prints one JSON object of figures, or null where the peer is not installed. Sizes, optimizers and data are those of
runtime/src/bench/models.rs.
"""
import contextlib
import importlib.util
import json
import os
import resource
import sys
import time

PEER, MODEL, ROUNDS, PLATFORM = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
NEEDS = {"jax": ["jax"], "torch_xla": ["torch_xla", "torch"], "eager": ["torch"], "compiled": ["torch"]}[PEER]

# Texts, tokens, words, layers, width and heads; pictures, their side and a patch's, layers, width, heads and classes.
BERTS = {"bert_4": (8, 128, 8000, 4, 256, 4), "bert_base_bf16": (32, 128, 30522, 12, 768, 12)}
VITS = {"vit_tiny": (8, 32, 4, 12, 192, 3, 10), "vit_base_bf16": (64, 224, 16, 12, 768, 12, 1000)}


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(step):
    """`step()` runs one and waits for it."""
    start, busy = time.perf_counter(), cpu()
    step()
    first, first_cpu = time.perf_counter() - start, cpu() - busy
    step()
    busy, times = cpu(), []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    step_cpu = 1e3 * (cpu() - busy) / ROUNDS
    figures = {"first_s": first, "first_cpu_s": first_cpu, "step_ms": sorted(times)[len(times) // 2], "step_cpu_ms": step_cpu}
    print(json.dumps({k: round(v, 3) for k, v in figures.items()}))


def in_jax():
    import math
    import jax
    import jax.numpy as jnp
    from jax import lax

    keys = iter(jax.random.split(jax.random.PRNGKey(0), 4096))
    normal = lambda *shape, std=0.02: std * jax.random.normal(next(keys), shape)
    uniform = lambda *shape: jax.random.uniform(next(keys), shape)
    ints = lambda high, *shape: jax.random.randint(next(keys), shape, 0, high)
    dense = lambda m, n: {"w": normal(m, n, std=1 / math.sqrt(m)), "b": jnp.zeros(n)}
    linear = lambda p, x: x @ p["w"] + p["b"]
    norm = lambda n: {"g": jnp.ones(n), "b": jnp.zeros(n)}

    def layer_norm(p, x, eps=1e-12):
        y = x.astype(jnp.float32)
        mean = y.mean(-1, keepdims=True)
        return ((y - mean) * lax.rsqrt(((y - mean) ** 2).mean(-1, keepdims=True) + eps) * p["g"] + p["b"]).astype(x.dtype)

    def entropy(scores, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(scores.astype(jnp.float32)), labels[:, None], 1).mean()

    def trained(params, loss, optimizer, state=()):
        """A step that gives the loss; `loss(params, state)` gives the next state, too."""
        both = jax.value_and_grad(loss, has_aux=True)
        zeros = lambda: jax.tree.map(jnp.zeros_like, params)

        def step(params, moments, state):
            (value, state), grads = both(params, state)
            if optimizer == "sgd":
                params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
            elif optimizer == "momentum":
                moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
                params = jax.tree.map(lambda p, m: p - 0.01 * m, params, moments)
            else:
                m, v, n = moments
                n = n + 1
                m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
                v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
                a, b = 1 - 0.9**n, 1 - 0.999**n
                update = lambda p, m, v: p * (1 - 1e-6) - 1e-4 * (m / a) / (jnp.sqrt(v / b) + 1e-8)
                params, moments = jax.tree.map(update, params, m, v), (m, v, n)
            return params, moments, state, value

        moments = {"sgd": lambda: (), "momentum": zeros, "adamw": lambda: (zeros(), zeros(), 0.0)}[optimizer]()
        step, held = jax.jit(step, donate_argnums=(0, 1, 2)), [params, moments, state]

        def run():
            *held[:], value = step(*held)
            jax.block_until_ready((value, held))

        return run

    def resnet(layers, bottleneck, classes, train):
        params, stats, plan = [], [], []

        def conv(m, n, k, stride):
            params.append({"w": normal(n, m, k, k, std=math.sqrt(2 / (n * k * k))), **norm(n)})
            stats.append((jnp.zeros(n), jnp.ones(n)))
            return len(params) - 1, stride, k // 2

        stem, n = conv(3, 64, 7, 2), 64
        for s, count in enumerate(layers):
            planes = 64 << s
            out = planes * 4 if bottleneck else planes
            for b in range(count):
                stride = 2 if s and not b else 1
                sizes = [(n, planes, 1, 1), (planes, planes, 3, stride), (planes, out, 1, 1)] if bottleneck else [(n, planes, 3, stride), (planes, planes, 3, 1)]
                plan.append(([conv(*z) for z in sizes], conv(n, out, 1, stride) if stride != 1 or n != out else None))
                n = out
        head = dense(n, classes)

        def forward(all, stats, x):
            params, head = all
            stats = list(stats)

            def apply(which, x):
                i, stride, pad = which
                p = params[i]
                y = lax.conv_general_dilated(x, p["w"], (stride, stride), [(pad, pad)] * 2)
                if train:
                    mean, var = y.mean((0, 2, 3)), y.var((0, 2, 3))
                    stats[i] = tuple(0.9 * old + 0.1 * lax.stop_gradient(new) for old, new in zip(stats[i], (mean, var)))
                else:
                    mean, var = stats[i]
                scale = p["g"] * lax.rsqrt(var + 1e-5)
                return y * scale[:, None, None] + (p["b"] - mean * scale)[:, None, None]

            x = jax.nn.relu(apply(stem, x))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
            for convs, around in plan:
                y = x
                for j, c in enumerate(convs):
                    y = apply(c, y)
                    y = jax.nn.relu(y) if j + 1 < len(convs) else y
                x = jax.nn.relu(y + (apply(around, x) if around else x))
            return linear(head, x.mean((2, 3))), tuple(stats)

        return (params, head), tuple(stats), forward

    def attention(p, x, heads, eps):
        n, t, d = x.shape
        split = lambda y: y.reshape(n, t, heads, d // heads).transpose(0, 2, 1, 3)
        q, k, v = (split(linear(p[c], x)) for c in "qkv")
        weights = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(d // heads))
        return linear(p["o"], (weights @ v).transpose(0, 2, 1, 3).reshape(n, t, d))

    def block(d, inner):
        return {**{c: dense(d, d) for c in "qkvo"}, "n1": norm(d), "n2": norm(d), "i": dense(d, inner), "j": dense(inner, d)}

    gelu = lambda x: jax.nn.gelu(x, approximate=False)
    half = (lambda p: jax.tree.map(lambda a: a.astype(jnp.bfloat16), p)) if MODEL.endswith("_bf16") else lambda p: p

    if MODEL == "mlp":
        x, y = uniform(128, 784), ints(10, 128)
        params = [dense(784, 512), dense(512, 512), dense(512, 10)]

        def loss(p, s):
            h = x
            for q in p[:-1]:
                h = jax.nn.relu(linear(q, h))
            return entropy(linear(p[-1], h), y), s

        return measure(trained(params, loss, "momentum"))
    if MODEL == "resnet18_32":
        params, stats, forward = resnet([2, 2, 2, 2], False, 10, True)
        x, y = uniform(32, 3, 32, 32), ints(10, 32)

        def loss(p, s):
            scores, s = forward(p, s, x)
            return entropy(scores, y), s

        return measure(trained(params, loss, "momentum", stats))
    if MODEL == "resnet50_inference":
        params, stats, forward = resnet([3, 4, 6, 3], True, 1000, False)
        x = uniform(4, 3, 224, 224)
        run = jax.jit(lambda p, s, x: forward(p, s, x)[0])
        return measure(lambda: jax.block_until_ready(run(params, stats, x)))
    if MODEL in BERTS:
        rows, tokens, words, layers, d, heads = BERTS[MODEL]
        x, y = ints(words, rows, tokens), ints(2, rows)
        params = {"words": normal(words, d), "places": normal(512, d), "types": normal(2, d), "n": norm(d),
                  "layers": [block(d, 4 * d) for _ in range(layers)], "pool": dense(d, d), "out": dense(d, 2)}

        def loss(p, s):
            p = half(p)
            h = layer_norm(p["n"], p["words"][x] + p["places"][:tokens] + p["types"][0])
            for q in p["layers"]:
                h = layer_norm(q["n1"], h + attention(q, h, heads, 1e-12))
                h = layer_norm(q["n2"], h + linear(q["j"], gelu(linear(q["i"], h))))
            return entropy(linear(p["out"], jnp.tanh(linear(p["pool"], h[:, 0]))), y), s

        return measure(trained(params, loss, "adamw"))
    if MODEL in VITS:
        rows, side, patch, layers, d, heads, classes = VITS[MODEL]
        x, y, n = uniform(rows, 3, side, side), ints(classes, rows), (side // patch) ** 2
        params = {"w": normal(d, 3, patch, patch), "b": jnp.zeros(d), "class": normal(1, 1, d), "places": normal(1, n + 1, d),
                  "layers": [block(d, 4 * d) for _ in range(layers)], "n": norm(d), "out": dense(d, classes)}

        def loss(p, s):
            p = half(p)
            h = lax.conv_general_dilated(half(x), p["w"], (patch, patch), "VALID") + p["b"][:, None, None]
            h = h.reshape(rows, d, n).transpose(0, 2, 1)
            h = jnp.concatenate([jnp.broadcast_to(p["class"], (rows, 1, d)), h], 1) + p["places"]
            for q in p["layers"]:
                h = h + attention(q, layer_norm(q["n1"], h), heads, 1e-12)
                h = h + linear(q["j"], gelu(linear(q["i"], layer_norm(q["n2"], h))))
            return entropy(linear(p["out"], layer_norm(p["n"], h)[:, 0]), y), s

        return measure(trained(params, loss, "adamw"))
    dense_x, y = uniform(128, 13), jnp.round(uniform(128, 1))
    bags = [ints(10_000, 128) for _ in range(8)]
    params = {"tables": [normal(10_000, 16) for _ in range(8)], "bot": [dense(13, 64), dense(64, 16)], "top": [dense(16 + 36, 64), dense(64, 1)]}

    def loss(p, s):
        h = dense_x
        for q in p["bot"]:
            h = jax.nn.relu(linear(q, h))
        all = jnp.stack([h, *(t[b] for t, b in zip(p["tables"], bags))], 1)
        products = all @ all.transpose(0, 2, 1)
        i, j = jnp.tril_indices(9, -1)
        h = jnp.concatenate([h, products[:, i, j]], 1)
        h = jax.nn.sigmoid(linear(p["top"][1], jax.nn.relu(linear(p["top"][0], h))))
        return -(y * jnp.log(h) + (1 - y) * jnp.log(1 - h)).mean(), s

    measure(trained(params, loss, "sgd"))


def in_torch():
    import torch
    from torch import nn
    from torch.nn import functional as F

    device, wait = "cpu", lambda: None
    if PLATFORM == "cuda" and PEER != "torch_xla":
        device, wait = "cuda", torch.cuda.synchronize
        # As XLA computes products of float32.
        torch.set_float32_matmul_precision("high")
    if PEER == "torch_xla":
        import torch_xla

        device = torch_xla.device()
        wait = lambda: torch_xla.sync(wait=True)

    class Residual(nn.Module):
        def __init__(self, n, planes, stride, bottleneck):
            super().__init__()
            out = planes * 4 if bottleneck else planes
            sizes = [(n, planes, 1, 1), (planes, planes, 3, stride), (planes, out, 1, 1)] if bottleneck else [(n, planes, 3, stride), (planes, planes, 3, 1)]
            conv = lambda m, n, k, s: nn.Sequential(nn.Conv2d(m, n, k, s, k // 2, bias=False), nn.BatchNorm2d(n))
            self.convs = nn.ModuleList(conv(*z) for z in sizes)
            self.around = conv(n, out, 1, stride) if stride != 1 or n != out else nn.Identity()

        def forward(self, x):
            y = x
            for c in self.convs[:-1]:
                y = F.relu(c(y))
            return F.relu(self.convs[-1](y) + self.around(x))

    def resnet(layers, bottleneck, classes):
        parts, n = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for s, count in enumerate(layers):
            for b in range(count):
                parts.append(Residual(n, 64 << s, 2 if s and not b else 1, bottleneck))
                n = (64 << s) * (4 if bottleneck else 1)
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, classes))

    def encoder(layers, d, heads, inner, first):
        make = nn.TransformerEncoderLayer
        return nn.Sequential(*(make(d, heads, inner, 0.0, "gelu", 1e-12, batch_first=True, norm_first=first) for _ in range(layers)))

    class Bert(nn.Module):
        def __init__(self, _rows, _tokens, words, layers, d, heads):
            super().__init__()
            self.words, self.places, self.types = nn.Embedding(words, d), nn.Embedding(512, d), nn.Embedding(2, d)
            self.norm, self.layers = nn.LayerNorm(d), encoder(layers, d, heads, 4 * d, False)
            self.pool, self.out = nn.Linear(d, d), nn.Linear(d, 2)

        def forward(self, x):
            h = self.norm(self.words(x) + self.places.weight[: x.shape[1]] + self.types.weight[0])
            return self.out(torch.tanh(self.pool(self.layers(h)[:, 0])))

    class ViT(nn.Module):
        def __init__(self, _rows, side, patch, layers, d, heads, classes):
            super().__init__()
            self.patches, self.cls = nn.Conv2d(3, d, patch, patch), nn.Parameter(torch.zeros(1, 1, d))
            self.places = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, d))
            self.layers, self.norm, self.out = encoder(layers, d, heads, 4 * d, True), nn.LayerNorm(d), nn.Linear(d, classes)

        def forward(self, x):
            h = self.patches(x).flatten(2).transpose(1, 2)
            h = torch.cat([self.cls.expand(len(x), -1, -1), h], 1) + self.places
            return self.out(self.norm(self.layers(h))[:, 0])

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(10_000, 16, mode="sum") for _ in range(8))
            self.bot = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(52, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())

        def forward(self, x, bags, offsets):
            h = self.bot(x)
            all = torch.stack([h, *(t(b, offsets) for t, b in zip(self.tables, bags))], 1)
            i, j = torch.tril_indices(9, 9, -1, device=x.device)
            return self.top(torch.cat([h, (all @ all.transpose(1, 2))[:, i, j]], 1))

    def bert(model):
        rows, tokens, words, *_ = BERTS[model]
        return lambda: (Bert(*BERTS[model]), [torch.randint(words, (rows, tokens))], torch.randint(2, (rows,)), "adamw")

    def vit(model):
        rows, side, *_, classes = VITS[model]
        return lambda: (ViT(*VITS[model]), [torch.rand(rows, 3, side, side)], torch.randint(classes, (rows,)), "adamw")

    put = lambda t: t.to(device)
    compiled = torch.compile if PEER == "compiled" else lambda m: m
    torch.manual_seed(0)
    if MODEL == "resnet50_inference":
        model, x = compiled(resnet([3, 4, 6, 3], True, 1000).eval().to(device)), put(torch.rand(4, 3, 224, 224))

        @torch.no_grad()
        def infer():
            y = model(x)
            wait()
            return y

        return measure(infer)
    model, inputs, labels, optimizer = {
        "mlp": lambda: (nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)), [torch.rand(128, 784)], torch.randint(10, (128,)), "momentum"),
        "resnet18_32": lambda: (resnet([2, 2, 2, 2], False, 10), [torch.rand(32, 3, 32, 32)], torch.randint(10, (32,)), "momentum"),
        **{m: bert(m) for m in BERTS},
        **{m: vit(m) for m in VITS},
        "dlrm": lambda: (Dlrm(), [torch.rand(128, 13), [torch.randint(10_000, (128,)) for _ in range(8)], torch.arange(128)], torch.rand(128, 1).round(), "sgd"),
    }[MODEL]()
    model = compiled(model.to(device))
    inputs = [[put(t) for t in v] if isinstance(v, list) else put(v) for v in inputs]
    labels = put(labels)
    opt = {
        "momentum": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
        "sgd": lambda p: torch.optim.SGD(p, 0.1),
        "adamw": lambda p: torch.optim.AdamW(p, 1e-4),
    }[optimizer](model.parameters())
    criterion = F.binary_cross_entropy if MODEL == "dlrm" else F.cross_entropy

    in_half = lambda: torch.autocast(torch.device(device).type, torch.bfloat16)
    autocast = in_half if MODEL.endswith("_bf16") else contextlib.nullcontext

    def step():
        opt.zero_grad()
        with autocast():
            loss = criterion(model(*inputs), labels)
        loss.backward()
        opt.step()
        wait()

    measure(step)


if not all(importlib.util.find_spec(name) for name in NEEDS):
    print("null")
elif PEER == "jax":
    os.environ.setdefault("JAX_PLATFORMS", PLATFORM)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    in_jax()
else:
    os.environ.setdefault("PJRT_DEVICE", PLATFORM.upper())
    in_torch()
