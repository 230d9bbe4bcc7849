"""Counts the comparisons of an oracle script and closes with the line scripts/test reads.

Standard library only. Each comparison is one line: "ok" or "FAILED", what was compared and both values.
Lines that begin with "figure: " are shown in the summary of scripts/test: what documents quote.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


class Checks:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def that(self, condition, what):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
        print(f"{'ok' if condition else 'FAILED'}: {what}", flush=True)
        return bool(condition)

    def equal(self, actual, expected, what):
        shown = f"{what}: {short(actual)}"
        return self.that(actual == expected, shown if actual == expected else f"{shown}, expected {short(expected)}")

    def at_most(self, value, limit, what):
        """Also false for NaN."""
        return self.that(value <= limit, f"{what}: {value:.6g}, at most {limit:.6g}")

    def at_least(self, value, limit, what):
        return self.that(value >= limit, f"{what}: {value:.6g}, at least {limit:.6g}")

    def close(self):
        """The exit status: 1 when anything failed or nothing was compared."""
        print(f"checks: {self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def short(value):
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."


class KvasirFailed(Exception):
    """The program exited with an error: its message."""


class Kvasir:
    """The program under test."""

    def __init__(self, program, timeout_s=1100, wrapper=(), environment=None):
        self.command = [*wrapper, str(Path(program).resolve())]
        self.timeout_s = timeout_s
        self.environment = environment

    def run(self, *arguments, environment=None):
        """stdout as bytes."""
        merged = {**os.environ, **(self.environment or {}), **(environment or {})}
        done = subprocess.run([*self.command, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=self.timeout_s, env=merged)
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()
            raise KvasirFailed(f"{' '.join(map(str, arguments[:2]))}: exit {done.returncode}: {message[-600:]}")
        return done.stdout

    def json(self, *arguments, environment=None):
        return json.loads(self.run(*arguments, environment=environment))

    def logits(self, model, token_lists, *options, environment=None):
        """[float32 [n, n_vocab]] of each list of ids, evaluated by one call as one ragged batch."""
        import numpy
        with tempfile.TemporaryDirectory(prefix="kvasir-logits-") as folder:
            ids = Path(folder) / "ids.json"
            ids.write_text(json.dumps(token_lists))
            self.run("logits", model, "--tokens", ids, "--output", Path(folder) / "out.npy", *options,
                     environment=environment)
            return [numpy.load(Path(folder) / f"out.{i}.npy") for i in range(len(token_lists))]

    def tokens(self, model, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            return self.json("tokenize", model, "--file", file.name, "--json")


def guarded(main):
    """Runs main(checks); an exception is one failed check with its text, not a lost count."""
    checks = Checks()
    try:
        main(checks)
    except Exception as error:  # noqa: BLE001: whatever it was, it is reported
        import traceback
        traceback.print_exc(file=sys.stdout)
        checks.that(False, f"the comparison ended early: {type(error).__name__}: {error}")
    return checks.close()
