"""Record batches for a broker to choke on: every codec, whole and damaged, with checksums that hold and that do not.

Owns the bytes in the records field of a produce request. Bombs of many megabytes have tests of their own
(``test_decompression``); here they are small enough to be sent by the thousand.
"""

from __future__ import annotations

import gzip
import struct
from functools import cache
from random import Random

from crc32c import crc32c

from cluster.protocol.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD, HEADER_BYTES
from cluster.protocol.compression import compress
from cluster.protocol.records import NewRecord, build_batch

CODECS = (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD)
#: struct's letter and place of every number in the header of a batch.
FIELDS = (
    ("q", 0),  # base offset
    ("i", 8),  # length
    ("i", 12),  # leader epoch
    ("b", 16),  # magic
    ("h", 21),  # attributes
    ("i", 23),  # last offset delta
    ("q", 27),  # base timestamp
    ("q", 35),  # greatest timestamp
    ("q", 43),  # producer id
    ("h", 51),  # producer epoch
    ("i", 53),  # base sequence
    ("i", 57),  # records
)
_LENGTH_AT, _CRC_AT, _CHECKED_AT = 8, 17, 21
_TIMESTAMP = 1_700_000_000_000
#: Producers that send whole batches: a broker keeps some state of each.
PRODUCERS = 50


def extremes(code: str) -> tuple[int, ...]:
    """The numbers of a size that are likeliest to be mistaken for something else."""
    bits = 8 * struct.calcsize(code)
    low, high = (0, (1 << bits) - 1) if code in "HBI?" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    near = (low, low + 1, -2, -1, 0, 1, 2, 127, 128, 255, 256, high // 2, high - 1, high)
    return tuple(value for value in dict.fromkeys(near) if low <= value <= high)


@cache
def _good() -> tuple[bytes, ...]:
    draw = Random(13)
    found = []
    for codec in CODECS:
        for count in (1, 3, 20):
            records = [
                NewRecord(
                    _TIMESTAMP + index,
                    draw.choice((None, b"key", b"")),
                    draw.choice((None, b"", b"value" * draw.randrange(1, 40))),
                    draw.choice(((), (("header", b"x"),), (("h", None), ("h", b"")))),
                )
                for index in range(count)
            ]
            found.append(build_batch(records, codec=codec))
            producer = draw.randrange(PRODUCERS)
            found.append(build_batch(records, codec=codec, producer_id=producer, producer_epoch=0, base_sequence=0))
    return tuple(found)


@cache
def _bombs() -> tuple[bytes, ...]:
    large = [build_batch([NewRecord(_TIMESTAMP, None, bytes(1 << 21))], codec=codec) for codec in CODECS[1:]]
    many = [build_batch([NewRecord(_TIMESTAMP, None, b"")] * 5000, codec=codec) for codec in CODECS[1:]]
    return (*large, *many)


def draw_good(draw: Random) -> bytes:
    """One batch as a producer sends it."""
    return draw.choice(_good())


def draw_damaged(draw: Random) -> bytes:
    """What no producer sends: one thing of a batch is wrong, and mostly its checksum does not tell."""
    batch = bytearray(draw.choice(_bombs()) if draw.random() < 0.02 else draw_good(draw))
    match draw.randrange(8):
        case 0 | 1:
            code, at = draw.choice(FIELDS)
            struct.pack_into(f">{code}", batch, at, draw.choice(extremes(code)))
        case 2:
            batch[HEADER_BYTES:] = damaged_payload(bytes(batch[HEADER_BYTES:]), draw)
            struct.pack_into(">i", batch, _LENGTH_AT, len(batch) - 12)
        case 3:  # Another codec than the records are packed with.
            batch[22] = batch[22] & 0xF8 | draw.randrange(8)
        case 4:
            del batch[draw.randrange(len(batch)) :]
        case 5:
            batch += draw.choice((draw_good(draw), batch[:], b"\0" * 17, draw.randbytes(61)))
        case 6:
            payload = bytes(batch[HEADER_BYTES:])
            batch[HEADER_BYTES:] = payload * draw.choice((2, 3, 50))
            struct.pack_into(">i", batch, _LENGTH_AT, len(batch) - 12)
        case _:  # Bytes of records that are none, packed as records are.
            codec = draw.choice(CODECS)
            batch[22] = codec
            batch[HEADER_BYTES:] = compress(
                codec, draw.choice((b"", b"\xff" * 40, draw.randbytes(40), b"\x0e\0\0" * 99))
            )
            struct.pack_into(">i", batch, _LENGTH_AT, len(batch) - 12)
    if len(batch) >= HEADER_BYTES and draw.random() < 0.9:
        struct.pack_into(">I", batch, _CRC_AT, crc32c(bytes(batch[_CHECKED_AT:])))
    return bytes(batch)


def damaged_payload(payload: bytes, draw: Random) -> bytes:
    """Packed records with something missing, changed, or too much."""
    at = draw.randrange(len(payload) + 1)
    match draw.randrange(5):
        case 0:
            return payload[:at]
        case 1:
            return payload[:at] + draw.randbytes(draw.randrange(1, 9)) + payload[at:]
        case 2:
            return payload + gzip.compress(b"x" * 1000) * draw.randrange(1, 20)
        case 3:
            return payload[:at] + b"\xff\xff\xff\xff\x0f" + payload[at + 5 :]
        case _:
            changed = bytearray(payload or b"\0")
            for _ in range(draw.choice((1, 1, 3))):
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
            return bytes(changed)
