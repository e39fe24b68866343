"""MemoryStorage's model of a power loss."""

from __future__ import annotations

import pytest

from cluster.seams.memory_storage import MemoryStorage


def test_unsynced_bytes_are_lost():
    """What was appended after the last fsync goes; a file never synced is left empty."""
    storage = MemoryStorage()
    kept = storage.open("kept")
    kept.append(b"safe")
    kept.fsync()
    kept.append(b" and not")
    storage.open("never").append(b"synced")
    storage.sync_directory(".")
    storage.power_loss()
    assert storage.read("kept") == b"safe"
    assert storage.read("never") == b""
    assert repr(storage) == "MemoryStorage(2 files)"


def test_a_file_without_a_synced_name_is_lost():
    """However well its bytes were synced: its own directory must be, and all above it."""
    storage = MemoryStorage()
    storage.makedirs("x/y")
    for path in ("f", "x/y/f"):
        file = storage.open(path)
        file.append(b"safe")
        file.fsync()
    storage.sync_directory("x/y")
    storage.power_loss()
    assert not storage.exists("f") and not storage.exists("x")
    storage.makedirs("x/y")
    for directory in (".", "x"):
        storage.sync_directory(directory)
    storage.write_atomic("x/y/f", b"safe")
    storage.rename("x/y/f", "x/y/g")
    storage.power_loss()
    assert storage.read("x/y/g") == b"safe" and not storage.exists("x/y/f")
    storage.remove("x/y/g")
    storage.open("x/y/g").fsync()
    storage.power_loss()
    assert not storage.exists("x/y/g"), "the name is a new one"
    with pytest.raises(FileNotFoundError):
        storage.sync_directory("z")


def test_some_unsynced_bytes_may_survive():
    """A torn tail: the caller says how many bytes of each file were on the disk by chance."""
    storage = MemoryStorage()
    file = storage.open("a")
    file.append(b"safe")
    file.fsync()
    file.append(b"0123456789")
    storage.open("b").append(b"xyz")
    seen = []

    def survivors(path: str, unsynced: int) -> int:
        seen.append((path, unsynced))
        return 3 if path == "a" else 0

    storage.power_loss(survivors)
    assert seen == [("a", 10), ("b", 3)]
    assert storage.read("a") == b"safe012"
    assert not storage.exists("b")


def test_an_atomic_write_survives_and_a_plain_rename_does_not():
    """write_atomic is synced; a rename alone moves a file whose bytes may be lost."""
    storage = MemoryStorage()
    storage.write_atomic("a", b"atomic")
    storage.open("t").append(b"unsynced")
    storage.rename("t", "b")
    storage.power_loss()
    assert storage.read("a") == b"atomic"
    assert not storage.exists("b")


def test_truncation_and_overwriting_unsync():
    """Cut bytes do not come back, and what was written over synced bytes is not safe."""
    storage = MemoryStorage()
    file = storage.open("a")
    file.append(b"0123456789")
    file.fsync()
    storage.sync_directory(".")
    file.truncate(6)
    file.append(b"new")
    storage.power_loss()
    assert storage.read("a") == b"012345"
    file = storage.open("a")
    file.fsync()
    file.pwrite(b"XX", 2)
    storage.power_loss()
    assert storage.read("a") == b"01"


def test_files_that_were_open_are_cut_off():
    """A process that is dead writes nothing: its handles reach nobody any more."""
    storage = MemoryStorage()
    file = storage.open("a")
    file.append(b"safe")
    file.fsync()
    storage.sync_directory(".")
    storage.power_loss()
    file.append(b" from the dead")
    file.fsync()
    assert storage.read("a") == b"safe"


def test_a_crash_alone_loses_nothing():
    """Without power loss everything written is there for whoever opens it next."""
    storage = MemoryStorage()
    storage.open("a").append(b"unsynced")
    assert storage.open("a").pread(99, 0) == b"unsynced"
    assert storage.open("a").size_bytes == 8


def test_free_bytes_count_down():
    """The capacity less what is stored."""
    storage = MemoryStorage(capacity_bytes=100)
    storage.open("a").append(bytes(30))
    assert storage.free_bytes("a") == 70
    storage.open("a").append(bytes(90))
    assert storage.free_bytes("a") == 0


def test_a_removed_directory_is_gone():
    """Files cannot be made in it any more."""
    storage = MemoryStorage()
    storage.makedirs("x/y")
    storage.remove_tree("x")
    with pytest.raises(FileNotFoundError):
        storage.open("x/y/f")
