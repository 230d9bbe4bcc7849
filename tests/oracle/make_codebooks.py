#!/usr/bin/env python3
"""Writes cpu_kernels/formats/codebooks.inc: the codebooks of GGML's IQ types as the `gguf` package has them.

  make_codebooks.py

A codebook is a list of vectors whose elements come from a short list of values: an entry holds the elements' places
in that list, the first in the lowest bits, 2 bits each (IQ1, IQ2) or 3 (IQ3). Needs: gguf, numpy.
"""
import pathlib

import numpy as np
from gguf import quants

OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "cpu_kernels" / "formats" / "codebooks.inc"
BOOKS = {"kIq1": (quants.IQ1_S, 2), "kIq2Xxs": (quants.IQ2_XXS, 2), "kIq2Xs": (quants.IQ2_XS, 2),
         "kIq2S": (quants.IQ2_S, 2), "kIq3Xxs": (quants.IQ3_XXS, 3), "kIq3S": (quants.IQ3_S, 3)}

lines = ["// Made by tests/oracle/make_codebooks.py from the gguf package; see there for the coding."]
for name, (kind, bits) in BOOKS.items():
    kind.init_grid()
    grid = np.asarray(kind.grid).astype(int).reshape(-1, kind.grid_shape[1])
    places = np.array([[list(kind.grid_map).index(v) for v in row] for row in grid])
    entries = (places << (bits * np.arange(places.shape[1]))).sum(axis=1)
    lines.append(f"inline constexpr uint16_t {name}Places[{len(entries)}] = {{")
    for at in range(0, len(entries), 14):
        lines.append("    " + " ".join(f"{e}," for e in entries[at:at + 14]))
    lines.append("};")
OUTPUT.write_text("\n".join(lines) + "\n")
