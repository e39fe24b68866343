"""What both forms of Storage promise, on real files and in memory."""

from __future__ import annotations

import os

import pytest

from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.os_storage import OsStorage
from cluster.seams.storage import Storage, payload_size, range_of


@pytest.fixture(params=["os", "memory"])
def tree(request, tmp_path) -> tuple[Storage, str]:
    """A storage, and a directory in it."""
    if request.param == "os":
        return OsStorage(), str(tmp_path)
    storage = MemoryStorage()
    storage.makedirs("/data")
    return storage, "/data"


def test_appends_reads_and_truncations(tree):
    """Appends go to the end, reads stop there, a truncation moves it."""
    storage, root = tree
    file = storage.open(f"{root}/f")
    assert file.path == f"{root}/f"
    assert file.append(b"abc") == 3
    assert file.append(b"de", bytearray(b"f"), memoryview(b"gh")) == 5
    assert file.append() == 0
    assert file.size_bytes == 8
    assert file.pread(3, 2) == b"cde"
    assert file.pread(100, 6) == b"gh"
    assert file.pread(5, 8) == b""
    file.truncate(4)
    assert file.size_bytes == 4
    assert file.append(b"XY") == 2
    assert file.pread(10, 0) == b"abcdXY"
    file.truncate(8)
    assert file.pread(10, 0) == b"abcdXY\0\0"
    file.close()
    file.close()
    assert storage.read(f"{root}/f") == b"abcdXY\0\0"


def test_pwrite_overwrites_and_extends(tree):
    """pwrite goes where it is told, also beyond the end."""
    storage, root = tree
    file = storage.open(f"{root}/f")
    file.append(b"0123456789")
    file.pwrite(b"ab", 3)
    assert file.size_bytes == 10
    file.pwrite(b"cd", 12)
    assert file.pread(20, 0) == b"012ab56789\0\0cd"
    assert file.append(b"!") == 1
    assert file.size_bytes == 15
    file.fsync()
    file.close()


def test_a_file_that_exists_is_opened_at_its_end(tree):
    """Opening again knows the size; without create an absent file is an error."""
    storage, root = tree
    storage.open(f"{root}/f").append(b"abc")
    again = storage.open(f"{root}/f", create=False)
    assert again.size_bytes == 3
    again.append(b"d")
    assert again.pread(9, 0) == b"abcd"
    with pytest.raises(FileNotFoundError):
        storage.open(f"{root}/absent", create=False)
    with pytest.raises(FileNotFoundError):
        storage.open(f"{root}/no/such/directory")
    with pytest.raises(FileNotFoundError):
        storage.read(f"{root}/absent")


def test_directories(tree):
    """Made with their parents, listed sorted, renamed and removed with all that is in them."""
    storage, root = tree
    storage.makedirs(f"{root}/a/b")
    storage.makedirs(f"{root}/a/b")
    storage.open(f"{root}/a/b/2").append(b"2")
    storage.open(f"{root}/a/b/1").append(b"1")
    assert storage.listdir(f"{root}/a") == ["b"]
    assert storage.listdir(f"{root}/a/b") == ["1", "2"]
    assert storage.listdir(f"{root}/absent") == []
    storage.rename(f"{root}/a", f"{root}/z")
    assert not storage.exists(f"{root}/a/b/1")
    assert storage.read(f"{root}/z/b/1") == b"1"
    assert storage.exists(f"{root}/z/b")
    storage.remove_tree(f"{root}/z")
    storage.remove_tree(f"{root}/z")
    assert not storage.exists(f"{root}/z")
    assert storage.listdir(root) == []
    with pytest.raises(FileNotFoundError):
        storage.rename(f"{root}/z", f"{root}/y")


def test_files_are_replaced_renamed_and_removed(tree):
    """write_atomic replaces whole and leaves no other file; rename replaces its target."""
    storage, root = tree
    storage.write_atomic(f"{root}/f", b"a longer content")
    storage.write_atomic(f"{root}/f", b"short")
    assert storage.read(f"{root}/f") == b"short"
    assert storage.listdir(root) == ["f"]
    storage.write_atomic(f"{root}/g", b"g")
    storage.rename(f"{root}/g", f"{root}/f")
    assert storage.read(f"{root}/f") == b"g"
    storage.remove(f"{root}/f")
    storage.remove(f"{root}/f")
    assert not storage.exists(f"{root}/f")


def test_many_files_are_replaced_together(tree):
    """write_atomic_all does for each what write_atomic does, also in several directories."""
    storage, root = tree
    storage.makedirs(f"{root}/a")
    storage.makedirs(f"{root}/b")
    storage.write_atomic(f"{root}/a/f", b"a longer content")
    files = {f"{root}/a/f": b"short", f"{root}/a/g": b"g", f"{root}/b/f": b""}
    storage.write_atomic_all(files)
    storage.write_atomic_all({})
    assert {path: storage.read(path) for path in files} == files
    assert (storage.listdir(f"{root}/a"), storage.listdir(f"{root}/b")) == (["f", "g"], ["f"])
    with pytest.raises(FileNotFoundError):
        storage.write_atomic_all({f"{root}/nowhere/f": b"x"})


def test_lines(tree):
    """append_line adds one line each, with one newline."""
    storage, root = tree
    storage.append_line(f"{root}/journal", "one")
    storage.append_line(f"{root}/journal", "two\n")
    assert storage.read(f"{root}/journal") == b"one\ntwo\n"


def test_free_bytes(tree):
    """Every storage says how much room it has: more than none here."""
    storage, root = tree
    assert storage.free_bytes(root) > 0


def test_an_open_file_outlives_its_removal(tree):
    """As a descriptor does: a reader that is under way is not disturbed."""
    storage, root = tree
    file = storage.open(f"{root}/f")
    file.append(b"abc")
    storage.remove(f"{root}/f")
    assert file.pread(3, 0) == b"abc"
    file.close()
    with pytest.raises(OSError, match=r"closed|Bad file"):
        file.pread(1, 0)
    with pytest.raises(OSError, match=r"closed|Bad file"):
        file.append(b"x")


def test_payload_sizes():
    """Ranges count as their size, buffers as their length."""
    file = MemoryStorage().open("f")
    assert payload_size([b"abc", range_of(file, 10, 20), memoryview(b"x")]) == 24


def test_descriptor_of_a_closed_file_is_an_error(tmp_path):
    """The number of a closed descriptor may belong to another file: it is never given out."""
    file = OsStorage().open(str(tmp_path / "f"))
    descriptor = file.fileno()
    assert descriptor is not None and os.fstat(descriptor).st_size == 0
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.fileno()
    assert repr(file) == f"OsFile({tmp_path / 'f'}, 0 bytes, closed)"


def test_memory_has_no_descriptor():
    """Where there is none, sendfile is not to be had."""
    assert MemoryStorage().open("f").fileno() is None


def test_short_writes_are_completed(tmp_path, monkeypatch):
    """A kernel that takes 3 bytes at a time gets all of them, in order."""
    real_pwrite, real_pwritev = os.pwrite, os.pwritev
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real_pwrite(fd, bytes(data)[:3], at))
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: real_pwritev(fd, [b"".join(map(bytes, parts))[:4]], at))
    file = OsStorage().open(str(tmp_path / "f"))
    assert file.append(b"0123456789") == 10
    assert file.append(b"abcde", b"fgh") == 8
    assert file.pread(99, 0) == b"0123456789abcdefgh"
    file.close()


def test_more_buffers_than_the_kernel_takes(tmp_path):
    """Two thousand buffers are one append."""
    file = OsStorage().open(str(tmp_path / "f"))
    parts = [b"%04d" % number for number in range(2000)]
    assert file.append(*parts) == 8000
    assert file.pread(8000, 0) == b"".join(parts)
    file.close()


def test_a_failed_append_counts_for_nothing(tmp_path, monkeypatch):
    """After half a write fails, the size is as before and the next append overwrites the half."""
    file = OsStorage().open(str(tmp_path / "f"))
    file.append(b"good")
    real_pwrite = os.pwrite
    calls = []

    def failing(descriptor, data, at):
        calls.append(at)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real_pwrite(descriptor, bytes(data)[:2], at)

    monkeypatch.setattr(os, "pwrite", failing)
    with pytest.raises(OSError, match="No space"):
        file.append(b"halfway")
    monkeypatch.undo()
    assert file.size_bytes == 4
    file.append(b"!")
    assert file.pread(5, 0) == b"good!"
    file.close()


def test_a_lock_is_for_one(tree):
    """A second one is refused until the first is released; releasing twice does nothing."""
    storage, root = tree
    lock = storage.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        storage.lock(f"{root}/.lock")
    assert storage.exists(f"{root}/.lock")
    other = storage.lock(f"{root}/other")
    lock.release()
    lock.release()
    storage.lock(f"{root}/.lock").release()
    other.release()
    with pytest.raises(OSError, match=r"no such|No such"):
        storage.lock(f"{root}/no/such/directory")
