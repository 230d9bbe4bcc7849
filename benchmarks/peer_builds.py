"""The peers, built from the source packages of their Python bindings. Measured, never linked.

Sources and builds are kept in the cache folder under the name of the package's version.
"""
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts" / "lib"))
import package_index  # noqa: E402
from progress import Progress  # noqa: E402


@dataclass(frozen=True)
class Peer:
    name: str
    package: str
    version: str
    source: str            # folder of the sources inside the package
    bench_options: tuple   # at its best on a CPU
    one_token_options: tuple
    batched_options: tuple  # of llama-batched-bench; ik 0.1.5 aborts there with flash attention (GGML_ASSERT(S > 0))


PEERS = (
    Peer("llama.cpp", "llama-cpp-python", "0.3.36", "vendor/llama.cpp", (), ("--no-warmup",), ()),
    Peer("ik_llama.cpp", "ik-llama-cpp-python", "0.1.5", "vendor/ik_llama.cpp", ("-rtr", "1", "-fa", "1"), ("-w", "0"), ("-rtr", "-no-fa")),
)
CMAKE_OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF")


def cache_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kvasir" / "peers"


def say(text):
    print(text, file=sys.stderr, flush=True)


def source_of(peer):
    """The unpacked source package, downloaded when it is not there."""
    folder = cache_folder() / f"{peer.package}-{peer.version}"
    if not (folder / "unpacked").exists():
        folder.mkdir(parents=True, exist_ok=True)
        index = package_index.PackageIndex()
        link = index.find(peer.package, peer.version, kind="source")
        archive = folder / link.filename
        index.download(link, archive, Progress(f"{peer.name} source"))
        with tarfile.open(archive) as tar:
            if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on: no member leaves the folder
                tar.extractall(folder, filter="data")
            else:
                tar.extractall(folder)
        archive.unlink()
        (folder / "unpacked").touch()
    (inside,) = [p for p in folder.iterdir() if (p / peer.source).is_dir()]
    return inside


def complete(source):
    """ik_llama.cpp's package lacks the CMake file that writes the version into build-info.cpp: put one there."""
    script = source / "common" / "cmake" / "build-info-gen-cpp.cmake"
    if script.exists() or script.name not in (source / "common" / "CMakeLists.txt").read_text():
        return
    script.parent.mkdir(exist_ok=True)
    script.write_text("""\
set(BUILD_NUMBER 0)
set(BUILD_COMMIT "package")
set(BUILD_COMPILER "unknown")
set(BUILD_TARGET "native")
set(common "${CMAKE_CURRENT_LIST_DIR}/..")
configure_file("${common}/build-info.cpp.in" "${common}/build-info.cpp" @ONLY)
""")


def build_of(peer):
    """Its build folder, with bin/llama-bench; built when it is not there (some minutes)."""
    folder = cache_folder() / f"build-{peer.package}-{peer.version}"
    if not all((folder / "bin" / name).exists() for name in ("llama-bench", "llama-batched-bench")):
        source = source_of(peer) / peer.source
        complete(source)
        log = folder.parent / f"{folder.name}.log"
        say(f"building {peer.name} {peer.version} (log: {log})")
        with open(log, "w") as output:
            for command in (["cmake", "-S", source, "-B", folder, *CMAKE_OPTIONS],
                            ["cmake", "--build", folder, "--parallel", str(os.cpu_count()), "--target", "llama-bench",
                             "llama-batched-bench"]):
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
                if done.returncode != 0:
                    raise package_index.Failure(f"{peer.name} does not build: see {log}")
    return folder
