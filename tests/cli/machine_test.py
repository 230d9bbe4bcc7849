"""kvasir system, bench and list."""

import os
import signal
import time
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

    def test_on_one_cpu_there_is_one_thread(self):
        cpu = min(os.sched_getaffinity(0))
        facts = self.succeed_json("system", "--no-measure", preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        self.assertEqual(facts["threads"], 1)
        answer = self.succeed_json("generate", "tiny", "--prompt", "a", "--max-tokens", 2,
                                   preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        self.assertEqual(answer["statistics"]["threads"], 1)

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

    def test_depths_batches_and_threads_give_a_result_each(self):
        facts = self.succeed_json("bench", "tiny", "--prompt-tokens", 20, "--generate-tokens", 6, "--repetitions", 1,
                                  "--depth", "0,70", "--batch", "1,3", "--threads", "1,2", "--prefill-chunk", 16,
                                  timeout=300)
        expected = [(mode, tokens, depth, batch, threads) for threads in (1, 2) for depth in (0, 70)
                    for mode, tokens, batch in (("prefill", 20, 1), ("decode", 6, 1), ("decode", 6, 3))]
        results = facts["results"]
        self.assertEqual([tuple(r[k] for k in ("mode", "tokens", "depth", "batch", "threads")) for r in results],
                         expected)
        self.assertEqual(set(facts["limits"]["by_threads"]), {"1", "2"})
        layers, head = 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32), 259 * 32
        for r in results:
            limits = facts["limits"]["by_threads"][str(r["threads"])]
            self.assertAlmostEqual(r["share_of_read_limit"], r["gb_per_s"] / limits["read_gb_per_s"])
            self.assertAlmostEqual(r["share_of_gmac_limit"], r["gmac_per_s"] / limits["gmac_per_s"])
            self.assertIn(r["share_of_limit"], (r["share_of_read_limit"], r["share_of_gmac_limit"]))
            # Multiply-adds, exactly: the matrices; attention's keys and values, 2 layers of 2 heads of 16. A token
            # at position p sees p + 1 keys; the filling is not counted.
            tokens, depth, batch = r["tokens"], r["depth"], r["batch"]
            keys = sum(range(depth + 1, depth + tokens + 1))
            heads = 1 if r["mode"] == "prefill" else tokens
            multiply_adds = batch * (tokens * layers + heads * head + 2 * 2 * 32 * keys)
            self.assertAlmostEqual(r["gmac_per_s"] * 1e6 * r["milliseconds"] / multiply_adds, 1)
            self.assertAlmostEqual(r["tokens_per_s"] * r["milliseconds"] / 1000, tokens * batch)
            # Bytes: a decode step reads every matrix once, whatever the batch, and each sequence's own blocks of
            # 32 positions (f32 keys and values of 16 in both layers).
            if r["mode"] == "decode":
                blocks = sum((depth + t) // 32 + 1 for t in range(tokens))
                rounded_head = (259 + 15) // 16 * 16 * 32  # panels of 16 rows
                total = tokens * 4 * (layers + rounded_head) + batch * blocks * 2 * 2 * 32 * 16 * 4
                self.assertAlmostEqual(r["gb_per_s"] * 1e6 * r["milliseconds"] / total, 1)

    def test_the_zones_add_up_to_the_time(self):
        facts = self.succeed_json("bench", "tiny", "--prompt-tokens", 300, "--generate-tokens", 20, "--repetitions", 1,
                                  "--threads", 2, timeout=180)
        names = {"embed", "norm", "matmul f32", "rope and append", "attention", "activation", "waiting at barriers",
                 "other"}
        for r, more in zip(facts["results"], (set(), {"sampling"})):
            self.assertEqual(set(r["zones"]), names | more)
            self.assertTrue(all(ms >= 0 for ms in r["zones"].values()))
            counted = sum(ms for zone, ms in r["zones"].items() if zone != "sampling")
            self.assertAlmostEqual(counted / r["milliseconds"], 1, places=3)
            self.assertGreater(r["zones"]["matmul f32"], 0)
        table = self.succeed("bench", "tiny", "--prompt-tokens", 8, "--generate-tokens", 2, "--repetitions", 1,
                             timeout=180)
        for word in ("limits of", "of limit", "matmul f32", "waiting at barriers", "tokens/s"):
            self.assertIn(word, table)

    def test_ctrl_c_ends_the_measuring(self):
        process = self.start("bench", "tiny", "--repetitions", "1000", "--generate-tokens", "4000")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"cancelled", errors)

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
