"""Inspect's `.eval` files: zip archives with `header.json` and one JSON document for each sample."""

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

import zstandard

from grading.formats.compression import MAX_WINDOW, check_ratio
from grading.formats.documents import read_document
from grading.formats.errors import UnknownFormat
from grading.formats.lines import LineTally

ZIP: Final = b"PK\x03\x04"
MEMBERS: Final = (b"_journal/start.json", b"header.json", b"samples/")
SAMPLE: Final = re.compile(r"samples/.{1,300}\.json")
IN_MEMORY: Final = 4 * 1024 * 1024
CHUNK: Final = 256 * 1024
ZSTD_METHOD: Final = 93
LOCAL_HEADER: Final = struct.Struct("<26xHH")
"""Of a member's own header: the lengths of its name and of its extra field, which come before its bytes."""


def is_archive(head: bytes) -> bool:
    return head.startswith(ZIP) and any(name in head for name in MEMBERS)


def read_archive(
    stream: BinaryIO, tally: LineTally, header_paths: frozenset[str], sample_paths: frozenset[str], *, max_size: int
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The records of the header, then of each sample, as `read_document` yields them. Damage is counted in `tally`.

    Raises UnknownFormat if the archive expands out of all proportion.
    """
    with SpooledTemporaryFile(IN_MEMORY) as file:
        while piece := stream.read(CHUNK):
            file.write(piece)
        try:
            with ZipFile(cast("BinaryIO", file)) as archive:
                for number, member in enumerate(_members(archive)):
                    paths = header_paths if number == 0 else sample_paths
                    with closing(_open_member(archive, member)) as content:
                        for source, record in read_document(content, tally, paths, max_size=max_size):
                            yield b"%s/%s" % (member.filename.encode(), source), record
        except UnknownFormat:
            raise
        except (BadZipFile, zlib.error, zstandard.ZstdError, EOFError, NotImplementedError, ValueError) as error:
            tally.lines += 1
            tally.torn_tail = True
            tally.problems.note(f"the archive is damaged: {str(error)[:80]}")


def _members(archive: ZipFile) -> list[ZipInfo]:
    """The header, then the samples by name. An evaluation that didn't end has the journal's start as its header."""
    members = {member.filename: member for member in archive.infolist()}
    header = members.get("header.json") or members.get("_journal/start.json")
    samples = [members[name] for name in sorted(members) if SAMPLE.fullmatch(name)]
    chosen = [*([header] if header else []), *samples]
    check_ratio(sum(member.file_size for member in chosen), sum(member.compress_size for member in chosen))
    return chosen


def _open_member(archive: ZipFile, member: ZipInfo) -> BinaryIO:
    """The member's bytes. Newer versions of Inspect compress with Zstandard, which Python's own module can't expand."""
    if member.compress_type != ZSTD_METHOD:
        return cast("BinaryIO", archive.open(member))
    file = cast("BinaryIO", archive.fp)
    file.seek(member.header_offset)
    name_length, extra_length = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    file.seek(name_length + extra_length, 1)
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    return cast("BinaryIO", decompressor.stream_reader(file.read(member.compress_size)))
