"""Where the dynamic loader looks for a library that TensorFlow opens, without a compiler's tools at hand.

TensorFlow opens CUDA's libraries by name (dlopen), so glibc searches LD_LIBRARY_PATH, the RUNPATH of
TensorFlow's own libraries, its cache, then /lib and /usr/lib: ld.so(8).
"""

import ctypes
import functools
import mmap
import os
import re
import struct
from pathlib import Path

LOAD, DYNAMIC = 1, 2  # program header types
STRINGS, RUNPATH = 5, 29  # tags of the dynamic section


@functools.cache
def runpath(library: Path) -> tuple[str, ...]:
    """The folders in a 64-bit little-endian ELF file's RUNPATH, $ORIGIN filled in; () where there is none."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            return ()
        start, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        headers = [struct.unpack_from("<IIQQQQ", data, start + index * size) for index in range(count)]
        dynamic = next(((offset, length) for kind, _, offset, _, _, length in headers if kind == DYNAMIC), None)
        if dynamic is None:
            return ()
        entries = dict(struct.iter_unpack("<QQ", data[dynamic[0] : dynamic[0] + dynamic[1] // 16 * 16]))
        if RUNPATH not in entries:
            return ()
        loads = [(offset, address, length) for kind, _, offset, address, _, length in headers if kind == LOAD]
        offset, address, _ = next(load for load in loads if load[1] <= entries[STRINGS] < load[1] + load[2])
        first = entries[STRINGS] - address + offset + entries[RUNPATH]
        text = data[first : data.find(b"\0", first)].decode()
    origin = str(library.parent)
    return tuple(dict.fromkeys(re.sub(r"\$\{?ORIGIN\}?", lambda _: origin, text).split(":")))


def search_folders(libraries: list[Path]) -> list[Path]:
    """LD_LIBRARY_PATH, then the RUNPATHs of the libraries that open others."""
    named = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    for library in libraries:
        if library.is_file():
            named += runpath(library)
    return [folder for folder in map(Path, dict.fromkeys(named)) if folder.is_dir()]


def find(soname: str, folders: list[Path]) -> str:
    """What to hand to `load`: the file in the first folder that has it, else the bare name for the cache."""
    for folder in folders:
        if (folder / soname).is_file():
            return str(folder / soname)
    return soname


@functools.cache
def cached() -> dict[str, str]:
    """Name -> file of the libraries in the loader's cache (/etc/ld.so.cache), read without running ldconfig."""
    try:
        data = Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return {}
    start = data.find(b"glibc-ld.so.cache1.1")
    if start < 0:
        return {}
    (count,) = struct.unpack_from("<I", data, start + 20)
    names = {}
    for index in range(count):  # each entry: flags, name, file, then what kernel and processor it needs
        _, name, file = struct.unpack_from("<iII", data, start + 48 + 24 * index)
        names.setdefault(_text(data, start + name), _text(data, start + file))
    return names


def load(where: str) -> ctypes.CDLL | str:
    """The opened library, or the loader's own sentence on why it can't be."""
    try:
        return ctypes.CDLL(where)
    except OSError as error:
        return str(error)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")
