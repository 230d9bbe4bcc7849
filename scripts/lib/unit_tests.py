#!/usr/bin/env python3
"""Runs the tests of a meson build folder and counts their cases: doctest's, and those of Python's unittest.

`meson test` counts programs; here a program that ran no test case has failed, and the closing line is the
sum of the cases: "checks: N passed, N failed".
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time

SUMMARY = re.compile(rb"\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed \| +(\d+) skipped")

UNITTEST_RAN = re.compile(rb"^Ran (\d+) tests? in ", re.MULTILINE)
UNITTEST_BAD = re.compile(rb"(?:failures|errors|skipped|unexpected successes)=(\d+)")


def cases_of(output):
    """(passed, failed) by the last summary in the output; a skipped case of unittest has not passed."""
    found = SUMMARY.findall(output)
    if found:
        return int(found[-1][1]), int(found[-1][2])
    ran = UNITTEST_RAN.findall(output)
    if not ran:
        return 0, 0
    bad = sum(int(n) for n in UNITTEST_BAD.findall(output.rstrip().rpartition(b"\n")[2]))
    return max(int(ran[-1]) - bad, 0), bad


def run(test, build, wrapper):
    """(passed, failed) of one program, its output on stdout."""
    environment = {**os.environ, **test.get("env", {})}
    started = time.monotonic()
    command = wrapper + test["cmd"]
    print("+", shlex.join(command), flush=True)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment, cwd=test.get("workdir") or build, timeout=max(test["timeout"], 600))
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as expired:
        output, status = (expired.stdout or b"") + b"\nended: it ran too long\n", -1
    sys.stdout.buffer.write(output)
    passed, failed = cases_of(output)
    if failed == 0 and (status != 0 or passed == 0):
        failed = 1  # crashed, reported by a sanitizer, or without any case
        print(f"{test['name']}: exit status {status} after {passed} cases that passed")
    print(f"{test['name']}: {passed} passed, {failed} failed, {time.monotonic() - started:.1f} s", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a meson build folder with its programs built")
    parser.add_argument("--wrapper", default="", help="command that runs a program, as qemu-aarch64")
    parser.add_argument("--skip-suite", action="append", default=[], help="leave out the tests of this suite")
    arguments = parser.parse_args()
    shown = subprocess.run(["meson", "introspect", "--tests", arguments.build], capture_output=True, text=True)
    if shown.returncode != 0:
        print(shown.stdout + shown.stderr)
        return 1
    skip = set(arguments.skip_suite)
    tests = [t for t in json.loads(shown.stdout) if not skip & {s.rpartition(":")[2] for s in t.get("suite", [])}]
    results = [(test["name"], *run(test, arguments.build, shlex.split(arguments.wrapper))) for test in tests]
    passed, failed = sum(r[1] for r in results), sum(r[2] for r in results)
    if not tests:
        print(f"{arguments.build} has no tests")
        failed = 1
    for name, _, count in results:
        if count:
            print(f"failed: {name}")
    print(f"checks: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
