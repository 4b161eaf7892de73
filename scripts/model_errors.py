#!/usr/bin/env python3
"""The table of docs/models.md, "Equal to PyTorch", from what the tests found:

    XLAZY_ERRORS=errors.txt cargo test --release -p xlazy --test models && scripts/model_errors.py errors.txt
"""

import sys
from collections import defaultdict

COLUMNS = {
    "outputs": ("out",),
    "loss": ("loss",),
    "gradients": ("grad",),
    "after SGD": ("sgd1", "buf1"),
    "after AdamW": ("adamw3", "adamw3_losses"),
}

worst = defaultdict(dict)
for line in open(sys.argv[1]):
    model, kind, apart, size = line.split()
    for column, kinds in COLUMNS.items():
        if kind in kinds:
            relative = float(apart) / float(size) if float(size) else float(apart)
            worst[model][column] = max(relative, worst[model].get(column, 0.0))

print("| model | " + " | ".join(COLUMNS) + " |")
print("|---|" + "---|" * len(COLUMNS))
for model in sorted(worst):
    cells = (f"{worst[model][c]:.1e}" if c in worst[model] else "–" for c in COLUMNS)
    print(f"| `{model}` | " + " | ".join(cells) + " |")
