"""Wrong usage: exit code 2 and one line that names the option and what it takes."""

import unittest

import harness

COMMANDS = ["chat", "generate", "tokenize", "logits", "inspect", "system", "bench", "perplexity", "list"]
GENERATE = ("generate", "tiny", "--prompt", "a")


class Usage(harness.CommandLineTest):
    def test_help_names_every_command_and_every_command_has_help(self):
        text = self.succeed("--help")
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", text)
            self.assertIn(f"kvasir {command} [OPTIONS]", self.succeed(command, "--help"))

    def test_help_shows_the_defaults_of_sampling(self):
        text = self.succeed("generate", "--help")
        for default in ("--temperature X=0 ", "--top-k N=0 ", "--top-p X=1 ", "--min-p X=0 ", "--seed N=0 "):
            self.assertIn(default, text.replace(" [", "=").replace("] ", " "))
        self.assertIn("0.7", self.succeed("chat", "--help"))

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^kvasir \d+\.\d+\.\d+\n$")

    def test_a_missing_or_unknown_command_or_option_is_refused(self):
        self.refuse(code=2)
        self.assertIn("frobnicate", self.refuse("frobnicate", code=2))
        self.assertIn("--frobnicate", self.refuse(*GENERATE, "--frobnicate", code=2))
        self.assertIn("extra", self.refuse("list", "extra", code=2))

    def test_numbers_that_are_none_or_out_of_range_are_refused(self):
        whole = ["--threads", "--prefill-chunk", "--ctx", "--top-k", "--seed", "--max-tokens"]
        real = ["--temperature", "--top-p", "--min-p", "--repetition-penalty", "--presence-penalty",
                "--frequency-penalty"]
        for option in whole:
            for value in ("-1", "1.5", "1e3", "0x10", "many", "", "99999999999999999999999", " 1", "1 "):
                message = self.refuse(*GENERATE, option, value, code=2)
                self.assertIn(f"{option}: '{value}' is not a whole number from ", message)
        for option in real:
            for value in ("nan", "-nan", "inf", "-inf", "1e400", "1,5", "x", "", "1e39", "-1e39"):
                message = self.refuse(*GENERATE, option, value, code=2)
                self.assertIn(f"{option}: '{value}' is not a number from ", message)
        for option in ("--threads", "--prefill-chunk", "--ctx"):
            self.assertIn(option, self.refuse(*GENERATE, option, "0", code=2))
        for option in ("--temperature", "--top-p", "--min-p"):
            self.assertIn(option, self.refuse(*GENERATE, option, "-0.1", code=2))
        for option in ("--top-p", "--min-p"):
            self.assertIn(option, self.refuse(*GENERATE, option, "1.1", code=2))

    def test_words_that_are_no_choice_are_refused(self):
        self.assertIn("--kv-type", self.refuse(*GENERATE, "--kv-type", "int3", code=2))
        self.assertIn("--math", self.refuse(*GENERATE, "--math", "sloppy", code=2))

    def test_options_that_contradict_or_lack_each_other_are_refused(self):
        self.refuse("generate", "tiny", code=2)
        self.refuse("generate", "tiny", "--prompt", "a", "--prompt-file", "b", code=2)
        self.refuse("generate", "tiny", "--prompt", "a", "--messages", "b", code=2)
        self.refuse("generate", "tiny", "--messages", "b", "--system", "c", code=2)
        self.refuse("generate", "tiny", "--prompt", "a", "--raw", "--system", "c", code=2)
        self.refuse(*GENERATE, "--logprobs", "2", code=2)
        self.refuse(*GENERATE, "--seed", "1", "--seed", "2", code=2)
        self.refuse(*GENERATE, "--stop", "", code=2)
        self.assertIn("''", self.refuse("generate", "tiny", "--prompt-file", ""))
        self.refuse("tokenize", "tiny", code=2)
        self.refuse("tokenize", "tiny", "--text", "a", "--file", "b", code=2)
        self.refuse("logits", "tiny", "--tokens", "a", code=2)
        self.refuse("bench", "tiny", "--prompt-tokens", "0", "--generate-tokens", "0", code=2)
        message = self.refuse("bench", "tiny", "--batch", "1,8", "--prefill-chunk", "4", code=2)
        self.assertIn("--prefill-chunk 8", message)

    def test_lists_of_numbers_are_checked_like_numbers(self):
        for option in ("--depth", "--batch", "--threads"):
            for value in ("", ",", "1,", ",1", "1,,2", "1, 2", "1;2", "-1", "1,x", "[1,2]", "99999999999999999999"):
                message = self.refuse("bench", "tiny", option, value, code=2)
                self.assertIn(f"{option}: '", message)
                self.assertIn("is not a whole number from", message)
        for option in ("--batch", "--threads"):
            self.assertIn(option, self.refuse("bench", "tiny", option, "2,0", code=2))

    def test_a_model_that_is_not_there_is_an_error_that_lists_those_that_are(self):
        message = self.refuse("generate", "absent", "--prompt", "a")
        self.assertIn("absent", message)
        self.assertIn("tiny", message)

    def test_an_unknown_instruction_set_fails_every_command(self):
        for arguments in (("list",), ("system",), ("tokenize", "tiny", "--text", "a"), GENERATE):
            message = self.refuse(*arguments, isa="mmx")
            self.assertIn("mmx", message)
            self.assertIn("scalar", message)

    def test_lost_output_is_an_error(self):
        for arguments in (("list",), ("--help",), ("inspect", "tiny"), (*GENERATE, "--max-tokens", "3")):
            with open("/dev/full", "wb") as full:
                self.assertIn("standard output", self.refuse(*arguments, stdout=full))

    def test_a_reader_that_goes_away_is_an_error_and_ends_the_answer(self):
        process = self.start(*GENERATE)
        process.stdout.read(1)
        process.stdout.close()
        self.assertIn(b"standard output", process.stderr.read())
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 1)


if __name__ == "__main__":
    unittest.main()
