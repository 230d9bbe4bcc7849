"""kvasir system, bench and list."""

import os
import unittest

import harness


class System(harness.CommandLineTest):
    def test_json_says_what_was_chosen_and_why(self):
        facts = self.succeed_json("system", "--no-measure")
        chosen = [k["name"] for k in facts["kernels"] if k["chosen"]]
        self.assertEqual(chosen, [facts["isa"]])
        self.assertTrue(facts["isa_reason"])
        self.assertTrue(facts["threads_reason"])
        self.assertLessEqual(facts["threads"], len(os.sched_getaffinity(0)))
        self.assertGreater(facts["available_memory_bytes"], 0)
        self.assertIn("PCRE2", facts["libraries"])
        self.assertNotIn("read_gb_per_s", facts)
        self.assertIn(facts["isa"], self.succeed("system", "--no-measure"))

    def test_kvasir_isa_is_obeyed(self):
        facts = self.succeed_json("system", "--no-measure", isa="scalar")
        self.assertEqual(facts["isa"], "scalar")
        self.assertIn("KVASIR_ISA", facts["isa_reason"])

    def test_sets_this_cpu_lacks_are_refused(self):
        facts = self.succeed_json("system", "--no-measure")
        for kernels in facts["kernels"]:
            if not kernels["available"]:
                self.assertIn(kernels["name"], self.refuse("list", isa=kernels["name"]))


class Bench(harness.CommandLineTest):
    def test_json_has_the_agreed_form(self):
        facts = self.succeed_json("bench", "tiny", "--prompt-tokens", 40, "--generate-tokens", 8, "--repetitions", 3,
                                  "--threads", 2, timeout=180)
        self.assertEqual(set(facts) & {"machine", "limits", "results"}, {"machine", "limits", "results"})
        self.assertEqual([(r["mode"], r["tokens"]) for r in facts["results"]], [("prefill", 40), ("decode", 8)])
        for result in facts["results"]:
            self.assertEqual((result["depth"], result["batch"], result["threads"]), (0, 1, 2))
            for figure in ("tokens_per_s", "gb_per_s", "gmac_per_s", "share_of_limit"):
                self.assertGreater(result[figure], 0)
            self.assertLessEqual(result["share_of_limit"], 1)
        # The multiply-adds of the matrices: 2 layers of (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32), and the
        # head for one row of a prefill, for every row of a decode.
        layers, head = 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32), 259 * 32
        for result, tokens, heads in zip(facts["results"], (40, 8), (1, 8)):
            multiply_adds = result["gmac_per_s"] * 1e9 * tokens / result["tokens_per_s"]
            self.assertGreaterEqual(multiply_adds, tokens * layers + heads * head)
            self.assertLess(multiply_adds, 1.5 * (tokens * layers + heads * head))  # the rest is attention

    def test_a_part_of_no_tokens_is_left_out(self):
        facts = self.succeed_json("bench", "tiny", "--prompt-tokens", 0, "--generate-tokens", 4, "--repetitions", 1,
                                  timeout=180)
        self.assertEqual([r["mode"] for r in facts["results"]], ["decode"])


class List(harness.CommandLineTest):
    def test_models_of_the_folder_with_their_sizes(self):
        (self.folder / "models" / "note.txt").write_text("no model")
        size = (self.folder / "models" / "tiny.gguf").stat().st_size
        self.assertEqual(self.succeed_json("list"), [{"name": "tiny", "path": self.model, "bytes": size}])
        self.assertTrue(self.succeed("list").startswith("tiny "))

    def test_an_empty_folder_is_no_error(self):
        result = self.run_kvasir("list", "--json")
        self.assertEqual(result.returncode, 0)
        self.environment["KVASIR_MODELS"] = "/absent"
        try:
            self.assertEqual(self.succeed_json("list"), [])
        finally:
            self.environment["KVASIR_MODELS"] = str(self.folder / "models")


if __name__ == "__main__":
    unittest.main()
