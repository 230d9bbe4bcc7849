"""kvasir chat with lines from a pipe: every line is a message or a command."""

import json
import re
import signal
import subprocess
import unittest

import harness
import tiny_model

GREEDY = ("chat", "tiny", "--temperature", "0", "--max-tokens", "12")
SAMPLED = ("chat", "tiny", "--temperature", "3", "--max-tokens", "30")
FIGURES = re.compile(r"\[(\d+) tokens \| prompt: (\d+) evaluated, (\d+) cached.*logits ([0-9a-f]{16})")


class Chat(harness.CommandLineTest):
    def chat(self, lines, *options, code=0, base=GREEDY):
        """(what was said on stdout, figures of every answer, all of stderr)."""
        result = self.run_kvasir(*base, *options, input="".join(line + "\n" for line in lines))
        errors = result.stderr.decode()
        self.assertEqual(result.returncode, code, errors)
        figures = [(int(a), int(b), int(c), d) for a, b, c, d in FIGURES.findall(errors)]
        return result.stdout.decode(), figures, errors

    def rendered_size(self, *turns):
        """Tokens of the template's text: 1 for each mark, bytes for the rest."""
        return sum(len(f"{role}\n{text}\n".encode()) + 2 for role, text in turns) + len("assistant\n") + 1

    def test_an_answer_to_one_question_with_figures(self):
        out = self.run_kvasir(*GREEDY, "-p", "Hi")
        self.assertEqual(out.returncode, 0)
        tokens, evaluated, cached, _ = FIGURES.findall(out.stderr.decode())[0]
        self.assertEqual((int(tokens), int(evaluated), int(cached)), (12, self.rendered_size(("user", "Hi")), 0))
        self.assertIn(b"reproducible", out.stderr)
        self.assertEqual(self.run_kvasir(*GREEDY, "-p", "Hi", "--no-stats").stderr, b"")
        self.assertEqual(out.stdout.decode(),
                         self.succeed("generate", "tiny", "--prompt", "Hi", "--max-tokens", 12))

    def test_the_next_turn_evaluates_only_what_is_new(self):
        out, figures, _ = self.chat(["Hi", "And?"])
        answer = self.succeed_json("generate", "tiny", "--prompt", "Hi", "--max-tokens", 12)
        self.assertTrue(out.startswith(answer["text"] + "\n"))
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer["text"]},
                 {"role": "user", "content": "And?"}]
        cold = self.succeed_json("generate", "tiny", "--messages", "-", "--max-tokens", 12, input=json.dumps(turns))
        self.assertEqual(figures[1][1] + figures[1][2], cold["prompt_tokens"])
        self.assertGreaterEqual(figures[1][2], self.rendered_size(("user", "Hi")))
        # Warm or cold: the same bits.
        self.assertEqual(figures[1][3], cold["statistics"]["logits_hash"])
        self.assertEqual(out, answer["text"] + "\n" + cold["text"] + "\n")

    def test_undo_and_clear_give_the_state_before(self):
        first = self.chat(["Hi"])
        for lines in (["Hi", "More", "/undo", "/undo", "Hi"], ["Hi", "/clear", "Hi"]):
            out, figures, _ = self.chat(lines)
            self.assertEqual(figures[-1][3], first[1][0][3])
            self.assertTrue(out.endswith(first[0]))
        self.assertIn("nothing", self.chat(["/undo"])[2])

    def test_regen_answers_again(self):
        out, figures, _ = self.chat(["Hi", "/regen"])
        self.assertEqual(figures[0][3], figures[1][3])
        self.assertEqual(figures[1][1], 1)  # only the last token of the prompt, for its logits
        sampled, _, errors = self.chat(["Hi", "/regen"], "--seed", "7", base=SAMPLED)
        self.assertIn("seed 7", errors)
        self.assertIn("seed 8", errors)
        self.assertIn("no answer", self.chat(["/regen"], code=1)[2])

    def test_a_system_message_from_the_option_a_file_or_the_command(self):
        path = self.file("system.txt", "Be brief")
        hashes = {self.chat(["Hi"], "--system", "Be brief")[1][0][3], self.chat(["Hi"], "--system", f"@{path}")[1][0][3],
                  self.chat(["/system Be brief", "Hi"])[1][0][3]}
        self.assertEqual(len(hashes), 1)
        plain = self.chat(["Hi"])[1][0][3]
        self.assertNotIn(plain, hashes)
        self.assertEqual(self.chat(["/system", "Hi"], "--system", "Be brief")[1][0][3], plain)

    def test_saved_and_loaded_goes_on_with_the_same_bits(self):
        path = self.folder / "saved.json"
        straight = self.chat(["Hi", "And?"], "--system", "Be ü")
        self.chat(["Hi", f"/save {path}"], "--system", "Be ü")
        saved = json.loads(path.read_text())
        self.assertEqual([m["role"] for m in saved["messages"]], ["system", "user", "assistant"])
        loaded = self.chat([f"/load {path}", "And?"])
        self.assertEqual(loaded[1][0][3], straight[1][1][3])
        self.assertEqual(list(self.folder.glob("saved.json?*")), [])

    def test_loading_restores_the_sampling(self):
        path = self.folder / "sampling.json"
        lines = ["Hi", "And?"]
        options = ("--seed", "11", "--top-k", "20", "--presence-penalty", "0.3")
        straight = self.chat(lines, *options, base=SAMPLED)
        self.chat(["Hi", f"/save {path}"], *options, base=SAMPLED)
        self.assertEqual(json.loads(path.read_text())["sampling"]["presence_penalty"], 0.3)
        loaded = self.chat([f"/load {path}", "And?"], base=("chat", "tiny", "--max-tokens", "30"))
        self.assertTrue(straight[0].endswith(loaded[0]))
        self.assertEqual(loaded[1][0][3], straight[1][1][3])

    def test_a_faulty_file_changes_nothing(self):
        good = self.folder / "good.json"
        self.chat(["Hi", f"/save {good}"])
        saved = json.loads(good.read_text())
        expected = self.chat(["Hi", "And?"])[1][1][3]
        faults = [
            ("{", "line 1"), ("[]", "not a saved"), (json.dumps({**saved, "kvasir_chat": 99}), "99"),
            (json.dumps({k: v for k, v in saved.items() if k != "messages"}), "'messages'"),
            (json.dumps({**saved, "messages": [{"role": "user"}]}), "message 0"),
            (json.dumps({**saved, "sampling": {"top_k": -1}}), "top_k"),
            (json.dumps({**saved, "sampling": {"temperature": 1e30}}), "temperature"),
            (json.dumps({**saved, "sampling": {"heat": 1}}), "unknown key"),
        ]
        for text, part in faults:
            bad = self.file("bad.json", text)
            out, figures, errors = self.chat(["Hi", f"/load {bad}", "And?"], code=1)
            self.assertIn(part, errors)
            self.assertEqual(figures[1][3], expected)
        self.assertIn("absent", self.chat(["/load /absent/x"], code=1)[2])
        self.assertIn("absent", self.chat(["Hi", "/save /absent/x"], code=1)[2])

    def test_another_model_is_warned_of(self):
        path = self.folder / "other.json"
        self.chat(["Hi", f"/save {path}"])
        saved = json.loads(path.read_text())
        saved["model"]["name"] = "giant"
        self.assertIn("giant", self.chat([f"/load {self.file('giant.json', json.dumps(saved))}"])[2])

    def test_commands_that_are_wrong_say_so(self):
        for line, part in (("/frob", "/frob"), ("/save", "/save"), ("/clear now", "/clear"), ("/stats loud", "/stats")):
            self.assertIn(part, self.chat([line], code=1)[2])
        self.assertEqual(self.chat([" /frob"])[1][0][1], self.rendered_size(("user", " /frob")))
        self.assertEqual(self.chat(["", "   ", "/quit", "Hi"])[0], "")

    def test_help_lists_the_commands_and_stats_switches(self):
        text = self.chat(["/help"])[2]
        for command in ("/help", "/clear", "/undo", "/regen", "/save", "/load", "/stats", "/quit", "/system"):
            self.assertIn(command, text)
        _, figures, _ = self.chat(["/stats off", "Hi", "/stats on", "Hi", "/stats", "Hi"])
        self.assertEqual(len(figures), 1)

    def test_a_full_context_leaves_the_chat_usable(self):
        # 100 tokens: a first answer of 12 fits, then the second question does not.
        out, figures, errors = self.chat(["Hi", "x" * 60, "/undo", "Hi"], "--ctx", "100", code=1)
        self.assertIn("100 tokens", errors)
        self.assertIn("/clear", errors)
        self.assertEqual(len(figures), 2)
        self.assertEqual(figures[1][3], self.chat(["Hi"])[1][0][3])
        _, _, errors = self.chat(["Hi", "/clear", "Hi"], "--ctx", "32", base=("chat", "tiny", "--temperature", "0"))
        self.assertEqual(errors.count("the context of 32 tokens is full"), 2)

    def test_a_template_that_refuses_is_an_error_and_no_turn(self):
        template = ("{% for m in messages %}{% if m['content'] == 'bad' %}{{ raise_exception('no bad words') }}{% endif %}"
                    "{{ m['content'] }}{% endfor %}")
        model = tiny_model.Model(template=template).write(self.folder / "strict.gguf")
        result = self.run_kvasir("chat", model, "--temperature", "0", "--max-tokens", "3", input="bad\ngood\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"no bad words", result.stderr)
        self.assertEqual(len(FIGURES.findall(result.stderr.decode())), 1)

    def test_no_template_is_an_error_that_points_to_raw(self):
        model = tiny_model.Model(template=None).write(self.folder / "plain.gguf")
        self.assertIn("--raw", self.refuse("chat", model, "-p", "Hi"))

    def test_ctrl_c_in_a_script_ends_it_after_the_answer_so_far(self):
        process = self.start("chat", "tiny", "--temperature", "0", stdin=subprocess.PIPE)
        process.stdin.write(b"Hi\nAnd?\n")
        process.stdin.flush()
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertEqual(len(FIGURES.findall(errors.decode())), 1)
        self.assertTrue((first + rest).endswith(b"\n"))


if __name__ == "__main__":
    unittest.main()
