#!/usr/bin/env python3
"""`kvasir logits` against Hugging Face on tiny random Llama models (make_tiny_llama.py).

The reference is LlamaForCausalLM, eager attention, float32, one full forward pass without a cache, on the
weights as they stand in the file (dequantised). For the long prompt it computes in float64 (gguf_llama.in_double),
because there its own float32 angles are 1.6e-4 off.
- F32 and F16 matrices: |difference| <= 1e-4 at every position and for every token id, KV in float32.
- F32 with f16 KV: the tolerance follows from the rounding of keys and values, see F16_KV_TOLERANCE.
- Quantised matrices take activations quantised to int8 in groups of 32, and so does the reference
  (quantizing_inputs). Where both choose the same codes, rows agree to 1e-4 too. An activation next to the middle
  between two codes may round either way, as float32 sums of another order decide; from there on the rows differ, by
  less than what quantising activations changes at all. So: a good part of the rows within 1e-4, and all of them
  within a share of that change.
- Prefill chunks, threads and the ragged batch must not change a bit.
"""
import argparse
import random
import sys
import tempfile
from pathlib import Path

import numpy

import gguf_llama
from checks import Kvasir, KvasirFailed, guarded
from make_tiny_llama import VARIANTS, make

TOLERANCE = 1e-4
# Keys and values rounded to 11 bits, 2^-11 relative each. Attention's output is a mean of values, so its relative
# error is about 2^-11 from the values and |score| * 2^-11 from the keys, |score| <= 8 here; two layers and logits
# of magnitude <= 8: 2 * 8 * 9 * 2^-11 = 0.07 at worst. Rounding errors are of both signs and hardly add up.
F16_KV_TOLERANCE = 0.02
LENGTHS = (1, 5, 32, 33, 70, 100)  # around the block of 32 positions, and more than two blocks
LONG = 1100                         # past 1,024 keys, where attention merges partials
CHUNKS = (1, 7, 32, 512)
NOISE_SHARE = 0.6   # of the change that quantised activations make, largest and mean square
EXACT_SHARE = 0.3   # of the rows; measured 0.7 to 1.0. A wrong code, scale or sum leaves none


def random_lists(lengths, seed):
    source = random.Random(seed)
    return [[source.randrange(256) for _ in range(n)] for n in lengths]


def largest(a, b):
    """Largest |difference|; NaN where anything is not finite or the shapes differ."""
    if a.shape != b.shape or not (numpy.isfinite(a).all() and numpy.isfinite(b).all()):
        return float("nan")
    return float(numpy.abs(a - b).max())


def check_against_reference(checks, kvasir, path, variant, lists, in_double=False):
    model = gguf_llama.read_gguf(path)
    if variant.matrix_type == "F32":
        own, made = model.state_dict(), make(variant).state_dict()
        checks.that(all((own[k] == made[k]).all() for k in made), f"{variant.name}: the file holds the model's weights")
    if in_double:
        model = gguf_llama.in_double(model)
    answers = kvasir.logits(path, lists, "--kv-type", "f32")
    exact_rows = 0
    for ids, answer in zip(lists, answers):
        label = f"{variant.name}: {len(ids)} tokens"
        reference = gguf_llama.logits_of(model, ids)
        if variant.matrix_type in ("F32", "F16"):
            checks.at_most(largest(answer, reference), TOLERANCE, f"{label}: largest difference")
        else:
            exact_rows += check_quantized(checks, label, answer, model, ids, reference)
    if variant.matrix_type not in ("F32", "F16") and not in_double:
        rows = sum(map(len, lists))
        checks.at_least(exact_rows / rows, EXACT_SHARE, f"{variant.name}: share of {rows} rows within {TOLERANCE}")
    return answers


def check_quantized(checks, label, answer, model, ids, plain):
    """How many rows are within TOLERANCE of the reference whose activations are quantised too."""
    with gguf_llama.quantizing_inputs(model):
        expected = gguf_llama.logits_of(model, ids)
    if not checks.equal(answer.shape, expected.shape, f"{label}: shape"):
        return 0
    noise, error = expected - plain, answer - expected
    checks.at_most(largest(answer, expected), NOISE_SHARE * largest(expected, plain), f"{label}: largest difference")
    checks.at_most(float(error.std()), NOISE_SHARE * float(noise.std()), f"{label}: root mean square difference")
    return int((numpy.abs(error).max(-1) <= TOLERANCE).sum())


def check_same_bits(checks, kvasir, path, variant, lists, answers):
    """Chunks, threads and company: bit for bit what the ragged batch gave."""
    for options in [("--prefill-chunk", c) for c in CHUNKS] + [("--threads", n) for n in (1, 2, 4)]:
        again = kvasir.logits(path, lists, "--kv-type", "f32", *options)
        same = all(a.tobytes() == b.tobytes() for a, b in zip(again, answers))
        checks.that(same, f"{variant.name}: same bits with {' '.join(map(str, options))}")
    alone = [kvasir.logits(path, [ids], "--kv-type", "f32")[0] for ids in lists]
    checks.that(all(a.tobytes() == b.tobytes() for a, b in zip(alone, answers)), f"{variant.name}: same bits one by one")


def check_f16_kv(checks, kvasir, path, variant, lists, answers):
    model = gguf_llama.read_gguf(path)
    halves = kvasir.logits(path, lists, "--kv-type", "f16")
    for ids, answer, full in zip(lists, halves, answers):
        label = f"{variant.name}, f16 KV: {len(ids)} tokens"
        checks.at_most(largest(answer, gguf_llama.logits_of(model, ids)), F16_KV_TOLERANCE, f"{label}: largest difference")
        if len(ids) > 1:  # of one token, the value alone is rounded; of more, the types must show
            checks.that(answer.tobytes() != full.tobytes(), f"{label}: f16 is not f32")


def check_forms(checks, kvasir, path, ids):
    """A bare list writes the file as named; --last is the last row; bad ids are refused by name."""
    import json
    with tempfile.TemporaryDirectory() as folder:
        tokens, output = Path(folder) / "ids.json", Path(folder) / "out.npy"
        tokens.write_text(json.dumps(ids))
        kvasir.run("logits", path, "--tokens", tokens, "--output", output, "--kv-type", "f32")
        whole = numpy.load(output)
        checks.equal((whole.shape, str(whole.dtype)), ((len(ids), 256), "float32"), "logits: shape and type")
        kvasir.run("logits", path, "--tokens", tokens, "--output", output, "--kv-type", "f32", "--last")
        last = numpy.load(output).reshape(-1)
        checks.that(last.tobytes() == whole[-1].tobytes(), "logits --last: the last row, bit for bit")
        for bad, word in (([1, 256], "256"), ([1, -1], "-1"), ("no list", ""), ([], "")):
            tokens.write_text(json.dumps(bad))
            try:
                kvasir.run("logits", path, "--tokens", tokens, "--output", output)
                checks.that(False, f"logits of {bad!r} must be refused")
            except KvasirFailed as error:
                checks.that("exit 1:" in str(error) and "kvasir: error:" in str(error) and word in str(error),
                            f"logits of {bad!r}: {error}")


def main(checks, arguments):
    kvasir = Kvasir(arguments.kvasir)
    lists = random_lists(LENGTHS, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        for variant in VARIANTS:
            path = Path(folder) / f"{variant.name}.gguf"
            gguf_llama.write_gguf(make(variant), path, variant.matrix_type)
            answers = check_against_reference(checks, kvasir, path, variant, lists)
            if variant.name in ("plain", "odd_sizes", "q4_1"):
                check_same_bits(checks, kvasir, path, variant, lists, answers)
            if variant.name == "plain":
                check_f16_kv(checks, kvasir, path, variant, lists, answers)
                check_forms(checks, kvasir, path, lists[2])
            if variant.name in ("plain", "wide_heads", "f16", "q8_0"):
                check_against_reference(checks, kvasir, path, variant, random_lists([LONG, 3], seed=2), in_double=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvasir", required=True, help="the program")
    parsed = parser.parse_args()
    sys.exit(guarded(lambda checks: main(checks, parsed)))
