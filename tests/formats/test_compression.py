"""Compressed logs are read like plain ones, and bombs are refused before they take memory."""

import io
import tracemalloc
import zipfile

import pytest
import zstandard

from grading.formats import UnknownFormat, read, recognise
from tests.formats.logs import FIXTURES, codex_item, codex_meta, jsonl

pytestmark = pytest.mark.pure

LOG = (FIXTURES / "codex-019ed628.jsonl").read_bytes()
MEBIBYTE = 1024 * 1024


def compress(*pieces: bytes, level: int = 3) -> bytes:
    target = io.BytesIO()
    with zstandard.ZstdCompressor(level=level, write_content_size=False).stream_writer(target, closefd=False) as writer:
        for piece in pieces:
            writer.write(piece)
    return target.getvalue()


def eval_file(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def test_compressed_log_is_read_like_the_plain_one():
    plain, compressed = read(io.BytesIO(LOG)), read(io.BytesIO(compress(LOG)), "rollout.jsonl.zst")
    assert list(compressed) == list(plain)
    assert (compressed.header, compressed.report) == (plain.header, plain.report)
    assert compressed.is_compressed
    assert not plain.is_compressed
    assert recognise(io.BytesIO(compress(LOG))).format == "codex"


def test_log_of_several_frames_is_read_whole():
    half = LOG.index(b"\n", len(LOG) // 2) + 1
    whole = compress(LOG[:half]) + compress(LOG[half:])
    assert len(list(read(io.BytesIO(whole)))) == len(list(read(io.BytesIO(LOG))))


def test_log_whose_end_is_missing_is_read_as_far_as_it_goes():
    half = LOG.index(b"\n", len(LOG) // 2) + 1
    data = compress(LOG[:half]) + compress(LOG[half:])[:200]
    assert len(list(read(io.BytesIO(data)))) == len(list(read(io.BytesIO(LOG[:half]))))


def test_damage_is_told():
    damaged = bytearray(compress(LOG))
    damaged[40:60] = b"\xff" * 20
    with pytest.raises(UnknownFormat, match="damaged"):
        list(read(io.BytesIO(bytes(damaged))))


@pytest.mark.parametrize("filler", [b"\x00", b'{"type": "other"}\n'], ids=["zeros", "lines"])
def test_bomb_is_refused_without_memory(filler: bytes):
    """Some kilobytes that expand to half a gigabyte, after a log's proper beginning."""
    piece = filler * (8 * MEBIBYTE // len(filler))
    start = jsonl(codex_meta(), *[codex_item("message", role="user", content=str(n)) for n in range(40)])
    bomb = compress(start, *[piece] * 64, level=19)
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(UnknownFormat, match=r"beyond any log|another kind"):
            list(read(io.BytesIO(bomb)))
        assert tracemalloc.get_traced_memory()[1] < 60 * MEBIBYTE
    finally:
        tracemalloc.stop()


def test_archive_bomb_is_refused():
    header = b'{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}'
    bomb = eval_file(("header.json", header), ("samples/1_epoch_1.json", b" " * (32 * MEBIBYTE)))
    assert len(bomb) < 100_000
    with pytest.raises(UnknownFormat, match="beyond any log"):
        list(read(io.BytesIO(bomb)))


def test_damaged_archive_is_read_as_far_as_it_goes():
    header = b'{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}'
    whole = eval_file(("header.json", header), ("samples/1_epoch_1.json", b'{"messages": []}'))
    reader = read(io.BytesIO(whole[:-30]))
    assert list(reader) == []
    assert reader.report.torn_tail
