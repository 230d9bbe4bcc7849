"""kvasir inspect: what a file holds, and which key or tensor of a faulty one is at fault."""

import json
import time
import unittest

import harness
import tiny_model
from tiny_model import ARRAY, F32, I32, STRING, U32


class Inspect(harness.CommandLineTest):
    def test_json_holds_metadata_tensors_and_plan(self):
        facts = self.succeed_json("inspect", "tiny", "--ctx", 100)
        self.assertEqual(facts["metadata"]["llama.block_count"], 2)
        self.assertEqual(facts["metadata"]["tokenizer.ggml.tokens"]["count"], 259)
        self.assertEqual(facts["architecture"], "llama")
        self.assertTrue(facts["chat_template"])
        tensors = {t["name"]: t for t in facts["tensors"]}
        self.assertEqual(len(tensors), 2 * 9 + 3)
        self.assertEqual(tensors["blk.1.ffn_up.weight"],
                         {"name": "blk.1.ffn_up.weight", "type": "F32", "shape": [32, 64], "bytes": 8192})
        plan = facts["memory_plan"]
        # 2 layers, keys and values, 1 head of 16, 4 bytes; 100 tokens are 4 blocks of 32.
        self.assertEqual(plan["kv_bytes_per_token"], 2 * 2 * 16 * 4)
        self.assertEqual(plan["kv_bytes"], 2 * 2 * 16 * 4 * 128)
        self.assertEqual(plan["total_bytes"], plan["weight_bytes"] + plan["kv_bytes"] + plan["scratch_bytes"])
        weights = sum(t["bytes"] for t in facts["tensors"])
        self.assertLess(abs(plan["weight_bytes"] - weights), 0.1 * weights)

    def test_f16_halves_the_kv(self):
        plans = [self.succeed_json("inspect", "tiny", "--kv-type", kv)["memory_plan"] for kv in ("f32", "f16")]
        self.assertEqual(plans[0]["kv_bytes"], 2 * plans[1]["kv_bytes"])

    def test_text_names_every_key_and_tensor(self):
        tiny = tiny_model.Model()
        text = self.succeed("inspect", tiny.write(self.folder / "text.gguf"))
        for name in (*tiny.metadata, *tiny.tensors):
            self.assertIn(name, text)

    def test_what_a_file_says_does_not_command_the_terminal(self):
        tiny = tiny_model.Model()
        tiny.metadata["general.name"] = (STRING, "\x1b]0;owned\x07 \u009b31m \u202egnp \x7f")
        tiny.metadata["general.\x1b[2J"] = (STRING, b"\xff\xfe")
        model = tiny.write(self.folder / "evil.gguf")
        for arguments in (("inspect", model), ("inspect", model, "--json")):
            text = self.succeed(*arguments)
            for character in "\x1b\x07\u009b\x7f":
                self.assertNotIn(character, text)
        self.assertIn("\\u202e", self.succeed("inspect", model))
        self.assertEqual(self.succeed_json("inspect", model)["metadata"]["general.name"],
                         "\x1b]0;owned\x07 \u009b31m \u202egnp \x7f")

    def test_a_long_value_is_cut_between_characters(self):
        tiny = tiny_model.Model()
        for shift in range(3):
            tiny.metadata[f"general.note{shift}"] = (STRING, "x" * shift + "世" * 500)
        text = self.succeed("inspect", tiny.write(self.folder / "long.gguf"))
        self.assertNotIn("\ufffd", text)
        self.assertNotIn("\\xe4", text)


class Malformed(harness.CommandLineTest):
    def inspect(self, contents):
        path = self.file("faulty.gguf", contents)
        began = time.monotonic()
        message = self.refuse("inspect", path)
        self.assertLess(time.monotonic() - began, 1.0 + 1.0)  # the program's second, and its start
        return message

    def test_every_file_that_ends_early_is_refused(self):
        whole = tiny_model.Model().bytes()
        for size in [*range(0, 64, 7), *range(64, len(whole) - 1, len(whole) // 40), len(whole) - 33]:
            self.inspect(whole[:size])

    def test_faults_of_keys_are_named(self):
        cases = {
            "general.architecture": (STRING, "perceptron"),
            "llama.block_count": (U32, 0),
            "llama.context_length": (STRING, "long"),
            "llama.attention.head_count_kv": (U32, 3),
            "llama.attention.layer_norm_rms_epsilon": (F32, float("nan")),
            "tokenizer.ggml.model": (STRING, "word2vec"),
            "tokenizer.ggml.pre": (STRING, "unheard-of"),
            "tokenizer.ggml.tokens": (ARRAY, (STRING, [])),
            "tokenizer.ggml.token_type": (ARRAY, (I32, [1, 1])),
            "tokenizer.ggml.merges": (ARRAY, (STRING, ["a b c", "nothing"])),
            "tokenizer.ggml.eos_token_id": (U32, 259),
        }
        for key, value in cases.items():
            with self.subTest(key):
                tiny = tiny_model.Model()
                tiny.metadata[key] = value
                self.assertIn(key, self.inspect(tiny.bytes()))

    def test_missing_keys_are_named(self):
        for key in ("general.architecture", "llama.block_count", "llama.embedding_length", "tokenizer.ggml.model",
                    "tokenizer.ggml.tokens", "llama.attention.layer_norm_rms_epsilon"):
            with self.subTest(key):
                tiny = tiny_model.Model()
                del tiny.metadata[key]
                self.assertIn(key, self.inspect(tiny.bytes()))

    def test_missing_and_misshapen_tensors_are_named(self):
        for name in ("token_embd.weight", "blk.1.attn_k.weight", "blk.0.ffn_norm.weight", "output_norm.weight"):
            with self.subTest(name):
                tiny = tiny_model.Model()
                shape, values = tiny.tensors.pop(name)
                self.assertIn(name, self.inspect(tiny.bytes()))
                tiny.tensors[name] = ([shape[0] // 2, *shape[1:]], values[:len(values) // 2])
                self.assertIn(name, self.inspect(tiny.bytes()))

    def test_what_is_no_model_is_refused(self):
        self.inspect(b"")
        self.inspect(b"not a model at all, but long enough to be read as a header")
        self.refuse("inspect", self.folder)
        self.refuse("inspect", "/dev/zero")


if __name__ == "__main__":
    unittest.main()
