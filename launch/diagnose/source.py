"""The log as a file that can be read twice, whatever it came as: plain, gzip, UTF-16, or a pipe."""

import codecs
import contextlib
import gzip
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

CHUNK = 1 << 20


@contextlib.contextmanager
def opened(path: str, standard_input: BinaryIO | None = None) -> Iterator[BinaryIO]:
    """The log at `path`, or standard input for "-", seekable and in UTF-8. Raises OSError."""
    with contextlib.ExitStack() as stack:
        if path == "-":
            log = _spooled(stack, standard_input)
        else:
            log = stack.enter_context(open(path, "rb"))
            if not log.seekable():
                log = _spooled(stack, log)
        yield _decoded(stack, log)


def _spooled(stack: contextlib.ExitStack, stream: BinaryIO) -> BinaryIO:
    spool = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(stream, spool, CHUNK)
    spool.seek(0)
    return spool


def _decoded(stack: contextlib.ExitStack, log: BinaryIO) -> BinaryIO:
    start = log.read(4)
    log.seek(0)
    if start[:2] == b"\x1f\x8b":
        return _spooled(stack, stack.enter_context(gzip.open(log)))
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):  # what `>` writes in Windows PowerShell 5
        spool = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        reader = codecs.getreader("utf-16")(log, errors="replace")
        while text := reader.read(CHUNK):
            spool.write(text.encode())
        spool.seek(0)
        return spool
    return log
