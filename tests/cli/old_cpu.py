#!/usr/bin/env python3
"""The program starts on old x86-64 CPUs (emulated by qemu-user) and gives the answer of this machine, bit for bit.

Nehalem has no AVX at all, Haswell has AVX2: the set that the program reports must be the one such a CPU allows.
Standard library only.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
from checks import Kvasir, guarded  # noqa: E402

CPUS = (("Nehalem", "scalar"), ("Haswell,-rtm,-hle", "avx2"))
PROMPT = "The capital of France is"
STEPS = 4


def main(checks, arguments):
    command = ["generate", arguments.model, "--prompt", PROMPT, "--raw", "--temperature", 0, "--max-tokens", STEPS,
               "--threads", 2, "--ctx", 64, "--json"]
    here = Kvasir(arguments.kvasir).json(*command)
    checks.equal(len(here["tokens"]), STEPS, "tokens on this machine")
    for cpu, isa in CPUS:
        there = Kvasir(arguments.kvasir, wrapper=["qemu-x86_64", "-cpu", cpu]).json(*command)
        checks.equal(there["statistics"]["isa"], isa, f"{cpu}: instruction set")
        checks.equal(there["tokens"], here["tokens"], f"{cpu}: tokens")
        checks.equal(there["statistics"]["logits_hash"], here["statistics"]["logits_hash"], f"{cpu}: hash of the logits")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvasir", required=True, help="the program")
    parser.add_argument("--model", default="smollm2-135m-instruct", help="path or name of a model")
    parsed = parser.parse_args()
    sys.exit(guarded(lambda checks: main(checks, parsed)))
