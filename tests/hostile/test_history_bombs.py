"""Histories of some kilobytes that claim gigabytes: refused by what they say, before anything is decompressed (M4)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from cluster.seams.clock import ManualClock
from verifier.accounts.summing import account_of
from verifier.evidence.arrow_claims import MAX_MESSAGE_BYTES, grouped
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import (
    PART_MESSAGES,
    SCHEMA,
    HistoryRow,
    HistoryWriter,
    read_history,
    scan_history,
    stream_history,
)
from verifier.operations.export import export_run

#: Runs ``gapless dump``, and says in the end how much memory it took.
DUMP = """
import re, sys
from chaos.commands.main import run_command
status = run_command(["dump", sys.argv[1]])
kilobytes = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)
sys.stderr.write(f"peak {int(kilobytes) >> 10} MB\\n")
sys.exit(status)
"""
#: Python and Arrow take 80 MB of it.
MOST_MB = 200


def zeros(path: Path, rows: int, batches: int = 1, compression: Literal["zstd"] | None = "zstd") -> Path:
    """A history of rows of nothing: each number is 0, each text is empty."""
    columns: list[pa.Array[Any]] = []
    for field in SCHEMA:
        is_text = pa.types.is_string(field.type)
        values = bytes(4 * (rows + 1) if is_text else field.type.bit_width // 8 * rows)
        buffers = [None, pa.py_buffer(values), *([pa.py_buffer(b"")] if is_text else [])]
        columns.append(pa.Array.from_buffers(field.type, rows, buffers))
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(str(path), SCHEMA, options=options) as stream:
        for _ in range(batches):
            stream.write_batch(batch)
    return path


def test_dump_refuses_a_history_that_claims_too_much(tmp_path: Path) -> None:
    """37 KB of 8 million rows took 4.1 GB (here it is a quarter): one clear line, status 1 as for other damage."""
    bomb = zeros(tmp_path / "bomb.arrow", 2_000_000)
    assert bomb.stat().st_size < 12_000
    argv = [sys.executable, "-c", DUMP, str(bomb)]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    [line, peak] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.endswith("a message claims 2,000,000 rows; at most 1,000,000 are read")
    assert int(peak.split()[1]) < MOST_MB, peak


READERS: list[Callable[[Path], object]] = [
    read_history,
    scan_history,
    lambda path: list(stream_history(path)[1]),
    lambda path: export_run(path.parent),
]


@pytest.mark.parametrize("read", READERS, ids=["whole", "scanned", "in parts", "exported"])
def test_no_reader_decompresses_what_claims_too_much(tmp_path: Path, read: Callable[[Path], object]) -> None:
    """Arrow allocates what a message claims: none gets as far as that. 990,000 rows are few enough, but too large."""
    bomb = zeros(tmp_path / "bomb.arrow", 990_000)
    before_bytes = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    peak_bytes = pool.max_memory() or 0
    with pytest.raises(HistoryError, match=r"a message claims \d+,\d+,\d+ bytes when it is decompressed"):
        read(bomb)
    assert pa.total_allocated_bytes() <= before_bytes + 1_000_000
    assert (pool.max_memory() or 0) <= max(peak_bytes, before_bytes + 1_000_000)


def test_the_verdict_is_that_the_history_is_damaged(tmp_path: Path) -> None:
    """Who counts its rows says so, and goes on."""
    account = account_of(zeros(tmp_path / "bomb.arrow", 2_000_000))
    assert account.state == "damaged"
    assert "claims 2,000,000 rows" in (account.error or "")


def test_many_messages_that_are_just_small_enough_are_read_in_turn(tmp_path: Path) -> None:
    """Together they would take a gigabyte: a part has as many as one may have alone."""
    rows = 500_000
    path = zeros(tmp_path / "large.arrow", rows, batches=4)
    sizes = [sum(column.nbytes for column in part.columns) for part in stream_history(path)[1]]
    assert len(sizes) == 4
    assert all(size < 1.1 * MAX_MESSAGE_BYTES for size in sizes)


def test_what_our_writers_write_is_read_as_ever(tmp_path: Path) -> None:
    """Parts of 16 messages, whether a message is compressed or not."""
    writer = HistoryWriter(tmp_path / "p.arrow", "p", ManualClock())
    for number in range(40):
        writer.append_durably(HistoryRow("note", "ok", error="x" * 1000 * number))
    writer.close()
    assert [part.num_rows for part in stream_history(tmp_path / "p.arrow")[1]] == [PART_MESSAGES, PART_MESSAGES, 9]
    assert read_history(tmp_path / "p.arrow")["error"].to_pylist()[39] == "x" * 39_000
    plain = zeros(tmp_path / "plain.arrow", 1000, batches=3, compression=None)
    assert read_history(plain).num_rows == 3000


def test_damaged_claims_are_damage(tmp_path: Path) -> None:
    """Bytes of a message's metadata that are anything else: the message is refused, or accepted, and nothing else."""
    data = zeros(tmp_path / "small.arrow", 10).read_bytes()
    begin = SCHEMA.serialize().size
    refused: list[str] = []
    for cut in range(0, 600, 3):
        damaged = bytearray(data[begin:])
        damaged[8 + cut : 12 + cut] = b"\xff\xff\xff\x7f"
        try:
            grouped([memoryview(damaged)], 1, "small")
        except HistoryError as error:
            refused.append(str(error))
    assert 0 < len(refused) < 200
    assert all(words.startswith("small: ") for words in refused)


@pytest.mark.parametrize("version", ["V4", "V5"])
def test_a_message_cannot_be_compressed_in_another_way(tmp_path: Path, version: str) -> None:
    """Arrow 0.17 told the codec in the metadata of the message, and Arrow still reads that: it is refused."""
    columns = [pa.array(["" if pa.types.is_string(field.type) else 0], field.type) for field in SCHEMA]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion[version])
    path = tmp_path / "other.arrow"
    with pa.ipc.new_stream(str(path), SCHEMA, options=options) as stream:
        stream.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "ZSTD"})
    with pytest.raises(HistoryError, match="of another version than gapless writes"):
        read_history(path)
