#!/usr/bin/env python3
"""Makes the corpus of the .npz reader, tests/fuzz/npz, with Python's zipfile: archives as numpy.savez writes them
and such as break the format in one place each."""

import io
import pathlib
import struct
import sys
import zipfile


def npy(descr="<f4", shape="(2, 3)", data=bytes(24), version=1, order="False", text=None):
    text = (text or f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}").encode()
    size = "<H" if version == 1 else "<I"
    text += b" " * (-(len(text) + 9 + struct.calcsize(size)) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(size, len(text)) + text + data


def archive(members, method=zipfile.ZIP_STORED, zip64=True, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.comment = comment
        for name, data in members:
            info = zipfile.ZipInfo(name)  # of 1980-01-01, so that the bytes are always the same
            info.compress_type = method
            with file.open(info, "w", force_zip64=zip64) as member:
                member.write(data)
    return out.getvalue()


def patched(data, at, replacement):
    """`at` counts from the end when negative."""
    at %= len(data)
    return data[:at] + replacement + data[at + len(replacement):]


def cases():
    tokens = ("tokens.npy", npy("<i4", "(2,)", struct.pack("<2i", 5, 7)))
    good = [tokens, ("logits.npy", npy())]
    plain = archive(good)
    directory = struct.unpack_from("<I", plain, len(plain) - 6)[0]
    end = len(plain) - 22
    yield "ok.npz", plain
    yield "ok_not_zip64.npz", archive(good, zip64=False)
    yield "ok_comment.npz", archive(good, comment=b"made by hand PK\x05\x06 " * 5)
    yield "ok_half.npz", archive([tokens, ("logits.npy", npy("<f2", data=bytes(12)))])
    yield "ok_version_2.npz", archive([tokens, ("logits.npy", npy(version=2))])
    yield "ok_empty.npz", archive([])
    locator = struct.pack("<IIQI", 0x07064B50, 0, end, 1)
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 2, 2, end - directory, directory)
    saturated = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    yield "ok_zip64_end.npz", plain[:end] + end64 + locator + saturated
    yield "zip64_end_outside.npz", plain[:end] + end64 + struct.pack("<IIQI", 0x07064B50, 0, 2**63, 1) + saturated
    yield "zip64_huge_directory.npz", plain[:end] + end64[:40] + struct.pack("<QQ", 2**64 - 1, 2) + locator + saturated
    yield "nothing.npz", b""
    yield "short.npz", b"PK\x05\x06"
    yield "text.npz", b"no archive " * 20
    yield "truncated.npz", plain[:-30]
    yield "many_entries.npz", patched(plain, end + 10, struct.pack("<H", 65535))
    yield "directory_outside.npz", patched(plain, end + 16, struct.pack("<I", 0xFFFFFFF0))
    yield "directory_not_one.npz", patched(plain, directory, b"XXXX")
    yield "long_name.npz", patched(plain, directory + 28, struct.pack("<H", 65535))
    yield "encrypted.npz", patched(plain, directory + 8, struct.pack("<H", 1))
    yield "sizes_differ.npz", patched(plain, directory + 20, struct.pack("<I", 1))
    yield "size_outside.npz", patched(plain, directory + 20, struct.pack("<II", 10**9, 10**9))
    yield "size_in_missing_extra.npz", patched(plain, directory + 20, struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF))
    yield "local_elsewhere.npz", patched(plain, directory + 42, struct.pack("<I", 3))
    yield "local_outside.npz", patched(plain, directory + 42, struct.pack("<I", 0xFFFFFFF0))
    yield "local_long_name.npz", patched(plain, 26, struct.pack("<HH", 65535, 65535))
    yield "deflated.npz", archive(good, zipfile.ZIP_DEFLATED)
    yield "same_name.npz", archive([("logits.npy", npy()), ("logits.npx", npy())]).replace(b"logits.npx", b"logits.npy")
    yield "wrong_sum.npz", patched(plain, directory + 16, b"XXXX")
    for name, member in {
        "npy_no_magic": b"XNUMPY" + npy()[6:], "npy_short": npy()[:9], "npy_version_9": npy()[:6] + b"\x09" + npy()[7:],
        "npy_header_outside": npy()[:8] + b"\xff\xff" + npy()[10:], "npy_fortran": npy(order="True"),
        "npy_f8": npy("<f8"), "npy_big_endian": npy(">f4"), "npy_object": npy("|O"), "npy_too_short": npy(data=bytes(23)),
        "npy_too_long": npy(data=bytes(25)), "npy_wraps": npy(shape="(4294967296, 4294967296)"),
        "npy_negative": npy(shape="(-2, -3)"), "npy_huge": npy(shape="(99999999999999999999,)"),
        "npy_dimensions": npy(shape="(" + "1, " * 9 + ")"), "npy_scalar": npy(shape="()", data=bytes(4)),
        "npy_no_elements": npy(shape="(0, 7)", data=b""), "npy_open_string": npy(text="{'descr': '<f4"),
        "npy_twice": npy(text="{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"),
        "npy_lacks": npy(text="{'descr': '<f4', 'shape': (2, 3), }"), "npy_more": npy(text="{'a': '<f4', }"),
        "npy_nested": npy(text="{'descr': ((((((((('<f4', }"), "npy_empty": b"",
    }.items():
        yield name + ".npz", archive([tokens, ("logits.npy", member)])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "fuzz" / "npz")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in cases():
        (folder / name).write_bytes(data)
