#!/usr/bin/env python3
"""Tests of scripts/check-includes: a small tree that keeps the rules, and one fault at a time."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check-includes"
GOOD = {
    "include/kvasir/result.h": "#include <string>\n",
    "cpu_kernels/kernels.h": "#include <cstdint>\n",
    "cpu_kernels/avx2/table.cpp": '#include "cpu_kernels/kernels.h"\n',
    "core/base/error.h": '#include "kvasir/result.h"\n',
    "core/kv/layout.h": '#include "core/base/error.h"\n#include "cpu_kernels/kernels.h"\n',
    "models/families/llama.cpp": '#include "core/base/error.h"\nconst char* kName = "llama";\n',
    "models/decoder.cpp": '#include "cpu_kernels/kernels.h"  // llama and printf("x") in a comment\n',
    "cli/main.cpp": '#include "models/load.h"\n#include <cstdio>\nint main() { printf("x"); }\n',
    "models/load.h": "",
}
FAULTS = [  # file, its text, words of the message
    ("core/base/bad.h", '#include "models/load.h"\n', "core/base/bad.h:1: core may not include models/load.h"),
    ("core/base/bad.h", '#include "cpu_kernels/pack.h"\n', "core may not include cpu_kernels/pack.h"),
    ("cpu_kernels/pack.h", '\n#include "core/base/error.h"\n', "cpu_kernels/pack.h:2: cpu_kernels may not include"),
    ("core/base/bad.h", '#include "core/kv/layout.h"\n', "closes the cycle"),
    ("core/base/bad.h", '#include "core/base/absent.h"\n', "is no file of the tree"),
    ("cpu_kernels/dispatch.cpp", '#include "cpu_kernels/avx2/table.cpp"\n', "compiled with the flags of avx2 only"),
    ("cpu_kernels/avx2/bad.cpp", "#include <vector>\n", "<vector> in a file of an instruction set"),
    ("core/base/bad.cpp", "void f() { std::abort(); }\n", "ends the process"),
    ("core/base/bad.cpp", "void f() {\n  std::cerr << 1; }\n", "core/base/bad.cpp:2: 'std::cerr' prints"),
    ("models/bad.cpp", "double f(const char* t) { return strtod(t, nullptr); }\n", "depends on the locale"),
    ("models/bad.cpp", 'bool f(const char* n) { return n == "qwen2"; }\n', "family name 'qwen'"),
]


def run(extra=None):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**GOOD, **(extra or {})}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True)


class CheckIncludesTest(unittest.TestCase):
    def test_a_tree_that_keeps_the_rules_passes(self):
        done = run()
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_fault_is_found_and_named(self):
        for name, text, words in FAULTS:
            with self.subTest(words):
                done = run({name: text})
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stdout)


if __name__ == "__main__":
    unittest.main()
