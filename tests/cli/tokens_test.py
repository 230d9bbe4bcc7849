"""kvasir tokenize and kvasir logits."""

import json
import unittest

import harness
import tiny_model


class Tokenize(harness.CommandLineTest):
    def test_a_vocabulary_of_bytes_gives_the_bytes(self):
        for text in ("a", "Grüße, 世界 👋", "  two\n\nlines\t", "x" * 1000):
            self.assertEqual(self.succeed_json("tokenize", "tiny", "--text", text), tiny_model.byte_ids(text))

    def test_any_bytes_may_come_from_a_file(self):
        data = bytes(range(256)) * 2
        path = self.file("bytes", data)
        expected = [tiny_model.FIRST_BYTE + b for b in data]
        self.assertEqual(self.succeed_json("tokenize", "tiny", "--file", path), expected)
        self.assertEqual(self.succeed_json("tokenize", "tiny", "--file", "-", input=data), expected)

    def test_control_tokens_are_recognised_unless_no_special(self):
        self.assertEqual(self.succeed_json("tokenize", "tiny", "--text", "<|im_end|>a"), [2, *tiny_model.byte_ids("a")])
        self.assertEqual(self.succeed_json("tokenize", "tiny", "--text", "<|im_end|>a", "--no-special"),
                         tiny_model.byte_ids("<|im_end|>a"))

    def test_the_list_for_people_shows_ids_and_text(self):
        lines = self.succeed("tokenize", "tiny", "--text", "<|im_end|>a\x1b").splitlines()
        self.assertEqual([line.split(maxsplit=1) for line in lines],
                         [["2", '"<|im_end|>"'], [str(tiny_model.byte_ids("a")[0]), '"a"'], [str(tiny_model.byte_ids("\x1b")[0]), '"\\u001b"']])

    def test_no_text_gives_no_ids(self):
        self.assertEqual(self.succeed_json("tokenize", "tiny", "--text", ""), [])

    def test_a_file_that_cannot_be_read_is_named(self):
        self.assertIn("absent", self.refuse("tokenize", "tiny", "--file", "absent"))
        self.assertIn(str(self.folder), self.refuse("tokenize", "tiny", "--file", self.folder))


class Logits(harness.CommandLineTest):
    IDS = [5, 9, 2, 77, 130, 200, 7]

    def logits(self, ids, *more, name="out.npy"):
        tokens = self.file("ids.json", json.dumps(ids))
        output = self.folder / name
        statistics = self.succeed_json("logits", "tiny", "--tokens", tokens, "--output", output, *more)
        return statistics, output

    def test_a_list_gives_one_row_a_token(self):
        statistics, output = self.logits(self.IDS)
        shape, rows = harness.read_npy(output)
        self.assertEqual(shape, (7, 259))
        self.assertEqual(statistics["tokens_evaluated"], 7)
        self.assertEqual(statistics["tokens_cached"], 0)
        self.assertEqual(statistics["prefill_chunks"], [7])
        # Control tokens have weights of 0 in the output matrix.
        for row in rows:
            self.assertEqual(row[:3], (0.0, 0.0, 0.0))
            self.assertGreater(max(row[3:]) - min(row[3:]), 0.1)

    def test_last_gives_the_last_row_alone(self):
        whole = harness.read_npy(self.logits(self.IDS)[1])[1]
        shape, rows = harness.read_npy(self.logits(self.IDS, "--last")[1])
        self.assertEqual(shape, (1, 259))
        self.assertEqual(rows[0], whole[-1])

    def test_chunks_and_threads_change_no_bit(self):
        whole = self.logits(self.IDS)[1].read_bytes()
        statistics, output = self.logits(self.IDS, "--prefill-chunk", 3, "--threads", 3)
        self.assertEqual(statistics["prefill_chunks"], [3, 3, 1])
        self.assertEqual(output.read_bytes(), whole)

    def test_a_batch_of_lists_gives_the_bits_of_each_alone(self):
        lists = [self.IDS, [3], list(range(100, 140))]
        alone = [self.logits(ids)[1].read_bytes() for ids in lists]
        for chunk, chunks in ((512, [48]), (5, [5] * 9 + [3]), (1, [1] * 48)):
            statistics, _ = self.logits(lists, "--prefill-chunk", chunk, name="batch.npy")
            self.assertEqual(statistics["prefill_chunks"], chunks)
            self.assertEqual(statistics["sequences"], 3)
            self.assertEqual([(self.folder / f"batch.{i}.npy").read_bytes() for i in range(3)], alone)
        self.assertFalse((self.folder / "batch.npy").exists())

    def test_faults_name_list_position_id_and_vocabulary(self):
        cases = {
            "[1, 2, 259]": ["259", "position 2", "vocabulary of 259"],
            "[[1], [1, 300]]": ["300", "position 1", "list 1"],
            "[1, -1]": ["element 1", "-1"], "[1.0]": ["element 0", "1.0"], "[true]": ["element 0", "true"],
            '["a"]': ["element 0"], "[99999999999999]": ["element 0"], "[[1], 2]": ["element 1"],
            "[]": ["empty"], "[[1], []]": ["list 1", "empty"], "{}": ["an object"], "5": ["'"], "[1,": ["line 1"],
            "[" * 50000 + "]" * 50000: ["element 0", "a list"],
        }
        for text, parts in cases.items():
            message = self.refuse("logits", "tiny", "--tokens", self.file("bad.json", text), "--output",
                                  self.folder / "bad.npy")
            for part in parts:
                self.assertIn(part, message)
        self.assertFalse(list(self.folder.glob("bad*npy*")))

    def test_a_failure_leaves_the_old_file_and_no_other(self):
        old = self.folder / "kept.npy"
        old.write_text("old")
        ids = self.file("long.json", json.dumps([3] * 50))
        self.assertIn("40", self.refuse("logits", "tiny", "--tokens", ids, "--output", old, "--ctx", "40",
                                        "--prefill-chunk", "8"))
        self.assertEqual(old.read_text(), "old")
        self.assertEqual(list(self.folder.glob("kept.npy?*")), [])

    def test_a_place_that_cannot_be_written_is_named(self):
        ids = self.file("ids.json", "[1]")
        for place in ("/absent/out.npy", str(self.folder), "/dev/full"):
            self.assertIn(place, self.refuse("logits", "tiny", "--tokens", ids, "--output", place))


if __name__ == "__main__":
    unittest.main()
