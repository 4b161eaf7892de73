#!/usr/bin/env python3
"""Draws programs that write through views, and what PyTorch makes of them: runtime/tests/torch/views.json.

Run by hand: python3 -m pip install torch numpy && python3 scripts/torch_views.py [FILE] [--seed N] [--programs N]
Each program is a list of acts on a list of tensors that grows: views of tensors and of views, writes in place through any of
them (whole, by index, by mask, by slices), new tensors. What PyTorch refuses is part of a program, with `refused`; the values
of all tensors at the end are kept. Numbers are small integers in float64, so that nothing is rounded.
"""
import argparse
import json
import pathlib
import random

import torch

HERE = pathlib.Path(__file__).resolve().parent.parent


def view(draw, x):
    """The name of a view, its numbers, and the view; some give copies, as torch decides."""
    rank = x.dim()
    d = draw.randrange(rank) if rank else 0
    n = x.shape[d] if rank else 1
    kinds = ["unsqueeze", "detach", "flatten"] if rank < 4 else ["detach", "flatten"]
    if rank:
        kinds += ["select", "narrow", "slice", "expand", "unfold", "chunk", "split", "at"]
    if rank > 1:
        kinds += ["transpose", "permute", "diagonal", "movedim", "squeeze"]
    kind = draw.choice(kinds)
    if kind == "select":
        i = draw.randrange(-n, n)
        return kind, [d, i], x.select(d, i)
    if kind == "narrow":
        s = draw.randrange(n)
        m = draw.randrange(1, n - s + 1)
        return kind, [d, s, m], x.narrow(d, s, m)
    if kind == "slice":
        s, step = draw.randrange(n), draw.choice([1, 2, 3])
        at = [slice(None)] * rank
        at[d] = slice(s, n, step)
        return kind, [d, s, n, step], x[tuple(at)]
    if kind == "expand":
        if n != 1:
            return "detach", [], x.detach()
        to = list(x.shape)
        to[d] = 3
        return kind, to, x.expand(to)
    if kind == "unfold":
        size = draw.randrange(1, n + 1)
        step = draw.choice([size, size + 1])
        return kind, [d, size, step], x.unfold(d, size, step)
    if kind == "chunk":
        k = draw.choice([1, 2, 3])
        parts = x.chunk(k, d)
        i = draw.randrange(len(parts))
        return kind, [k, d, i], parts[i]
    if kind == "split":
        k = draw.randrange(1, n + 1)
        parts = x.split(k, d)
        i = draw.randrange(len(parts))
        return kind, [k, d, i], parts[i]
    if kind == "at":
        i = draw.randrange(n)
        return kind, [i], x[..., i % x.shape[-1]]
    if kind == "transpose":
        e = draw.randrange(rank)
        return kind, [d, e], x.transpose(d, e)
    if kind == "permute":
        p = list(range(rank))
        draw.shuffle(p)
        return kind, p, x.permute(p)
    if kind == "diagonal":
        e = (d + 1) % rank
        return kind, [d, e], x.diagonal(0, d, e)
    if kind == "movedim":
        return kind, [d, 0], x.movedim(d, 0)
    if kind == "squeeze":
        return kind, [d], x.squeeze(d)
    if kind == "unsqueeze":
        d = draw.randrange(rank + 1)
        return kind, [d], x.unsqueeze(d)
    if kind == "flatten":
        return kind, [], x.flatten()
    return "detach", [], x.detach()


def write(draw, x, y):
    """The name of a write, its numbers and a function that does it."""
    rank = x.dim()
    d = draw.randrange(rank) if rank else 0
    n = x.shape[d] if rank else 1
    v = draw.randrange(-4, 5)
    m = draw.randrange(-3, 4)
    kinds = ["add", "mul", "fill", "zero", "neg", "clamp", "masked_fill", "set_mask", "copy_sum", "sub_sum", "copy"]
    if rank:
        kinds += ["index_fill", "index_add", "index_copy", "index_put", "scatter", "scatter_add", "set_slice", "set_index", "cumsum"]
    if rank > 1:
        kinds += ["tril", "set_two"]
    # in place, too: the tensor itself gets another shape, and its views stay what they are
    kinds += ["unsqueeze_"] if rank < 4 else []
    kinds += ["transpose_", "swapaxes_", "squeeze_"] if rank > 1 else []
    kinds += ["t_"] if rank == 2 else []
    kinds += ["lt", "eq", "fill_diagonal"] if rank > 1 else ["lt", "eq"]
    kind = draw.choice(kinds)
    index = [draw.randrange(n) for _ in range(draw.choice([1, 2, 3]))]
    unique = sorted(set(index), key=index.index)

    def rows(at):
        shape = list(x.shape)
        shape[d] = len(at)
        count = torch.Size(shape).numel()
        return torch.arange(count, dtype=torch.float64).reshape(shape) + v

    def within(at):
        return torch.tensor(at).reshape([-1 if k == d else 1 for k in range(rank)]).expand([len(at) if k == d else s for k, s in enumerate(x.shape)])

    if kind == "add":
        return kind, [v], lambda: x.add_(v)
    if kind == "mul":
        return kind, [m], lambda: x.mul_(m)
    if kind == "fill":
        return kind, [v], lambda: x.fill_(v)
    if kind == "zero":
        return kind, [], lambda: x.zero_()
    if kind == "neg":
        return kind, [], lambda: x.neg_()
    if kind == "clamp":
        return kind, [-5, 5], lambda: x.clamp_(-5, 5)
    if kind == "masked_fill":
        return kind, [m, v], lambda: x.masked_fill_(x > m, v)
    if kind == "set_mask":
        return kind, [m, v], lambda: x.__setitem__(x < m, v)
    if kind == "copy_sum":
        return kind, [], lambda: x.copy_(y.sum().clamp(-50, 50))
    if kind == "sub_sum":
        return kind, [], lambda: x.sub_(y.sum().clamp(-50, 50))
    if kind == "copy":
        return kind, [], lambda: x.copy_(y)
    if kind == "unsqueeze_":
        return kind, [d], lambda: x.unsqueeze_(d)
    if kind == "transpose_":
        e = draw.randrange(rank)
        return kind, [d, e], lambda: x.transpose_(d, e)
    if kind == "swapaxes_":
        e = draw.randrange(rank)
        return kind, [d, e], lambda: x.swapaxes_(d, e)
    if kind == "squeeze_":
        return kind, [d], lambda: x.squeeze_(d)
    if kind == "t_":
        return kind, [], lambda: x.t_()
    if kind == "lt":
        return kind, [v], lambda: x.lt_(v)
    if kind == "eq":
        return kind, [v], lambda: x.eq_(v)
    if kind == "fill_diagonal":
        if rank > 2 and len(set(x.shape)) > 1:
            return "zero", [], lambda: x.zero_()
        return kind, [v], lambda: x.fill_diagonal_(v)
    if kind == "tril":
        return kind, [0], lambda: x.tril_(0)
    if kind == "cumsum":
        return kind, [d], lambda: x.cumsum_(d)
    if kind == "index_fill":
        return kind, [d, v, *index], lambda: x.index_fill_(d, torch.tensor(index), v)
    if kind == "index_add":
        return kind, [d, v, *index], lambda: x.index_add_(d, torch.tensor(index), rows(index))
    if kind == "index_copy":
        return kind, [d, v, *unique], lambda: x.index_copy_(d, torch.tensor(unique), rows(unique))
    if kind == "scatter":
        return kind, [d, v, *unique], lambda: x.scatter_(d, within(unique), rows(unique))
    if kind == "scatter_add":
        return kind, [d, v, *index], lambda: x.scatter_add_(d, within(index), rows(index))
    if kind == "index_put":
        first = [draw.randrange(x.shape[0]) for _ in range(3)]
        return kind, [v, *first], lambda: x.index_put_((torch.tensor(first),), torch.tensor(float(v), dtype=torch.float64), accumulate=True)
    if kind == "set_slice":
        last = x.shape[-1]
        s = draw.randrange(last)
        return kind, [s, last, v], lambda: x.__setitem__((Ellipsis, slice(s, last)), v)
    if kind == "set_two":
        i, j = draw.randrange(x.shape[0]), draw.randrange(x.shape[-1])
        return kind, [i, j, v], lambda: x.__setitem__((i, Ellipsis, j), v)
    i = [draw.randrange(x.shape[0]) for _ in range(2)]
    return "set_index", [v, *i], lambda: x.__setitem__((torch.tensor(i),), v)


def program(draw):
    tensors, acts = [], []
    for shape in ([3, 4], [2, 3, 2], [6]):
        count = torch.Size(shape).numel()
        tensors.append((torch.arange(count, dtype=torch.float64) % 7 - 3).reshape(shape).clone())
    for _ in range(24):
        at, other = draw.randrange(len(tensors)), draw.randrange(len(tensors))
        x, y = tensors[at], tensors[other]
        if draw.random() < 0.4 and len(tensors) < 14:
            kind, numbers, made = view(draw, x)
            if made.numel() == 0 or made.dim() > 4 or made.numel() > 60:
                continue
            if kind != "detach" and made.shape == x.shape and made.stride() == x.stride():
                # a view of all there is, in its order: here the tensor itself, which shapes in place tell apart
                continue
            acts.append({"view": kind, "of": at, "numbers": numbers, "shape": list(made.shape)})
            tensors.append(made)
            continue
        kind, numbers, act = write(draw, x, y)
        entry = {"write": kind, "to": at, "from": other, "numbers": numbers}
        before = [t.clone() for t in tensors]
        try:
            act()
        except RuntimeError as e:
            # refused half way or at once: nothing may have changed
            if any(not torch.equal(a, b) for a, b in zip(before, tensors)):
                break
            entry["refused"] = str(e).splitlines()[0]
            if "some elements of the input tensor" in entry["refused"]:
                # memory that is read while it is written: here a value is read first
                continue
        if any(t.abs().max() > 1e6 for t in tensors):
            break
        acts.append(entry)
    return {"acts": acts, "values": [t.flatten().to(torch.int64).tolist() for t in tensors]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=HERE / "runtime/tests/torch/views.json")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--programs", type=int, default=6)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    all_of_them = [program(draw) for _ in range(options.programs)]
    lines = ",\n".join(json.dumps(p, separators=(",", ":")) for p in all_of_them)
    options.file.write_text(f"[\n{lines}\n]\n")
    refused = sum("refused" in a for p in all_of_them for a in p["acts"])
    print(f"{len(all_of_them)} programs, {sum(len(p['acts']) for p in all_of_them)} acts, {refused} refused")


if __name__ == "__main__":
    main()
