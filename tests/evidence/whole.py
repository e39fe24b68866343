"""Ways to tamper with a file, or with bytes of it, whatever it holds. Directories are removed, copied and swapped, too.

Owns no knowledge of formats. Each way changes one thing and says what it did, or returns None if it cannot.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

#: Changes one thing of this file, or returns None if there is nothing of the kind to change.
Way = Callable[[Path, Random], str | None]

#: A mishap takes at most this much of a file: a run's files are small.
MOST_BYTES = 400


# ------------------------------------------------------------------------------------------------- files


def remove(path: Path, _random: Random) -> str:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return "removed"


def empty(path: Path, _random: Random) -> str | None:
    if not path.stat().st_size:
        return None
    path.write_bytes(b"")
    return "emptied"


def fill(path: Path, random: Random) -> str | None:
    """Other bytes, as many as there were."""
    data = path.read_bytes()
    if not data:
        return None
    other = random.choice([bytes(len(data)), random.randbytes(len(data)), data[::-1]])
    if other == data:
        return None
    path.write_bytes(other)
    return "all of its bytes replaced"


def copy_beside(path: Path, _random: Random) -> str:
    name = f"{path.stem}-copy{path.suffix}"
    if path.is_dir():
        shutil.copytree(path, path.with_name(name))
    else:
        shutil.copy(path, path.with_name(name))
    return f"copied as {name}"


def swap_with(path: Path, peers: Iterable[Path], random: Random) -> str | None:
    """Exchange it with one of its peers, which are of the same run and of the same kind, and hold something else."""
    others = [each for each in peers if each != path and _content(each) != _content(path)]
    if not others:
        return None
    other = random.choice(others)
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)
    return f"swapped with {os.path.relpath(other, path.parent)}"


def _content(path: Path) -> object:
    if path.is_file():
        return path.read_bytes()
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


# ------------------------------------------------------------------------------------------------- bytes


def cut_short(path: Path, random: Random) -> str | None:
    size = path.stat().st_size
    if size < 2:
        return None
    kept = random.randrange(1, size)
    with path.open("r+b") as file:
        file.truncate(kept)
    return f"cut to {kept} of {size} bytes"


def remove_bytes(path: Path, random: Random) -> str | None:
    data = path.read_bytes()
    if not data:
        return None
    at, count = random.randrange(len(data)), random.choice([1, 1, 2, 4, 8, 61])
    path.write_bytes(data[:at] + data[at + count :])
    return f"{len(data[at : at + count])} bytes at {at} removed"


def repeat_end(path: Path, random: Random) -> str | None:
    data = path.read_bytes()
    if not data:
        return None
    tail = data[-random.randrange(1, min(len(data), MOST_BYTES) + 1) :]
    path.write_bytes(data + tail)
    return f"its last {len(tail)} bytes repeated"


def repeat_bytes(path: Path, random: Random) -> str | None:
    data = path.read_bytes()
    if not data:
        return None
    at, count = random.randrange(len(data)), random.randrange(1, MOST_BYTES)
    path.write_bytes(data[: at + count] + data[at:])
    return f"{len(data[at : at + count])} bytes at {at} repeated"


def flip_bit(path: Path, random: Random) -> str | None:
    data = bytearray(path.read_bytes())
    if not data:
        return None
    at = random.randrange(len(data))
    data[at] ^= 1 << random.randrange(8)
    path.write_bytes(bytes(data))
    return f"a bit of byte {at} flipped"


def insert_byte(path: Path, random: Random) -> str:
    data = path.read_bytes()
    at = random.randrange(len(data) + 1)
    path.write_bytes(data[:at] + bytes([random.randrange(256)]) + data[at:])
    return f"a byte inserted at {at}"


def swap_bytes(path: Path, random: Random) -> str | None:
    data = bytearray(path.read_bytes())
    if len(data) < 2:
        return None
    one, other = random.sample(range(len(data)), 2)
    if data[one] == data[other]:
        return None
    data[one], data[other] = data[other], data[one]
    path.write_bytes(bytes(data))
    return f"bytes {one} and {other} swapped"
