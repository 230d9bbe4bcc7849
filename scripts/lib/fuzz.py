#!/usr/bin/env python3
"""Runs every libFuzzer program of a build folder from its stored corpus, two at a time.

The corpus of fuzz_NAME is tests/fuzz/NAME, read only: what a run finds goes to build/fuzz/NAME, and an input
that fails to build/fuzz/NAME/crash-*, ready to be added to the corpus with its repair. One check a program.
"""
import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_INPUT_BYTES = 1 << 16
SLOW_INPUT_S = 10
MEMORY_MB = 2048


def run(program, seconds):
    name = program.name.removeprefix("fuzz_")
    corpus = ROOT / "tests" / "fuzz" / name
    found = ROOT / "build" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    stored = sum(1 for p in corpus.glob("*") if p.is_file()) if corpus.is_dir() else 0
    if not stored:
        return name, False, f"{name}: no stored corpus in tests/fuzz/{name}"
    command = [program, f"-max_total_time={seconds}", f"-timeout={SLOW_INPUT_S}", f"-rss_limit_mb={MEMORY_MB}",
               f"-max_len={MAX_INPUT_BYTES}", f"-artifact_prefix={found}/", "-print_final_stats=1", found, corpus]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds * 2 + 120)
        output, status = done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired:
        return name, False, f"{name}: did not end by itself"
    runs = re.search(r"stat::number_of_executed_units: *(\d+)", output)
    executed = int(runs[1]) if runs else 0
    good = status == 0 and executed > stored  # it read the corpus and tried inputs of its own
    end = "" if good else "\n" + "\n".join(output.splitlines()[-60:])
    return name, good, f"{name}: {executed} inputs from a corpus of {stored}, exit status {status}{end}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=int, default=60, help="time of each program")
    arguments = parser.parse_args()
    programs = sorted(p.resolve() for p in arguments.build.rglob("fuzz_*") if p.is_file() and os.access(p, os.X_OK))
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        results = list(pool.map(lambda program: run(program, arguments.seconds), programs))
    for _, good, text in results:
        print(("figure: " if good else "") + text)
    if not results:
        print(f"no fuzz_* programs in {arguments.build}: configured with -Dfuzz=true?")
    failed = sum(not good for _, good, _ in results) + (not results)
    print(f"checks: {len(results) - failed if results else 0} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
