#!/usr/bin/env python3
"""Draws conformance cases from PyTorch's own op database, in the format of tests/conformance: any dtype, any seed.

Run by hand, for a proof that holds for other cases than those that are kept:

    python3 -m pip install torch==2.9.1 safetensors expecttest numpy
    python3 scripts/torch_cases.py OUT --seed 7 --per 3
    XLAZY_CONFORMANCE_DIR=OUT cargo nextest run -p xlazy --test conformance --no-capture

Names are those of tests/conformance/cases.jsonl, or --names. Of each name, variant and dtype that PyTorch's CPU has, --per
samples are drawn from the database's samples and, with --reference, from its longer lists (broadcasting, extremal values).
Gradients are of the sum of every differentiable output times its weight; complex numbers are pairs in a last axis of 2, so
that this is the sum over real and imaginary parts. Of float16 and bfloat16 it is what PyTorch computes of the same numbers
in float64, rounded: its own kernels of halves are off by more than what is tolerated here. What PyTorch refuses, and what cannot be written down, is left out and
counted. With --errors: the calls that PyTorch's tests expect to be refused, as cases whose `error` is torch's message. With
--wrong: samples with one argument changed (another dtype, size or number of dimensions, a number out of range), as cases with
torch's message or with what it computes all the same.
"""
import argparse
import collections
import json
import pathlib
import random
import warnings

import torch
from safetensors.torch import save_file
from torch.testing._internal.common_methods_invocations import op_db

HERE = pathlib.Path(__file__).resolve().parent.parent
DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128",
]
HALVES = (torch.float16, torch.bfloat16)
# elements that a case may hold: beyond it a sample shows size, not meaning
MOST = 20_000
WITHOUT_MEANING = {"device", "layout", "pin_memory", "memory_format", "out", "generator"}


class Unwritable(Exception):
    pass


class Case:
    """The tensors of one case, in order of appearance."""

    def __init__(self, number):
        self.number, self.tensors, self.leaves = number, {}, []

    def tensor(self, t):
        if t.layout != torch.strided or t.is_quantized:
            raise Unwritable("layout")
        key = f"c{self.number}.{len(self.tensors)}"
        entry = {"tensor": key, "dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)}
        if t.requires_grad:
            entry["requires_grad"] = True
        plain = t.detach().resolve_conj().resolve_neg()
        if plain.is_complex():
            plain = torch.view_as_real(plain)
        self.tensors[key] = plain.contiguous().clone()
        return entry

    def value(self, v, leaves=False):
        if isinstance(v, torch.Tensor):
            if leaves and v.requires_grad:
                self.leaves.append(v)
            return self.tensor(v)
        if v is None or isinstance(v, (bool, str)):
            return v
        if isinstance(v, int):
            return int(v)
        if isinstance(v, float):
            return {"float": v if v == v and abs(v) != float("inf") else str(v)}
        if isinstance(v, complex):
            return {"complex": [v.real, v.imag]}
        if isinstance(v, slice):
            return {"slice": [v.start, v.stop, v.step]}
        if v is Ellipsis:
            return {"ellipsis": True}
        if isinstance(v, torch.dtype):
            return {"dtype": str(v).removeprefix("torch.")}
        if isinstance(v, tuple):
            return {"tuple": [self.value(x, leaves) for x in v]}
        if isinstance(v, list):
            return [self.value(x, leaves) for x in v]
        raise Unwritable(type(v).__name__)


def flat(v):
    if isinstance(v, torch.Tensor):
        return [v]
    if isinstance(v, (tuple, list)):
        return [t for x in v for t in flat(x)]
    return []


def kwargs_of(sample):
    return {k: v for k, v in sample.kwargs.items() if k not in WITHOUT_MEANING}


def plain_leaf(t):
    """A leaf that was made as a view where no gradient was recorded has none in PyTorch: the same numbers as a leaf of its own."""
    made_so = isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf and t._is_view()
    with torch.enable_grad():
        return t.detach().requires_grad_(True) if made_so else t


def written(op, dtype, sample, number, tier, draw):
    """One case, or the reason why there is none."""
    sample = sample.transform(plain_leaf)
    case, kwargs = Case(number), kwargs_of(sample)
    if sum(t.numel() for t in flat([sample.input, list(sample.args), list(kwargs.values())])) > MOST:
        raise Unwritable("size")
    row = {"op": op.name, "variant": op.variant_test_name, "tier": tier, "dtype": str(dtype).removeprefix("torch.")}
    row["input"] = case.value(sample.input, True)
    row["args"] = [case.value(a, True) for a in sample.args]
    row["kwargs"] = {k: case.value(v, True) for k, v in kwargs.items()}
    # an op may change its input: what is written above is from before
    output = op.op(sample.input, *sample.args, **kwargs)
    if any(t.dtype == torch.complex32 for t in flat(output)):
        raise Unwritable("complex32")
    if dtype in HALVES and flat(output):
        return exact(op, dtype, sample, kwargs, output, row, case, draw)
    row["output"] = case.value(output)
    if sum(t.numel() for t in flat(output)) > MOST:
        raise Unwritable("size")
    through = [y for y in flat(output) if y.requires_grad]
    if case.leaves and through:
        weights = [torch.randn(y.shape, dtype=y.dtype, generator=draw) for y in through]
        grads = torch.autograd.grad(through, case.leaves, grad_outputs=weights, allow_unused=True)
        row["weights"] = [case.tensor(w) for w in weights]
        row["grads"] = [None if g is None else case.tensor(g) for g in grads]
    return row, case.tensors


def like(value, other):
    """`value` in the dtypes of `other`, which is nested alike."""
    if isinstance(value, torch.Tensor):
        return value.to(other.dtype)
    if isinstance(value, (tuple, list)):
        return type(value)(like(v, o) for v, o in zip(value, other)) if type(value) in (tuple, list) else tuple(
            like(v, o) for v, o in zip(value, other)
        )
    return value


def exact(op, dtype, sample, kwargs, output, row, case, draw):
    """Of halves what PyTorch computes of the same numbers in float64, rounded."""
    def wide(v):
        if isinstance(v, torch.Tensor):
            w = v.detach().to(torch.float64) if v.dtype == dtype else v.detach()
            return w.requires_grad_(v.requires_grad)
        if isinstance(v, (tuple, list)):
            return type(v)(wide(x) for x in v) if type(v) in (tuple, list) else tuple(wide(x) for x in v)
        return torch.float64 if v == dtype and isinstance(v, torch.dtype) else v

    inputs = [wide(sample.input), [wide(a) for a in sample.args], {k: wide(v) for k, v in kwargs.items()}]
    leaves = [t for t in flat([inputs[0], inputs[1], list(inputs[2].values())]) if t.requires_grad]
    y = op.op(inputs[0], *inputs[1], **inputs[2])
    if any(a.shape != b.shape for a, b in zip(flat(y), flat(output))):
        raise Unwritable("another shape in float64")
    row["output"] = case.value(like(y, output))
    through = [y for y in flat(y) if y.requires_grad]
    if leaves and through:
        flagged = [e for e in parts(row["output"])]
        for e, t in zip(flagged, flat(y)):
            if t.requires_grad:
                e["requires_grad"] = True
        weights = [torch.randn(t.shape, dtype=torch.float32, generator=draw).to(dtype) for t in through]
        grads = torch.autograd.grad(through, leaves, grad_outputs=[w.double() for w in weights], allow_unused=True)
        row["weights"] = [case.tensor(w) for w in weights]
        own = [t.dtype for t in case.leaves]
        row["grads"] = [None if g is None else case.tensor(g.to(d)) for g, d in zip(grads, own)]
    return row, case.tensors


def parts(encoded):
    """The tensors of an encoded output."""
    if isinstance(encoded, list):
        return [e for x in encoded for e in parts(x)]
    if isinstance(encoded, dict) and "tuple" in encoded:
        return parts(encoded["tuple"])
    return [encoded] if isinstance(encoded, dict) and "tensor" in encoded else []


def samples(op, dtype, options, flows):
    found = list(op.sample_inputs("cpu", dtype, requires_grad=flows))
    if options.reference and op.reference_inputs_func is not None:
        found += list(op.reference_inputs("cpu", dtype, requires_grad=flows))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per", type=int, default=3, help="cases of each name, variant and dtype")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--names", help="torch names with commas between; all of the kept cases without it")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--errors", action="store_true", help="what PyTorch refuses, in place of what it computes")
    parser.add_argument("--wrong", action="store_true", help="samples with one argument changed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = [json.loads(line) for line in (HERE / "tests/conformance/cases.jsonl").read_text().splitlines()]
    tiers = {(r["op"], r["variant"]): r["tier"] for r in kept}
    names = set(options.names.split(",")) if options.names else {op for op, _ in tiers}
    options.out.mkdir(parents=True, exist_ok=True)
    rows, left_out = [], collections.Counter()
    for op in op_db:
        if op.name not in names:
            continue
        tier = tiers.get((op.name, op.variant_test_name), 2)
        for dtype in (getattr(torch, d) for d in options.dtypes.split(",")):
            if not op.supports_dtype(dtype, "cpu"):
                continue
            torch.manual_seed(options.seed)
            random.seed(f"{options.seed} {op.name} {op.variant_test_name} {dtype}")
            draw = torch.Generator().manual_seed(options.seed)
            flows = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
            kind = str(dtype).removeprefix("torch.")
            tensors, label = {}, ".".join(x for x in (op.name, op.variant_test_name) if x)
            try:
                found = errors(op) if options.errors and dtype == torch.float32 else samples(op, dtype, options, flows)
            except Exception as e:
                left_out[f"{label} {kind}: {type(e).__name__}"] += 1
                continue
            random.shuffle(found)
            count = 0
            for sample in found:
                if count == options.per:
                    break
                try:
                    number = len(rows)
                    if options.errors:
                        row, held = refused(op, dtype, sample.sample_input, number, tier)
                    elif options.wrong:
                        row, held = judged(op, dtype, changed(sample), number, tier, draw)
                    else:
                        row, held = written(op, dtype, sample, number, tier, draw)
                except Exception as e:
                    left_out[f"{type(e).__name__} {str(e)[:60] if isinstance(e, Unwritable) else ''}"] += 1
                    continue
                row["id"] = f"{op.name}/{op.variant_test_name or '-'}/{kind}/{count}"
                row["file"] = f"{label}-{kind}.safetensors"
                rows.append(row)
                tensors |= held
                count += 1
            if tensors:
                save_file(tensors, options.out / f"{label}-{kind}.safetensors")
    (options.out / "cases.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    print(f"{len(rows)} cases of {len({r['op'] for r in rows})} names; left out: {dict(left_out.most_common(12))}")


def errors(op):
    return [e for e in op.error_inputs("cpu")] if op.error_inputs_func is not None else []


def other(v):
    """An argument, changed in one of the ways that are open to it; None where there is none."""
    if isinstance(v, torch.Tensor):
        v = v.detach().clone()
        ways = [lambda: v.unsqueeze(0), lambda: v.to(random.choice([torch.int64, torch.bool, torch.float64, torch.complex64]))]
        if v.dim():
            d = random.randrange(v.dim())
            ways += [lambda: v.select(d, 0), lambda: torch.cat([v, v.narrow(d, 0, 1)], d), lambda: v.narrow(d, 0, v.shape[d] - 1)]
            ways += [lambda: v.transpose(d, -1), lambda: v.flatten(), lambda: v.unsqueeze(-1)]
        if not v.dtype.is_floating_point and not v.is_complex() and v.dtype != torch.bool:
            ways += [lambda: v - 7, lambda: v + 7]
        return random.choice(ways)()
    if isinstance(v, bool) or v is None or isinstance(v, (str, torch.dtype)):
        return None
    if isinstance(v, int):
        return v + random.choice([-11, -3, -1, 1, 3, 11])
    if isinstance(v, float):
        return random.choice([-v - 1, v * 100 + 100])
    if isinstance(v, (tuple, list)) and v:
        ways = [v[:-1], v + type(v)([v[0]])]
        i = random.randrange(len(v))
        inner = other(v[i])
        ways += [] if inner is None else [v[:i] + type(v)([inner]) + v[i + 1 :]]
        return random.choice(ways)
    return None


def changed(sample):
    """A sample with one argument changed."""
    plain = sample.transform(lambda t: t.detach() if isinstance(t, torch.Tensor) else t)
    places = [("input", None)] + [("args", i) for i in range(len(plain.args))] + [("kwargs", k) for k in kwargs_of(plain)]
    random.shuffle(places)
    for kind, at in places:
        if kind == "input":
            new = other(plain.input)
            if new is not None:
                plain.input = new
                return plain
        elif kind == "args":
            new = other(plain.args[at])
            if new is not None:
                plain.args = plain.args[:at] + (new,) + plain.args[at + 1 :]
                return plain
        else:
            new = other(plain.kwargs[at])
            if new is not None:
                plain.kwargs = {**plain.kwargs, at: new}
                return plain
    raise Unwritable("nothing to change")


def judged(op, dtype, sample, number, tier, draw):
    try:
        return written(op, dtype, sample, number, tier, draw)
    except Unwritable:
        raise
    except Exception:
        return refused(op, dtype, sample, number, tier)


def refused(op, dtype, sample, number, tier):
    case = Case(number)
    kwargs = kwargs_of(sample)
    if len(kwargs) != len(sample.kwargs):
        raise Unwritable("an option without meaning")
    row = {"op": op.name, "variant": op.variant_test_name, "tier": tier, "dtype": str(dtype).removeprefix("torch.")}
    row["input"] = case.value(sample.input)
    row["args"] = [case.value(a) for a in sample.args]
    row["kwargs"] = {k: case.value(v) for k, v in kwargs.items()}
    try:
        op.op(sample.input, *sample.args, **kwargs)
    except Exception as e:
        row["output"], row["error"] = None, str(e).splitlines()[0] if str(e) else type(e).__name__
        return row, case.tensors
    raise Unwritable("is not refused")


if __name__ == "__main__":
    main()
