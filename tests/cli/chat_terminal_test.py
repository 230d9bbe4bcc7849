"""kvasir chat on a terminal: editing, pastes, history, Ctrl-C and Ctrl-D."""

import os
import pty
import re
import select
import signal
import time
import unittest

import harness

GREEDY = ("chat", "tiny", "--temperature", "0")
PROMPT = b"> "
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """The program with a pseudo-terminal as stdin, stdout and stderr."""

    def __init__(self, test, *arguments):
        self.test = test
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(harness.PROGRAM, [harness.PROGRAM, *arguments], test.environment)
        self.seen = b""

    def read_until(self, pattern, timeout=30):
        """Everything up to and including `pattern`, which is then behind us."""
        end = time.monotonic() + timeout
        while not (match := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended before {pattern!r}: {self.seen!r}")
            self.seen += data
        taken, self.seen = self.seen[:match.end()], self.seen[match.end():]
        return CONTROL.sub(b"", taken).decode(errors="replace")  # may end within a character

    def type(self, data):
        os.write(self.fd, data if isinstance(data, bytes) else data.encode())

    def leave(self):
        """Ctrl-D, once the editor listens: before, the terminal itself would take it."""
        self.read_until(PROMPT)
        self.type(b"\x04")

    def exit_code(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if ready:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"did not end: {self.seen!r}")


# The editor gives the terminal back, then comes the answer: its first characters.
ANSWER = rb"(?s)\[\?2004l[\r\n]*[^\r\n\x1b].{5}"
FIGURES = rb"\[(\d+) tokens \| prompt: (\d+) evaluated, (\d+) cached"


class ChatTerminal(harness.CommandLineTest):
    def open(self, *options, max_tokens="5"):
        terminal = Terminal(self, *GREEDY, "--max-tokens", max_tokens, *options)
        terminal.read_until(rb"/help lists the commands")
        terminal.read_until(PROMPT)
        return terminal

    def evaluated(self, terminal):
        text = terminal.read_until(FIGURES)
        _, evaluated, cached = map(int, re.search(FIGURES.decode(), text).groups())
        return evaluated + cached

    @staticmethod
    def size(message):
        return len(f"user\n{message}\nassistant\n".encode()) + 3

    def test_a_line_is_answered_and_ctrl_d_leaves(self):
        terminal = self.open()
        terminal.type("Hi\r")
        self.assertEqual(self.evaluated(terminal), self.size("Hi"))
        terminal.leave()
        self.assertEqual(terminal.exit_code(), 0)

    def test_characters_of_several_bytes_are_edited_whole(self):
        terminal = self.open()
        terminal.type("aß世👋\x7f\x7fü\r")  # two characters are taken back
        self.assertEqual(self.evaluated(terminal), self.size("aßü"))
        terminal.leave()
        self.assertEqual(terminal.exit_code(), 0)

    def test_a_paste_of_several_lines_is_one_message(self):
        terminal = self.open()
        terminal.type("\x1b[200~one\rtwo\rthree\r\x1b[201~")
        terminal.type("!\r")
        self.assertEqual(self.evaluated(terminal), self.size("one\ntwo\nthree!"))
        terminal.leave()
        self.assertEqual(terminal.exit_code(), 0)

    def test_backslashes_and_quotes_join_lines(self):
        for typed, message in (("one\\\rtwo\r", "one\ntwo"), ('"""one\rtwo\r"""\r', "one\ntwo\n"),
                               ('"""\ra\\\rb"""\r', "\na\\\nb"), ('"""x"""\r', "x")):
            terminal = self.open()
            terminal.type(typed)
            self.assertEqual(self.evaluated(terminal), self.size(message), typed)
            terminal.leave()
            self.assertEqual(terminal.exit_code(), 0)

    def test_ctrl_c_at_the_prompt_clears_the_line_and_twice_leaves(self):
        terminal = self.open()
        terminal.type("half a mess")
        terminal.read_until(rb"mess")
        terminal.type(b"\x03")
        terminal.read_until(rb"Ctrl-C again")
        terminal.read_until(PROMPT)
        terminal.type("Hi\r")
        self.assertEqual(self.evaluated(terminal), self.size("Hi"))
        terminal.read_until(PROMPT)
        terminal.type(b"\x03")
        terminal.read_until(rb"Ctrl-C again")
        terminal.read_until(PROMPT)
        terminal.type(b"\x03")
        self.assertEqual(terminal.exit_code(), 0)

    def test_ctrl_c_stops_an_answer_which_stays_in_the_conversation(self):
        terminal = self.open(max_tokens="0")
        terminal.type("Hi\r")
        terminal.read_until(ANSWER)
        time.sleep(0.2)
        terminal.type(b"\x03")
        terminal.read_until(rb"\[stopped\]")
        text = terminal.read_until(FIGURES)
        n_answered = int(re.search(FIGURES.decode(), text).group(1))
        self.assertGreater(n_answered, 1)
        terminal.read_until(PROMPT)
        # The second question, stopped while the long conversation is evaluated or just after.
        terminal.type("And?\r")
        terminal.read_until(rb"\[\?2004l")
        time.sleep(0.1)
        terminal.type(b"\x03")
        text = terminal.read_until(FIGURES)
        _, evaluated, cached = map(int, re.search(FIGURES.decode(), text).groups())
        self.assertGreaterEqual(cached, self.size("Hi"))
        # Taken back twice, the first question is evaluated as if nothing had been.
        for _ in range(2):
            terminal.read_until(PROMPT)
            terminal.type("/undo\r")
            terminal.read_until(rb"took back")
        terminal.read_until(PROMPT)
        terminal.type("Hi\r")
        terminal.read_until(ANSWER)
        terminal.type(b"\x03")
        self.assertEqual(self.evaluated(terminal), self.size("Hi"))
        terminal.read_until(PROMPT)
        terminal.type("/quit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_waiting_at_the_prompt_uses_no_cpu(self):
        def cpu_seconds():
            with open(f"/proc/{terminal.pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # of all threads

        terminal = self.open("--threads", "2")
        terminal.type("Hi\r")
        self.evaluated(terminal)  # by now the threads are there
        terminal.read_until(PROMPT)
        time.sleep(0.2)
        before = cpu_seconds()
        time.sleep(3)
        self.assertLess(cpu_seconds() - before, 0.05)
        terminal.type(b"\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_the_history_is_kept_from_one_chat_to_the_next(self):
        terminal = self.open()
        terminal.type("remember me\r")
        self.evaluated(terminal)
        terminal.leave()
        self.assertEqual(terminal.exit_code(), 0)
        self.assertTrue((self.folder / "state" / "kvasir" / "history").exists())
        terminal = self.open()
        terminal.type("\x1b[A\r")  # arrow up
        self.assertEqual(self.evaluated(terminal), self.size("remember me"))
        terminal.leave()
        self.assertEqual(terminal.exit_code(), 0)


if __name__ == "__main__":
    unittest.main()
