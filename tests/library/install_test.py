"""The installed library: an embedding program is compiled against it, shared and static."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import tiny_model

BUILD, SOURCE = pathlib.Path(os.environ["BUILD"]), pathlib.Path(os.environ["SOURCE"])


def run(*command, **more):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stdout}{result.stderr}")
    return result.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        cls.model = tiny_model.Model().write(cls.folder / "tiny.gguf")
        run("meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", cls.folder / "root")
        cls.pc = next((cls.folder / "root").rglob("kvasir.pc"))
        cls.environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(cls.folder / "root")}
        cls.environment["PKG_CONFIG_PATH"] = os.pathsep.join(
            filter(None, [str(cls.pc.parent), os.environ.get("PKG_CONFIG_PATH")]))

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def flags(self, *options):
        text = run("pkg-config", *options, "kvasir", env=self.environment)
        # The sysroot is only for our files; Debian's own headers and libraries are where they are.
        root = str(self.folder / "root")
        ours = lambda flag: not flag[2:].startswith(root) or pathlib.Path(flag[2:]).exists()
        flags = [flag if ours(flag) else flag.replace(root, "") for flag in shlex.split(text)]
        sanitize = os.environ["SANITIZE"]
        return flags + ([f"-fsanitize={sanitize}"] if sanitize != "none" else [])

    def compile(self, name, flags):
        program = self.folder / name
        run(*shlex.split(os.environ["CXX"]), "-std=c++20", SOURCE / "examples" / "embed.cpp", "-o", program, *flags,
            env=self.environment)
        return program

    def answers(self, program, libraries=""):
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        return run(program, self.model, "Hi", "And?", env=environment)

    def test_shared_and_static_programs_answer_alike(self):
        libraries = self.pc.parent.parent
        expected = run(os.environ["EXAMPLE"], self.model, "Hi", "And?")
        self.assertEqual(len(re.findall(r"^\[\d+ of \d+ prompt tokens were known\]$", expected, re.M)), 2)
        shared = self.compile("shared", self.flags("--cflags", "--libs"))
        self.assertEqual(self.answers(shared, str(libraries)), expected)
        self.assertIn("libkvasir.so.0", run("readelf", "-d", shared))
        flags = self.flags("--cflags", "--libs", "--static")
        flags = [str(libraries / "libkvasir.a") if flag == "-lkvasir" else flag for flag in flags]
        static = self.compile("static", flags)
        self.assertEqual(self.answers(static), expected)
        self.assertNotIn("libkvasir", run("readelf", "-d", static))

    def test_only_the_public_classes_are_exported(self):
        library = next(p for p in self.pc.parent.parent.glob("libkvasir.so*") if not p.is_symlink())
        names = run("nm", "-D", "--defined-only", "-C", library)
        strong = [line.split(" ", 2)[2] for line in names.splitlines() if line.split(" ", 2)[1] in "TDBR"]
        self.assertTrue(strong)
        for name in strong:
            self.assertRegex(name, r"^(typeinfo (name )?for )?kvasir::(LanguageModel|Chat)(::|$)")

    def test_a_question_that_cannot_be_answered_is_an_error(self):
        result = subprocess.run([os.environ["EXAMPLE"], "/absent", "Hi"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/absent", result.stderr)


if __name__ == "__main__":
    unittest.main()
