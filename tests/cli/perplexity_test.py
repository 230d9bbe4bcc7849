"""kvasir perplexity: the figures against arithmetic on `kvasir logits`, and files that are refused."""

import json
import math
import random
import signal
import struct
import time
import unittest
import zipfile

import harness
import tiny_model

CONTEXT = 40
FIGURES = {"rel_tol": 1e-9, "abs_tol": 1e-15}  # double sums of some hundred terms, in another order


def log_sum_exp(row):
    most = max(row)
    return most + math.log(math.fsum(math.exp(x - most) for x in row))


def mean_and_error(values):
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


class Perplexity(harness.CommandLineTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rng = random.Random(7)
        cls.text = "".join(chr(rng.randrange(32, 127)) for _ in range(3 * CONTEXT + 17))
        (cls.folder / "text").write_text(cls.text)
        with_bos = tiny_model.Model()
        with_bos.metadata["tokenizer.ggml.add_bos_token"] = (tiny_model.BOOL, True)
        with_bos.write(cls.folder / "models" / "bos.gguf")
        other = tiny_model.Model()  # its logits differ a little
        values = other.tensors["output_norm.weight"][1]
        values[:] = [v * 1.1 for v in values]
        other.write(cls.folder / "models" / "other.gguf")

    def measure(self, model="tiny", *more):
        return self.succeed_json("perplexity", model, "--file", self.folder / "text", "--ctx", CONTEXT, *more)

    def windows(self, bos):
        ids = tiny_model.byte_ids(self.text)
        if bos is not None:
            ids = [bos, *ids]
        windows = [ids[i:i + CONTEXT] for i in range(0, len(ids) - CONTEXT + 1, CONTEXT)]
        if bos is not None:
            windows = [[bos, *window[1:]] for window in windows]
        return windows, len(ids) - len(windows) * CONTEXT

    def logits(self, model, windows):
        self.succeed("logits", model, "--tokens", self.file("windows.json", json.dumps(windows)), "--output",
                     self.folder / "rows.npy")
        return [harness.read_npy(self.folder / f"rows.{i}.npy")[1] for i in range(len(windows))]

    def losses(self, model, windows):
        return [log_sum_exp(rows[p]) - rows[p][window[p + 1]]
                for window, rows in zip(windows, self.logits(model, windows))
                for p in range(CONTEXT // 2, CONTEXT - 1)]

    def save(self, model, name="base.npz"):
        path = self.folder / name
        self.measure(model, "--save-logits", path)
        return path

    def test_the_figures_are_those_of_the_logits(self):
        for model, bos in (("tiny", None), ("bos", 1)):
            windows, left_out = self.windows(bos)
            facts = self.measure(model)
            losses = self.losses(model, windows)
            mean, error = mean_and_error(losses)
            self.assertEqual(facts["windows"], 3)
            self.assertEqual(facts["tokens_evaluated"], 3 * CONTEXT)
            self.assertEqual(facts["tokens_scored"], len(losses))
            self.assertEqual(facts["tokens_left_out"], left_out)
            self.assertTrue(math.isclose(facts["perplexity"]["value"], math.exp(mean), **FIGURES))
            self.assertTrue(math.isclose(facts["perplexity"]["standard_error"], math.exp(mean) * error, **FIGURES))
            self.assertGreater(facts["tokens_per_s"], 0)
            self.assertNotIn("base", facts)

    def test_threads_and_chunks_change_no_bit(self):
        figure = self.measure()["perplexity"]
        self.assertEqual(self.measure("tiny", "--threads", 3, "--prefill-chunk", 7)["perplexity"], figure)
        self.assertNotEqual(self.measure("tiny", "--kv-type", "f16")["perplexity"], figure)

    def test_spellings_of_control_tokens_are_text(self):
        path = self.file("markup", "<|im_end|>" * 8)
        facts = self.succeed_json("perplexity", "tiny", "--file", path, "--ctx", "40")
        self.assertEqual(facts["windows"], 2)

    def test_the_text_may_come_from_standard_input(self):
        facts = self.succeed_json("perplexity", "tiny", "--file", "-", "--ctx", CONTEXT, input=self.text)
        self.assertEqual(facts["perplexity"], self.measure()["perplexity"])

    def test_divergences_from_a_base(self):
        base = self.save("tiny")
        facts = self.measure("other", "--kl-base", base)["base"]
        windows, _ = self.windows(None)
        kls, same = [], []
        for reference, rows in zip(self.logits("tiny", windows), self.logits("other", windows)):
            for p in range(CONTEXT // 2, CONTEXT - 1):
                sums = log_sum_exp(reference[p]), log_sum_exp(rows[p])
                kls.append(math.fsum(math.exp(r - sums[0]) * ((r - sums[0]) - (q - sums[1]))
                                     for r, q in zip(reference[p], rows[p])))
                same.append(reference[p].index(max(reference[p])) == rows[p].index(max(rows[p])))
        mean, error = mean_and_error(kls)
        loose = {"rel_tol": 1e-9, "abs_tol": 1e-13}  # a sum of terms that nearly cancel
        self.assertGreater(mean, 1e-6)
        self.assertTrue(math.isclose(facts["kl"]["value"], mean, **loose))
        self.assertTrue(math.isclose(facts["kl"]["standard_error"], error, **loose))
        self.assertTrue(math.isclose(facts["kl_quantile_99"], quantile(kls, 0.99), **loose))
        self.assertTrue(math.isclose(facts["kl_quantile_999"], quantile(kls, 0.999), **loose))
        self.assertTrue(math.isclose(facts["kl_maximum"], max(kls), **loose))
        self.assertEqual(facts["same_best_token"], sum(same) / len(same))
        self.assertEqual(facts["perplexity"], self.measure("tiny")["perplexity"])

    def test_a_model_does_not_diverge_from_itself(self):
        facts = self.measure("tiny", "--kl-base", self.save("tiny"))
        self.assertEqual(facts["base"]["kl"], {"value": 0, "standard_error": 0})
        self.assertEqual(facts["base"]["same_best_token"], 1)

    def test_saved_logits_are_a_zip_of_two_arrays(self):
        windows, _ = self.windows(1)
        with zipfile.ZipFile(self.save("bos")) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.namelist(), ["tokens.npy", "ctx.npy", "logits.npy"])
            tokens, ctx, logits = map(archive.read, archive.namelist())
        ids = [i for window in windows for i in window]
        self.assertEqual(tokens, npy("<i4", f"({len(ids)},)", struct.pack(f"<{len(ids)}i", *ids)))
        self.assertEqual(ctx, npy("<i4", "()", struct.pack("<i", CONTEXT)))
        rows = [x for window in self.logits("bos", windows) for row in window for x in row]
        self.assertEqual(logits, npy("<f4", f"({len(ids)}, 259)", struct.pack(f"<{len(rows)}f", *rows)))

    def test_a_base_of_other_windows_is_refused(self):
        path = self.save("tiny")
        message = self.refuse("perplexity", "tiny", "--file", self.folder / "text", "--ctx", 20, "--kl-base", path)
        self.assertIn("windows have 40 tokens, not 20", message)

    def base(self, tokens=None, logits=None, name="made.npz", method=zipfile.ZIP_STORED):
        ids = [i for window in self.windows(None)[0] for i in window]
        n = len(ids)
        path = self.folder / name
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("tokens.npy", tokens or npy("<i4", f"({n},)", struct.pack(f"<{n}i", *ids)))
            archive.writestr("logits.npy", logits or npy("<f2", f"({n}, 259)", bytes(n * 259 * 2)))
        return path

    def test_a_base_of_float16_that_knows_nothing(self):
        facts = self.measure("tiny", "--kl-base", self.base())["base"]
        self.assertTrue(math.isclose(facts["perplexity"]["value"], 259, rel_tol=1e-12))  # all equally likely
        self.assertLess(facts["perplexity"]["standard_error"], 1e-9)

    def test_bases_that_do_not_fit_are_refused(self):
        ids = [i for window in self.windows(None)[0] for i in window]
        n = len(ids)
        other = [*ids]
        other[50] = 258
        pack = lambda values: struct.pack(f"<{len(values)}i", *values)
        nan = bytearray(n * 259 * 2)
        nan[30 * 259 * 2:30 * 259 * 2 + 2] = struct.pack("<H", 0x7E00)
        cases = [
            ({"tokens": npy("<i4", f"({n},)", pack(other))}, ["index 50", "258"]),
            ({"tokens": npy("<i4", f"({n - 1},)", pack(ids[:-1])),
              "logits": npy("<f2", f"({n - 1}, 259)", bytes((n - 1) * 259 * 2))}, [f"index {n - 1}", f"text {n}"]),
            ({"tokens": npy("<i8", f"({n},)", bytes(8 * n))}, ["tokens", "<i8"]),
            ({"tokens": npy("<f4", f"({n},)", bytes(4 * n))}, ["tokens", "float32", "int32"]),
            ({"logits": npy("<f4", f"({n}, 258)", bytes(n * 258 * 4))}, ["258", "259"]),
            ({"logits": npy("<f4", f"({n}, 259)", bytes(n * 259 * 4 - 1))}, ["logits", f"({n}, 259)"]),
            ({"logits": npy("<f4", f"({n + 1}, 259)", bytes((n + 1) * 259 * 4))}, ["logits", f"{n + 1}"]),
            ({"logits": npy("<f4", f"({n * 259},)", bytes(n * 259 * 4))}, ["logits", f"[{n * 259}]"]),
            ({"logits": npy("<f8", f"({n}, 259)", bytes(n * 259 * 8))}, ["logits", "<f8"]),
            ({"logits": b"no array at all"}, ["logits", "not a NumPy array"]),
            ({"logits": npy("<f2", f"({n}, 259)", bytes(nan))}, ["row 30", "NaN"]),
            ({"method": zipfile.ZIP_DEFLATED}, ["compressed", "savez"]),
        ]
        for changes, parts in cases:
            path = self.base(**changes)
            message = self.refuse("perplexity", "tiny", "--file", self.folder / "text", "--ctx", CONTEXT, "--kl-base",
                                  path)
            for part in [str(path), *parts]:
                self.assertIn(part, message)

    def test_damaged_bytes_are_noticed(self):
        data = bytearray(self.base().read_bytes())
        data[len(data) // 2] ^= 1
        message = self.refuse("perplexity", "tiny", "--file", self.folder / "text", "--ctx", CONTEXT, "--kl-base",
                              self.file("damaged.npz", bytes(data)))
        self.assertIn("checksum", message)

    def test_files_that_are_no_archive_are_refused(self):
        text = self.folder / "text"
        for path, part in ((self.file("not.npz", "text"), "not an .npz archive"), ("absent.npz", "absent.npz"),
                           (str(self.folder), "folder"), (self.file("empty.npz", b""), "not an .npz archive")):
            self.assertIn(part, self.refuse("perplexity", "tiny", "--file", text, "--ctx", CONTEXT, "--kl-base", path))

    def test_texts_that_fill_no_window_are_refused_with_both_numbers(self):
        message = self.refuse("perplexity", "tiny", "--file", self.file("short", "x" * 39), "--ctx", "40")
        self.assertIn("39", message)
        self.assertIn("40", message)
        self.assertIn("absent", self.refuse("perplexity", "tiny", "--file", "absent"))
        self.assertIn("--ctx", self.refuse("perplexity", "tiny", "--file", "absent", "--ctx", "3", code=2))
        self.assertIn("--file", self.refuse("perplexity", "tiny", code=2))

    def test_a_place_that_cannot_be_written_is_named(self):
        for place in ("/absent/out.npz", str(self.folder), "/dev/full"):
            self.assertIn(place, self.refuse("perplexity", "tiny", "--file", self.folder / "text", "--ctx", CONTEXT,
                                             "--save-logits", place))

    def test_ctrl_c_ends_it_and_leaves_no_file(self):
        text = self.file("long", "some words " * 200000)
        output = self.folder / "interrupted.npz"
        process = self.start("perplexity", "tiny", "--file", text, "--save-logits", output)
        end = time.monotonic() + 30
        while not list(self.folder.glob("interrupted.npz*")) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertTrue(list(self.folder.glob("interrupted.npz*")))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(out, b"")
        self.assertIn(b"cancelled", errors)
        self.assertEqual(list(self.folder.glob("interrupted.npz*")), [])


if __name__ == "__main__":
    unittest.main()
