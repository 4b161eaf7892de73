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

# By model and column: the largest difference, and the largest value. A gradient that cancels out has no size of its own.
worst = defaultdict(dict)
for line in open(sys.argv[1]):
    model, kind, *both = line.split()
    for column, kinds in COLUMNS.items():
        if kind in kinds:
            so_far = worst[model].get(column, (0.0, 0.0))
            worst[model][column] = tuple(max(a, float(b)) for a, b in zip(so_far, both))

print("| model | " + " | ".join(COLUMNS) + " |")
print("|---|" + "---|" * len(COLUMNS))
for model in sorted(worst):
    cells = ("{:.0e}".format(worst[model][c][0] / worst[model][c][1]) if c in worst[model] else "–" for c in COLUMNS)
    print(f"| `{model}` | " + " | ".join(cells) + " |")
