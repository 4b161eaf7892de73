#!/usr/bin/env python3
"""Writes kernel/src/eval/tell/torch.txt: what torch's functions, methods and classes take, by name and with what they take where nothing is given.

Run by hand, beside an unpacked wheel of torch, of which nothing is imported:

    python3 -m pip download --no-deps --only-binary=:all: --platform macosx_11_0_arm64 torch==2.9.1
    python3 -m zipfile -e torch-*.whl WHEEL
    python3 scripts/torch-names.py WHEEL

Signatures are those that torch's documentation has above each name, where there is one, and otherwise those of its code. What says how
and where something is computed, and what is deprecated, is left out.
"""
import ast
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
IDLE = {
    "out", "device", "layout", "pin_memory", "memory_format", "generator", "size_average", "reduce", "inplace", "foreach", "fused",
    "capturable", "differentiable", "non_blocking", "async", "sparse_grad", "sparse", "verbose", "stable", "_stacklevel", "cudnn_enable", "names", "timeout",
    "worker_init_fn", "multiprocessing_context", "persistent_workers", "pin_memory_device", "prefetch_factor", "in_order", "create_graph",
}
# what is documented where the code says only `*args`
BY_HAND = [
    "torch.unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None)",
    "torch.tensor(data, dtype=None, requires_grad=False)",
    "torch.utils.data.TensorDataset(*tensors)",
]


def parameters(arguments: ast.arguments, method: bool) -> list[str]:
    every = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(every) - len(arguments.defaults)) + list(arguments.defaults)
    out = [(a.arg, d) for a, d in zip(every, defaults)][1 if method else 0 :]
    rest = [(a.arg, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    named = lambda all: [n if d is None else f"{n}={ast.unparse(d)}" for n, d in all if n not in IDLE]
    star = [f"*{arguments.vararg.arg}"] if arguments.vararg else ["*"] if named(rest) else []
    return named(out) + star + named(rest)


def documented(doc: str, name: str) -> list[list[str]]:
    """The calls at the head of a documentation."""
    out = []
    short = name.rsplit(".", 1)[-1]
    for call in re.finditer(rf"^(?:.*r\"\"\")?[ \t]*(?:\.\. (?:function|method):: )?((?:[\w.]+\.)?{re.escape(short)}\(([^()]*(?:\([^()]*\)[^()]*)*)\))(?: ?->.*)?:?$", doc, re.M):
        text = re.sub(r"(\w+) \(.*?\)", r"\1", call.group(2))
        try:
            parsed = ast.parse(f"def f({text}): pass").body[0]
        except SyntaxError:
            continue
        out.append(parameters(parsed.args, False))
    return out


def functions(body, of, out, method=False):
    for node in body:
        if isinstance(node, ast.If):
            functions(node.body + node.orelse, of, out, method)
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        name = f"{of}.{node.name}"
        said = documented(ast.get_docstring(node) or "", name)
        code = parameters(node.args, method)
        receiver = method and not any(getattr(d, "id", "") == "staticmethod" for d in node.decorator_list)
        # Where it is documented as None, the code knows what that is.
        known = {p.split("=")[0]: p for p in code if "=" in p and not p.endswith("=None")}
        for one in out.get(name, []):
            one[:] = [known.get(p.split("=")[0], p) if p.endswith("=None") else p for p in one]
        for one in said or [parameters(node.args, receiver)]:
            out.setdefault(name, []).append([known.get(p.split("=")[0], p) if p.endswith("=None") else p for p in one])


def classes(path, of, out):
    tree = ast.parse(path.read_text())
    found = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        doc = (ast.get_docstring(node) or "")[:300]
        all = [p for p in (parameters(i.args, True) for i in inits) if p != ["*args"]] or documented(doc, node.name)
        bases = [getattr(b, "id", getattr(b, "attr", "")) for b in node.bases]
        found[node.name] = (all, bases)


    def taken(name):
        all, bases = found.get(name, ([], []))
        return all or next((t for t in map(taken, bases) if t), [])

    for name in found:
        if not name.startswith("_"):
            out.setdefault(f"{of}.{name}", []).extend(taken(name))


def main():
    torch = pathlib.Path(sys.argv[1]) / "torch"
    read = lambda path: ast.parse((torch / path).read_text())
    out: dict[str, list[list[str]]] = {}
    functions(read("_C/_VariableFunctions.pyi").body, "torch", out)
    functions(read("functional.py").body, "torch", out)
    base = next(n for n in read("_C/__init__.pyi").body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    functions(base.body, "Tensor", out, method=True)
    own = next(n for n in read("_tensor.py").body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    functions(own.body, "Tensor", out, method=True)
    functions(read("nn/functional.py").body, "nn.functional", out)
    functions(read("nn/init.py").body, "nn.init", out)
    for module in ["linalg", "special", "fft"]:
        text = (torch / module / "__init__.py").read_text()
        for name in set(re.findall(rf"^(?:{module}|torch\.{module})\.(\w+)\(", text, re.M)) | set(re.findall(r"^(\w+)\(.*\) -> ", text, re.M)):
            out.setdefault(f"{module}.{name}", []).extend(documented(text, f"{module}.{name}"))
    text = (torch / "nn/functional.py").read_text()
    for name in set(re.findall(r"^(\w+) = _add_docstr\(", text, re.M)):
        out.setdefault(f"nn.functional.{name}", []).extend(documented(text, name))
    for file in sorted((torch / "nn/modules").glob("*.py")):
        classes(file, "nn", out)
    for file in sorted((torch / "optim").glob("*.py")):
        classes(file, "optim.lr_scheduler" if file.stem == "lr_scheduler" else "optim", out)
    for file in ["dataloader", "dataset", "sampler"]:
        classes(torch / f"utils/data/{file}.py", "utils.data", out)
    functions(read("utils/data/dataset.py").body, "utils.data", out)
    for file in (torch / "nn/utils").glob("*.py"):
        functions(ast.parse(file.read_text()).body, "nn.utils", out)
    lines = set(BY_HAND)
    for name, overloads in out.items():
        lines |= {f"{name}({', '.join(p)})" for p in overloads if not any("." in x and "=" not in x or "=tensor(" in x for x in p)}
    # What a method takes that is a function's behind its first is known by that.
    lines -= {l for l in lines if l.startswith("Tensor.") and any(
        f"torch.{l[7:].replace('(', f'({first}, ', 1) if not l.endswith('()') else l[7:-1] + first + ')'}" in lines for first in ["input", "self", "x"])}
    (HERE / "kernel/src/eval/tell/torch.txt").write_text("\n".join(sorted(lines)) + "\n")


main()
