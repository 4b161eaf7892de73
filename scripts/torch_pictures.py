#!/usr/bin/env python3
"""Writes what torchvision's transforms make of a small picture: runtime/tests/torch/pictures.json.

Run by hand: python3 -m pip install torch torchvision numpy && python3 scripts/torch_pictures.py
"""
import json
import pathlib
import numpy
import torchvision.transforms.functional as F
from PIL import Image

FILE = pathlib.Path(__file__).resolve().parent.parent / "runtime/tests/torch/pictures.json"
HEIGHT, WIDTH = 7, 9


def main():
    y, x, k = numpy.meshgrid(range(HEIGHT), range(WIDTH), range(3), indexing="ij")
    pixels = ((37 * x + 59 * y + 91 * k + 13 * x * y) % 256).astype(numpy.uint8)
    # some grey ones, and some of two equal channels
    pixels[2, :4] = pixels[2, :4, :1]
    pixels[3, 2:6, 1] = pixels[3, 2:6, 0]
    picture = Image.fromarray(pixels)
    calls = [["vertical_flip"], ["grayscale", 1], ["grayscale", 3], ["pad", 2, 9]]
    calls += [["adjust_brightness", f] for f in (0.0, 0.3, 1.0, 1.4)]
    calls += [["adjust_contrast", f] for f in (0.0, 0.5, 1.7)]
    calls += [["adjust_saturation", f] for f in (0.0, 0.2, 1.6)]
    calls += [["adjust_hue", f] for f in (-0.5, -0.35, 0.0, 0.2, 0.5)]
    calls += [["rotate", a] for a in (0.0, 12.5, 30.0, 90.0, 135.0, 180.0, -100.5, 270.0)]
    theirs = {"vertical_flip": "vflip", "grayscale": "to_grayscale"}
    cases = []
    for name, *given in calls:
        made = getattr(F, theirs.get(name, name))(picture, *given)
        cases.append({"call": name, "given": given, "pixels": numpy.array(made).flatten().tolist()})
    spec = {"width": WIDTH, "height": HEIGHT, "pixels": pixels.flatten().tolist(), "cases": cases}
    FILE.write_text(json.dumps(spec, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
