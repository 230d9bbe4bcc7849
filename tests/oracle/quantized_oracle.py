#!/usr/bin/env python3
"""Weights and products as the `gguf` package and NumPy's float64 give them.

  quantized_oracle.py                 writes ../kernels/data/quantized.txt, which the C++ tests read

Needs: gguf, numpy. Bytes and numbers are hexadecimal, little endian. Lines of the file:

  block FORMAT BYTES VALUES           one block (or 32 dense weights) and its dequantised float32
  product FORMAT M N K WEIGHTS X Y S  weights [N, K] in blocks, activations [M, K] float32, and for
                                      [M, N] the exact product and the sum of its terms' magnitudes,
                                      both float64, with x quantised to int8 a group of 32
"""
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "kernels" / "data" / "quantized.txt"
# type, bytes of a block (or of 32 dense weights), where its halves are
FORMATS = {"f32": (Type.F32, 128, []), "f16": (Type.F16, 64, []), "bf16": (Type.BF16, 64, []),
           "q4_0": (Type.Q4_0, 18, [0]), "q4_1": (Type.Q4_1, 20, [0, 2]), "q5_0": (Type.Q5_0, 22, [0]),
           "q5_1": (Type.Q5_1, 24, [0, 2]), "q8_0": (Type.Q8_0, 34, [0]), "iq4_nl": (Type.IQ4_NL, 18, [0]),
           "mxfp4": (Type.MXFP4, 17, []), "q2_k": (Type.Q2_K, 84, [80, 82]), "q3_k": (Type.Q3_K, 110, [108]),
           "q4_k": (Type.Q4_K, 144, [0, 2]), "q5_k": (Type.Q5_K, 176, [0, 2]), "q6_k": (Type.Q6_K, 210, [208]),
           "iq4_xs": (Type.IQ4_XS, 136, [0]), "iq2_xxs": (Type.IQ2_XXS, 66, [0]), "iq2_xs": (Type.IQ2_XS, 74, [0]),
           "iq2_s": (Type.IQ2_S, 82, [0]), "iq3_xxs": (Type.IQ3_XXS, 98, [0]), "iq3_s": (Type.IQ3_S, 110, [0]),
           "iq1_s": (Type.IQ1_S, 50, [0]), "iq1_m": (Type.IQ1_M, 56, []), "tq1_0": (Type.TQ1_0, 54, [52]),
           "tq2_0": (Type.TQ2_0, 66, [64])}
# As halves: +-0, the smallest subnormal, the largest subnormal, the smallest normal, one, the largest.
EXTREME = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF]


def finite_halves(random, count):
    halves = random.integers(0, 65536, 4 * count + 8, dtype=np.uint16)
    return halves[(halves & 0x7C00) != 0x7C00][:count]


def with_scales(name, block, halves):
    """The block with these numbers as its scales (an exponent for MXFP4)."""
    block = bytearray(block)
    for place, half in zip(FORMATS[name][2], halves):
        block[place:place + 2] = int(half).to_bytes(2, "little")
    if name == "mxfp4":
        block[0] = int(halves[0]) % 255
    if name == "iq1_m":
        for i in range(4):
            block[49 + 2 * i] = block[49 + 2 * i] & 15 | (int(halves[0]) >> (4 * i) & 15) << 4
    return bytes(block)


def blocks_of(name, random):
    """Blocks with random, all-zero and extreme contents, as bytes."""
    _, size, places = FORMATS[name]
    if name == "f32":
        bits = random.integers(0, 1 << 32, 32 * 8, dtype=np.uint32)
        bits[:6] = [0, 0x80000000, 1, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF]
        return [b.tobytes() for b in np.where((bits & 0x7F800000) == 0x7F800000, 0, bits).astype(np.uint32).reshape(8, 32)]
    if name == "f16":
        return [np.array(EXTREME * 4, np.uint16).tobytes()] + [finite_halves(random, 32).tobytes() for _ in range(12)]
    if name == "bf16":
        bits = random.integers(0, 65536, 32 * 8, dtype=np.uint16)
        bits[:6] = [0, 0x8000, 1, 0x7F, 0x7F7F, 0xFF7F]
        return [b.tobytes() for b in np.where((bits & 0x7F80) == 0x7F80, 0, bits).astype(np.uint16).reshape(8, 32)]
    fills = [bytes(size), b"\xff" * size, b"\x80" * size, b"\x7f" * size]
    large = size > 40  # fewer of those: the file is kept in the repository
    blocks = [bytes(size)]
    for a in EXTREME[1::3] if large else EXTREME:
        for b in (EXTREME[::3] if large else EXTREME) if len(places) == 2 else [0]:
            contents = fills[len(blocks) % 4] if len(blocks) % 2 else random.bytes(size)
            blocks.append(with_scales(name, contents, [a, b]))
    for _ in range(7 if large else 24):
        blocks.append(with_scales(name, random.bytes(size), finite_halves(random, 2)))
    return blocks


def product_line(name, random, m, n, k):
    kind, size, places = FORMATS[name]
    n_scales = len(places)
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
            element = {"f32": np.float32, "f16": np.float16, "bf16": np.uint8}.get(name, np.uint8)
            values = dequantize(np.frombuffer(block, element).reshape(1, -1), kind).astype(np.float32)
            lines.append(f"block {name} {block.hex()} {values.tobytes().hex()}")
    for name in ("q4_1", "q8_0"):
        lines.append(product_line(name, random, 3, 18, 160))
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text("\n".join(lines) + "\n")
    print(f"{OUTPUT}: {len(lines) - 1} lines")


if __name__ == "__main__":
    main()
