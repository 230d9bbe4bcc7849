#!/usr/bin/env python3
"""One prompt, one answer: threads, prefill chunks and instruction sets change no bit.

A prompt of 300 tokens, then 40 greedy steps; the hash of the last logits and the tokens must be those of the
first run. So that equal bits mean something, what the program reports (threads, sizes of the evaluated chunks,
instruction set, kernels called) must really be what was asked for. Standard library only.
"""
import argparse
import sys

from checks import Kvasir, guarded

PROMPT_TOKENS = 300
STEPS = 40
THREADS = (1, 2, 4)
CHUNKS = (1, 7, 32, 512)
TEXT = """The harbour of the old town lies between two hills. Every morning the boats come back before the sun has
reached the quay, and the baker's children run down the steps to count them. On the first day of spring there were
%d boats, %d of them painted blue, and the wind came from the north-west at %d knots. """


def available_isas(system):
    """Names of the instruction sets that `kvasir system --json` says this CPU has."""
    def lists(value):
        if isinstance(value, dict):
            for item in value.values():
                yield from lists(item)
        elif isinstance(value, list):
            if value and all(isinstance(v, dict) and "name" in v for v in value):
                yield value
            for item in value:
                yield from lists(item)
    for rows in lists(system):
        if any(row["name"] == "scalar" for row in rows):
            return [row["name"] for row in rows if row.get("available")]
    raise ValueError("`kvasir system --json` lists no instruction sets with name and available")


def prompt_of(kvasir, model):
    """A text of exactly PROMPT_TOKENS tokens: words are added while it is too short, then the search is by letters."""
    words = "".join(TEXT % (7 * i, 3 * i, 11 + i) for i in range(1, 12)).split(" ")
    low, high = 1, len(words)
    while low < high:  # the fewest words with at least as many tokens
        middle = (low + high) // 2
        if len(kvasir.tokens(model, " ".join(words[:middle]))) < PROMPT_TOKENS:
            low = middle + 1
        else:
            high = middle
    text = " ".join(words[:low])
    while len(kvasir.tokens(model, text)) > PROMPT_TOKENS:
        text = text[:-1]
    return text


def generate(kvasir, model, prompt, threads, chunk, isa=None, kv_type="auto"):
    options = ["--raw", "--temperature", 0, "--max-tokens", STEPS, "--threads", threads, "--prefill-chunk", chunk,
               "--kv-type", kv_type, "--json"]
    environment = {"KVASIR_ISA": isa} if isa else {}
    return kvasir.json("generate", model, "--prompt", prompt, *options, environment=environment)


def check_report(checks, label, statistics, n_prompt, threads, chunk, isa):
    """What was asked for was done."""
    expected = [chunk] * (n_prompt // chunk) + ([n_prompt % chunk] if n_prompt % chunk else [])
    checks.equal(statistics["threads"], threads, f"{label}: threads")
    checks.equal(statistics["prefill_chunks"], expected, f"{label}: chunks evaluated")
    if isa:
        checks.equal(statistics["isa"], isa, f"{label}: instruction set")
    checks.that(statistics["kernels"] and all(n > 0 for n in statistics["kernels"].values()),
                f"{label}: kernels called {statistics['kernels']}")


def main(checks, arguments):
    kvasir = Kvasir(arguments.kvasir)
    model = arguments.model
    isas = available_isas(kvasir.json("system", "--json"))
    checks.that("scalar" in isas, f"instruction sets of this machine: {', '.join(isas)}")
    prompt = prompt_of(kvasir, model)
    n_prompt = len(kvasir.tokens(model, prompt))
    checks.equal(n_prompt, PROMPT_TOKENS, "tokens of the prompt")
    for kv_type in ("f16", "f32"):
        runs = [(threads, 512, None) for threads in THREADS] + [(2, chunk, None) for chunk in CHUNKS[:-1]]
        runs += [(2, 64, isa) for isa in isas] if kv_type == "f16" else []
        first = None
        for threads, chunk, isa in runs:
            label = f"{kv_type} KV, {threads} threads, chunks of {chunk}, {isa or 'default'}"
            answer = generate(kvasir, model, prompt, threads, chunk, isa, kv_type)
            statistics = answer["statistics"]
            check_report(checks, label, statistics, n_prompt, threads, chunk, isa)
            result = (statistics["logits_hash"], answer["tokens"])
            if first is None:
                first = result
                checks.equal(len(answer["tokens"]), STEPS, f"{label}: tokens")
            else:
                checks.equal(result[0], first[0], f"{label}: hash of the last logits")
                checks.equal(result[1], first[1], f"{label}: tokens")
        print(f"figure: {kv_type} KV: {len(runs)} runs, one hash {first[0]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvasir", required=True, help="the program")
    parser.add_argument("--model", required=True, help="path or name of a model")
    parsed = parser.parse_args()
    sys.exit(guarded(lambda checks: main(checks, parsed)))
