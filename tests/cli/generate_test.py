"""kvasir generate on a tiny model whose answers never end by themselves."""

import json
import subprocess
import unittest

import harness
import tiny_model

RAW = ("generate", "tiny", "--raw", "--prompt", "Hello, world")


class Generate(harness.CommandLineTest):
    def test_json_tells_what_was_done(self):
        answer = self.succeed_json(*RAW, "--max-tokens", 20, "--threads", 2, "--prefill-chunk", 5)
        self.assertEqual(answer["prompt_tokens"], 12)
        self.assertEqual(len(answer["tokens"]), 20)
        self.assertEqual(answer["finish_reason"], "length")
        statistics = answer["statistics"]
        self.assertEqual(statistics["prefill_chunks"], [5, 5, 2])
        self.assertEqual(statistics["tokens_evaluated"], 12 + 19)  # the last one is never evaluated
        self.assertEqual(statistics["tokens_cached"], 0)
        self.assertEqual(statistics["threads"], 2)
        self.assertEqual(statistics["kv_type"], "f32")  # auto, of an f32 model
        # 3 steps of the prompt and 19 of the answer, 2 layers with q+k+v, output, gate+up and down or
        # more calls each; the head where logits are asked for.
        self.assertEqual(statistics["kernels"]["attention"], (3 + 19) * 2)
        self.assertGreaterEqual(statistics["kernels"]["matmul_f32"], (3 + 19) * 2 * 4 + 20)
        # 31 positions: 1 block of 32, 2 layers, keys and values, 1 head of 16, 4 bytes.
        self.assertEqual(statistics["kv_bytes_by_type"], {"f32": 32 * 2 * 2 * 16 * 4})
        for figure in ("prefill_tokens_per_s", "decode_tokens_per_s", "load_s", "time_to_first_token_s",
                       "peak_memory_bytes"):
            self.assertGreater(statistics[figure], 0)

    def test_the_text_is_the_bytes_of_the_tokens(self):
        answer = self.succeed_json(*RAW, "--max-tokens", 60)
        data = bytes(token - tiny_model.FIRST_BYTE for token in answer["tokens"])
        self.assertEqual(answer["text"], data.decode(errors="replace"))
        self.assertEqual(self.succeed(*RAW, "--max-tokens", 60), answer["text"] + "\n")

    def test_threads_chunks_and_instruction_sets_change_no_bit(self):
        kernels = self.succeed_json("system", "--no-measure")["kernels"]
        names = [k["name"] for k in kernels if k["available"]]
        self.assertIn("scalar", names)
        prompt = "The quick brown fox jumps over the lazy dog. " * 4
        answers = set()
        for isa in names:
            for threads, chunk in ((1, 512), (2, 7), (4, 1)):
                answer = self.succeed_json("generate", "tiny", "--raw", "--prompt", prompt, "--max-tokens", 10,
                                           "--threads", threads, "--prefill-chunk", chunk, isa=isa)
                self.assertEqual(answer["statistics"]["isa"], isa)
                self.assertEqual(answer["statistics"]["threads"], threads)
                self.assertEqual(max(answer["statistics"]["prefill_chunks"]), min(chunk, len(prompt)))
                answers.add((answer["statistics"]["logits_hash"], tuple(answer["tokens"])))
        self.assertEqual(len(answers), 1)

    def test_kv_types_are_used(self):
        bits = {kv: self.succeed_json(*RAW, "--max-tokens", 5, "--kv-type", kv)["statistics"] for kv in ("f16", "f32")}
        self.assertEqual(bits["f16"]["kv_bytes_by_type"]["f16"] * 2, bits["f32"]["kv_bytes_by_type"]["f32"])
        self.assertNotEqual(bits["f16"]["logits_hash"], bits["f32"]["logits_hash"])

    def test_a_seed_repeats_and_another_differs(self):
        def sampled(seed):
            return self.succeed(*RAW, "--max-tokens", 30, "--temperature", 2, "--seed", seed)
        self.assertEqual(sampled(5), sampled(5))
        self.assertNotEqual(sampled(5), sampled(6))

    def test_the_template_is_applied_unless_raw(self):
        template = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        from_template = self.succeed_json("generate", "tiny", "--prompt", "Hi", "--max-tokens", 5)
        from_raw = self.succeed_json("generate", "tiny", "--raw", "--prompt", template, "--max-tokens", 5)
        self.assertEqual(from_template["statistics"]["logits_hash"], from_raw["statistics"]["logits_hash"])
        # 3 control tokens, the rest bytes.
        self.assertEqual(from_template["prompt_tokens"], 3 + len("user\nHi\nassistant\n"))
        typed = self.succeed_json("generate", "tiny", "--prompt", "<|im_end|>", "--max-tokens", 5)
        self.assertEqual(typed["prompt_tokens"], 3 + len("user\n<|im_end|>\nassistant\n"))

    def test_prompts_and_messages_come_from_files_and_standard_input(self):
        expected = self.succeed("generate", "tiny", "--system", "Be brief", "--prompt", "Hi ü", "--max-tokens", 8)
        prompt = self.file("prompt.txt", "Hi ü")
        system = self.file("system.txt", "Be brief")
        messages = json.dumps([{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi ü"}])
        same = [
            self.succeed("generate", "tiny", "--system", f"@{system}", "--prompt-file", prompt, "--max-tokens", 8),
            self.succeed("generate", "tiny", "--system", "Be brief", "--prompt-file", "-", "--max-tokens", 8,
                         input="Hi ü"),
            self.succeed("generate", "tiny", "--messages", self.file("m.json", messages), "--max-tokens", 8),
            self.succeed("generate", "tiny", "--messages", "-", "--max-tokens", 8, input=messages),
        ]
        self.assertEqual(set(same), {expected})

    def test_faulty_messages_are_named(self):
        cases = {
            '[{"role": "user", "content": "a"}, {"role": "user"}]': ["message 1", "content"],
            '[{"role": 3, "content": "a"}]': ["message 0", "role", "3"],
            '[{"role": "user", "content": "a", "name": "b"}]': ["message 0", "name"],
            '[{"role": "user", "content": ["a"]}]': ["message 0", "content", "list"],
            '["a"]': ["message 0"],
            "{}": ["an object"],
            "[]": ["no messages"],
            "[": ["line 1"],
            "[" * 100000: ["is not JSON"],
        }
        for text, parts in cases.items():
            message = self.refuse("generate", "tiny", "--messages", "-", input=text)
            for part in parts:
                self.assertIn(part, message)
        self.assertIn("absent.json", self.refuse("generate", "tiny", "--messages", "absent.json"))

    def test_an_answer_ends_before_a_stop_text(self):
        whole = self.succeed_json(*RAW, "--max-tokens", 60)["text"]
        stop = whole[20:23]
        answer = self.succeed_json(*RAW, "--max-tokens", 60, "--stop", stop, "--stop", "[not,there]")
        self.assertEqual(answer["text"], whole[:whole.index(stop)])
        self.assertEqual(answer["finish_reason"], "stop")

    def test_log_probabilities(self):
        answer = self.succeed_json(*RAW, "--max-tokens", 4, "--logprobs", 3)
        self.assertEqual(len(answer["logprobs"]), 4)
        for token, entry in zip(answer["tokens"], answer["logprobs"]):
            self.assertEqual(entry["token"], token)
            tops = [t["logprob"] for t in entry["top"]]
            self.assertEqual(len(tops), 3)
            self.assertEqual(tops, sorted(tops, reverse=True))
            self.assertEqual(entry["top"][0]["token"], token)  # greedy
            self.assertLess(entry["logprob"], 0)

    def test_what_does_not_fit_is_refused_with_both_numbers(self):
        message = self.refuse("generate", "tiny", "--raw", "--prompt", "x" * 40, "--ctx", 40)
        self.assertIn("40 tokens", message)
        self.assertIn("--ctx", message)
        self.assertIn("empty", self.refuse("generate", "tiny", "--raw", "--prompt", ""))

    def test_an_answer_that_fills_the_context_says_so(self):
        answer = self.succeed_json(*RAW, "--ctx", 32)
        self.assertEqual(answer["finish_reason"], "context_full")
        self.assertEqual(answer["prompt_tokens"] + len(answer["tokens"]), 33)  # the last is not evaluated

    def test_a_context_beyond_the_trained_one_is_warned_of(self):
        result = self.run_kvasir(*RAW, "--ctx", 40000, "--max-tokens", 2)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"40000", result.stderr)
        self.assertIn(b"32768", result.stderr)

    def test_a_model_without_a_template_needs_raw(self):
        model = tiny_model.Model(template=None).write(self.folder / "plain.gguf")
        message = self.refuse("generate", model, "--prompt", "a")
        self.assertIn("template", message)
        self.assertIn("--raw", message)
        self.succeed("generate", model, "--raw", "--prompt", "a", "--max-tokens", 2)

    def test_bos_comes_first_where_the_file_says_so(self):
        tiny = tiny_model.Model()
        tiny.metadata["tokenizer.ggml.add_bos_token"] = (tiny_model.BOOL, True)
        model = tiny.write(self.folder / "bos.gguf")
        self.assertEqual(self.succeed_json("tokenize", model, "--text", "a"), [1, *tiny_model.byte_ids("a")])
        answer = self.succeed_json("generate", model, "--raw", "--prompt", "a", "--max-tokens", 2)
        self.assertEqual(answer["prompt_tokens"], 2)

    def test_ctrl_c_stops_the_answer_and_keeps_what_there_is(self):
        whole = self.succeed(*RAW, "--max-tokens", 1)[:-1]
        output, errors = self.interrupt_after_output(process := self.start(*RAW))
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue(output.decode().startswith(whole))
        self.assertTrue(output.endswith(b"\n"))

    def test_ctrl_c_leaves_whole_json(self):
        process = self.start(*RAW, "--json")
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(2)
        output, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        answer = json.loads(output)
        self.assertEqual(answer["finish_reason"], "cancelled")
        self.assertGreater(len(answer["tokens"]), 0)


if __name__ == "__main__":
    unittest.main()
