"""Runs the built program on tiny models. KVASIR_PROGRAM names it; meson sets it."""

import ast
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import tiny_model

PROGRAM = os.environ["KVASIR_PROGRAM"]


class CommandLineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        (cls.folder / "models").mkdir()
        cls.model = tiny_model.Model().write(cls.folder / "models" / "tiny.gguf")
        cls.environment = {**os.environ, "KVASIR_MODELS": str(cls.folder / "models"),
                           "XDG_STATE_HOME": str(cls.folder / "state"), "LC_ALL": "C", "TERM": "xterm"}
        cls.environment.pop("KVASIR_ISA", None)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def run_kvasir(self, *arguments, input=None, isa=None, timeout=60, **more):
        environment = dict(self.environment, **({"KVASIR_ISA": isa} if isa else {}))
        data = input.encode() if isinstance(input, str) else input
        streams = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([PROGRAM, *map(str, arguments)], env=environment, stderr=subprocess.PIPE,
                              timeout=timeout, **streams, **more)

    def succeed(self, *arguments, **more):
        """Standard output of a run that must succeed, and must be UTF-8."""
        result = self.run_kvasir(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        return result.stdout.decode()

    def succeed_json(self, *arguments, **more):
        return json.loads(self.succeed(*arguments, "--json", **more))

    def refuse(self, *arguments, code=1, **more):
        """The message of a run that must fail with one line."""
        result = self.run_kvasir(*arguments, **more)
        message = result.stderr.decode()
        self.assertEqual(result.returncode, code, message)
        self.assertEqual(message.count("\n"), 1, message)
        self.assertTrue(message.startswith("kvasir: error: "), message)
        return message

    def start(self, *arguments, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        # Unbuffered: what read() took ahead would be lost to communicate().
        return subprocess.Popen([PROGRAM, *map(str, arguments)], env=self.environment, stderr=subprocess.PIPE,
                                bufsize=0, **more)

    def interrupt_after_output(self, process):
        """Reads the first byte, sends Ctrl-C; everything that was printed."""
        first = process.stdout.read(1)
        self.assertTrue(first)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
        return first + rest, errors.decode()

    def file(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return str(path)


def read_npy(path):
    """(shape, rows of floats) of a float32 file in NumPy's format 1.0."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    size = struct.unpack_from("<H", data, 8)[0]
    assert (10 + size) % 64 == 0 and data[10 + size - 1:10 + size] == b"\n"
    header = ast.literal_eval(data[10:10 + size].decode().strip())
    assert header["descr"] == "<f4" and header["fortran_order"] is False
    rows, columns = header["shape"]
    assert len(data) == 10 + size + rows * columns * 4
    values = struct.unpack_from(f"<{rows * columns}f", data, 10 + size)
    return (rows, columns), [values[r * columns:(r + 1) * columns] for r in range(rows)]
