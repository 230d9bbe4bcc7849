"""Finds and downloads one wheel as pip would, with the standard library and pip's configuration.

pip itself cannot resume a download or show where it is to a script, hence this. The formats are the simple
repository API in HTML (PEP 503) and JSON (PEP 691) and the wheel file names of PEP 427.
"""
import base64
import hashlib
import html.parser
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

CHUNK_BYTES = 1 << 18
TRIES = 4


class Failure(Exception):
    """An error with one line for people."""


class Link(NamedTuple):
    filename: str
    url: str
    sha256: str  # "" where the index does not say


def normalized(name):
    """PEP 503: runs of -, _ and . are one dash, case does not matter."""
    return re.sub(r"[-_.]+", "-", name).lower()


class PipConfiguration:
    """The settings of pip that say where packages are: environment, then [download], then [global]."""

    def __init__(self):
        shown = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
        if shown.returncode != 0:
            last = (shown.stderr.strip().splitlines() or ["no message"])[-1]
            raise Failure(f"pip for {sys.executable} does not work ({last}); install python3-pip")
        self.values = {}
        for line in shown.stdout.splitlines():
            key, _, value = line.partition("=")
            self.values[key] = value.strip()[1:-1]  # pip prints repr(value)
        self.index_urls = [self.get("index-url") or self._default_index()] + self.get_list("extra-index-url")
        if self.get("no-index").lower() in ("1", "true", "yes", "on"):
            self.index_urls = []
        self.find_links = self.get_list("find-links")
        self.timeout_s = float(self.get("timeout") or self.get("default-timeout") or 30)

    def get(self, name):
        for section in (":env:.", "download.", "global."):
            if self.values.get(section + name):
                return self.values[section + name]
        return ""

    def get_list(self, name):
        return self.get(name).replace("\\n", " ").split()

    @staticmethod
    def _default_index():
        shown = subprocess.run(
            [sys.executable, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"],
            capture_output=True, text=True)
        if shown.returncode != 0:
            raise Failure("pip's configuration names no index-url and pip's default cannot be read")
        return shown.stdout.strip()

    def opener(self):
        context = ssl.create_default_context(cafile=self.get("cert") or None)
        if self.get("client-cert"):
            context.load_cert_chain(self.get("client-cert"))
        unverified = ssl.create_default_context()
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        handlers = []
        if self.get("proxy"):  # else urllib takes http_proxy, https_proxy and no_proxy from the environment
            handlers.append(urllib.request.ProxyHandler({"http": self.get("proxy"), "https": self.get("proxy")}))
        trusted = urllib.request.build_opener(*handlers, urllib.request.HTTPSHandler(context=unverified))
        checked = urllib.request.build_opener(*handlers, urllib.request.HTTPSHandler(context=context))
        hosts = set(self.get_list("trusted-host"))

        def choose(url):
            parts = urllib.parse.urlsplit(url)
            return trusted if hosts & {parts.hostname, parts.netloc.rpartition("@")[2]} else checked
        return choose


class LinkCollector(html.parser.HTMLParser):
    def __init__(self, base):
        super().__init__()
        self.base, self.links = base, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "base" and attributes.get("href"):
            self.base = urllib.parse.urljoin(self.base, attributes["href"])
        if tag == "a" and attributes.get("href"):
            self.links.append(as_link(urllib.parse.urljoin(self.base, attributes["href"])))


def as_link(url):
    """A link of a page; its fragment may hold the sum: #sha256=..."""
    plain, fragment = urllib.parse.urldefrag(url)
    filename = urllib.parse.unquote(urllib.parse.urlsplit(plain).path).rpartition("/")[2]
    sums = urllib.parse.parse_qs(fragment).get("sha256", [""])
    return Link(filename, plain, sums[0])


def is_wheel(filename, name, version):
    """PEP 427: name-version[-build]-python-abi-platform.whl; platform any: no machine code inside."""
    fields = filename.removesuffix(".whl").split("-")
    return (filename.endswith(".whl") and len(fields) in (5, 6) and fields[-1] == "any"
            and normalized(fields[0]) == normalized(name) and fields[1] == version)


def is_source(filename, name, version):
    """PEP 625: name-version.tar.gz."""
    stem, dash, found = filename.removesuffix(".tar.gz").rpartition("-")
    return filename.endswith(".tar.gz") and bool(dash) and normalized(stem) == normalized(name) and found == version


def parse_page(body, content_type, base):
    if "json" in content_type:
        return [Link(f["filename"], urllib.parse.urljoin(base, f["url"]), f.get("hashes", {}).get("sha256", ""))
                for f in json.loads(body)["files"]]
    collector = LinkCollector(base)
    collector.feed(body.decode("utf-8", "replace"))
    return collector.links


class PackageIndex:
    def __init__(self):
        self.configuration = PipConfiguration()
        self.opener_for = self.configuration.opener()

    def open(self, url, headers):
        """Credentials in the address become a header, as pip does it."""
        parts = urllib.parse.urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        if at and parts.scheme in ("http", "https"):
            token = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
            headers = {**headers, "Authorization": f"Basic {token}"}
            url = urllib.parse.urlunsplit(parts._replace(netloc=host))
        request = urllib.request.Request(url, headers={"User-Agent": "kvasir-fetch-model", **headers})
        return self.opener_for(url).open(request, timeout=self.configuration.timeout_s)

    def page(self, url):
        """The links of an index page; [] where it has no such page."""
        if urllib.parse.urlsplit(url).scheme == "file":
            path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)) / "index.html"
            return parse_page(path.read_bytes(), "text/html", path.as_uri()) if path.exists() else []
        accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
        try:
            with self.open(url, {"Accept": accept}) as answer:
                return parse_page(answer.read(), answer.headers.get("Content-Type", ""), answer.url)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise

    def local_links(self, place):
        """find-links: a folder, a file address of one, or a page of links."""
        parts = urllib.parse.urlsplit(place)
        if parts.scheme in ("http", "https"):
            return self.page(place)
        folder = Path(urllib.request.url2pathname(parts.path) if parts.scheme == "file" else place).expanduser()
        if folder.is_file():
            return parse_page(folder.read_bytes(), "text/html", folder.resolve().as_uri())
        return [Link(p.name, p.resolve().as_uri(), "") for p in folder.iterdir()] if folder.is_dir() else []

    def find(self, name, version, kind="wheel"):
        """The file of exactly this version: find-links first, then each index in pip's order.

        kind: "wheel", one that fits every machine, or "source", the source distribution.
        """
        matches = is_wheel if kind == "wheel" else is_source
        places = [(self.local_links, place) for place in self.configuration.find_links]
        places += [(self.page, url.rstrip("/") + f"/{normalized(name)}/") for url in self.configuration.index_urls]
        unreachable = []
        for look, place in places:
            try:
                links = look(place)
            except (OSError, ValueError, http.client.HTTPException) as error:
                unreachable.append(reason(error))
                continue
            for link in links:
                if matches(link.filename, name, version):
                    return link
        if unreachable:
            raise Failure(f"{name}=={version}: the package index cannot be reached ({unreachable[0]}); offline?")
        raise Failure(f"{name}=={version}: no {kind} of this version in pip's indexes and find-links")

    def download(self, link, target, progress):
        """Downloads to target.part, going on where an earlier run stopped, and renames when the sum is right."""
        part = target.with_name(target.name + ".part")
        if target.exists():
            os.replace(target, part)  # complete or not: the sum below decides
        for attempt in range(TRIES):
            try:
                self._continue(link, part, progress)
                break
            except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
                final = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if final or attempt + 1 == TRIES:
                    raise Failure(f"{link.filename}: the download stopped ({reason(error)}); run again to go on") from None
                time.sleep(2 ** attempt)
        progress.finish()
        if link.sha256 and sha256_of(part) != link.sha256:
            part.unlink()
            raise Failure(f"{link.filename}: wrong sha256 after the download; the file was removed, run again")
        os.replace(part, target)

    def _continue(self, link, part, progress):
        have = part.stat().st_size if part.exists() else 0
        remote = urllib.parse.urlsplit(link.url).scheme in ("http", "https")
        headers = {"Accept-Encoding": "identity"}
        if have and remote:
            headers["Range"] = f"bytes={have}-"
        try:
            answer = self.open(link.url, headers)
        except urllib.error.HTTPError as error:
            if error.code == 416 and have:  # nothing beyond what is there: complete, or not this file
                total = error.headers.get("Content-Range", "").rpartition("/")[2]
                if total == str(have):
                    return
                part.unlink()
                raise ConnectionError("the server's file is another one; begun again") from None
            raise
        with answer:
            resumed = getattr(answer, "status", None) == 206 and \
                answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            done = have if resumed else 0
            length = answer.headers.get("Content-Length")
            total = done + int(length) if length else 0
            with open(part, "r+b" if resumed else "wb") as file:
                file.seek(done)
                while block := answer.read(CHUNK_BYTES):
                    file.write(block)
                    done += len(block)
                    progress.update(done, total)
            if total and done != total:
                raise ConnectionError(f"{done} of {total} bytes came")


def reason(error):
    return str(getattr(error, "reason", "") or error) or type(error).__name__


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
