#!/usr/bin/env python3
"""Weights and products as the `gguf` package and NumPy's float64 give them.

  quantized_oracle.py                 writes ../kernels/data/quantized.txt, which the C++ tests read

Needs: gguf, numpy. Bytes and numbers are hexadecimal, little endian. Lines of the file:

  block FORMAT BYTES VALUES           one block (or 32 dense weights) and its 32 dequantised float32
  product FORMAT M N K WEIGHTS X Y S  weights [N, K] in blocks, activations [M, K] float32, and for
                                      [M, N] the exact product and the sum of its terms' magnitudes,
                                      both float64, with x quantised to int8 a group of 32
"""
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "kernels" / "data" / "quantized.txt"
FORMATS = {"f32": (Type.F32, 128, 0), "f16": (Type.F16, 64, 0), "q4_1": (Type.Q4_1, 20, 2),
           "q8_0": (Type.Q8_0, 34, 1)}  # type, bytes of 32 weights, leading halves
# As halves: +-0, the smallest subnormal, the largest subnormal, the smallest normal, one, the largest.
EXTREME = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF]


def finite_halves(random, count):
    halves = random.integers(0, 65536, 4 * count, dtype=np.uint16)
    return halves[(halves & 0x7C00) != 0x7C00][:count]


def blocks_of(name, random):
    """Blocks with random, all-zero and extreme contents, as bytes."""
    _, size, n_scales = FORMATS[name]
    if name == "f32":
        bits = random.integers(0, 1 << 32, 32 * 8, dtype=np.uint32)
        bits[:6] = [0, 0x80000000, 1, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF]
        return [b.tobytes() for b in np.where((bits & 0x7F800000) == 0x7F800000, 0, bits).astype(np.uint32).reshape(8, 32)]
    if name == "f16":
        return [np.array(EXTREME * 4, np.uint16).tobytes()] + [finite_halves(random, 32).tobytes() for _ in range(12)]
    codes = [bytes(size - 2 * n_scales), b"\xff" * (size - 2 * n_scales), b"\x80" * (size - 2 * n_scales),
             b"\x7f" * (size - 2 * n_scales)]
    blocks = [bytes(size)]
    for scales in [[a, b] for a in EXTREME for b in (EXTREME if n_scales == 2 else [0])]:
        code = codes[len(blocks) % 4] if len(blocks) % 2 else random.bytes(size - 2 * n_scales)
        blocks.append(np.array(scales[:n_scales], np.uint16).tobytes() + code)
    for _ in range(24):
        blocks.append(finite_halves(random, n_scales).tobytes() + random.bytes(size - 2 * n_scales))
    return blocks


def product_line(name, random, m, n, k):
    kind, size, n_scales = FORMATS[name]
    weights = b""
    for _ in range(n * k // 32):
        scales = (random.uniform(-1, 1, n_scales) * [0.1, 1][:n_scales]).astype(np.float16)
        weights += scales.tobytes() + random.bytes(size - 2 * n_scales)
    blocks = np.frombuffer(weights, np.uint8).reshape(n, k // 32, size)
    x = random.normal(0, 2, (m, k)).astype(np.float32)
    x[0, :32] = 0
    groups = x.reshape(m, k // 32, 32)
    largest = np.abs(groups).max(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    codes = np.rint(groups * inverse).astype(np.float64)
    scale = (largest / np.float32(127)).astype(np.float64)[..., 0]

    # Integer and float parts as float64, exact enough: products of 24-bit numbers, a few dozen terms.
    d = blocks[..., :2].copy().view(np.float16).astype(np.float64)[..., 0]
    if name == "q4_1":
        minimum = blocks[..., 2:4].copy().view(np.float16).astype(np.float64)[..., 0]
        nibbles = blocks[..., 4:]
        integers = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1).astype(np.float64)
    else:
        minimum = np.zeros_like(d)
        integers = blocks[..., 2:].view(np.int8).astype(np.float64)
    values = dequantize(blocks.reshape(n, -1), kind).astype(np.float64).reshape(n, k // 32, 32)
    read = d[..., None] * integers + minimum[..., None]
    assert np.allclose(read, values, rtol=1e-6, atol=1e-6), "this reading of the format is not gguf's"
    dots = np.einsum("ngk,mgk->mng", integers, codes)
    sums = codes.sum(axis=2)
    scaled = d[None] * scale[:, None] * dots
    offset = minimum[None] * (scale * sums)[:, None]
    y = (scaled + offset).sum(axis=2)
    magnitude = (np.abs(scaled) + np.abs(offset)).sum(axis=2)
    parts = [weights, x.tobytes(), y.astype("<f8").tobytes(), magnitude.astype("<f8").tobytes()]
    return " ".join(["product", name, str(m), str(n), str(k)] + [p.hex() for p in parts])


def main():
    random = np.random.Generator(np.random.PCG64(20))
    lines = ["# Written by tests/oracle/quantized_oracle.py, which says what the lines mean."]
    for name, (kind, size, _) in FORMATS.items():
        for block in blocks_of(name, random):
            values = dequantize(np.frombuffer(block, np.uint8).reshape(1, size) if size < 64
                                else np.frombuffer(block, np.float32 if name == "f32" else np.float16).reshape(1, 32),
                                kind).astype(np.float32)
            lines.append(f"block {name} {block.hex()} {values.tobytes().hex()}")
    for name in ("q4_1", "q8_0"):
        lines.append(product_line(name, random, 3, 18, 160))
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text("\n".join(lines) + "\n")
    print(f"{OUTPUT}: {len(lines) - 1} lines")


if __name__ == "__main__":
    main()
