"""A disk that fails: at the calls and paths it is told to, in part where a disk does, and it tells of epochs."""

from __future__ import annotations

import asyncio
import errno

import pytest

from cluster.seams.disk_fault import CALLS, DiskFault
from cluster.seams.randomness import derive
from tests.simulation.events import EventLog
from tests.simulation.faulty_storage import FaultyStorage
from tests.support.virtual_time import run

LOG = "/data/t-0/00000000000000000000.log"


def fault(*calls: str, word: str = "/data", number: int = errno.EIO) -> DiskFault:
    return DiskFault(frozenset(calls), word, number, derive(1, "fault"))


def on_a_disk(check) -> None:
    """Run ``check`` with a disk that has one file; its events need a loop for their time."""

    async def main() -> None:
        storage = FaultyStorage(1, EventLog())
        storage.makedirs("/data/t-0")
        storage.open(LOG).append(b"before")
        check(storage)
        await asyncio.sleep(0)

    run(main())


@pytest.mark.parametrize("call", CALLS)
def test_each_call_can_fail(call: str) -> None:
    """With the error of the fault, which is counted; every other call goes through."""

    def check(storage: FaultyStorage) -> None:
        file = storage.open(LOG)
        calls = {
            "open": lambda: storage.open(LOG),
            "append": lambda: file.append(b"x"),
            "pwrite": lambda: file.pwrite(b"x", 0),
            "pread": lambda: file.pread(1, 0),
            "truncate": lambda: file.truncate(3),
            "fsync": file.fsync,
            "read": lambda: storage.read(LOG),
            "sync_directory": lambda: storage.sync_directory("/data/t-0"),
            "rename": lambda: storage.rename(LOG, LOG + ".deleted"),
            "remove": lambda: storage.remove(LOG + ".deleted"),
        }
        storage.fault = fault(call, number=errno.ENOSPC)
        for name, work in calls.items():
            if name == call:
                with pytest.raises(OSError, match="No space left"):
                    work()
            else:
                work()
        assert storage.failed == 1

    on_a_disk(check)


def test_only_what_is_meant_fails() -> None:
    """Neither other paths, nor the journal, nor a look of the simulation itself, nor the next life of the process."""

    def check(storage: FaultyStorage) -> None:
        storage.fault = fault(*CALLS, word="checkpoint")
        assert storage.read(LOG) == b"before"
        storage.makedirs("/node")
        storage.append_line("/node/notes-of-a-checkpoint", "x")
        storage.fault = fault(*CALLS)
        with storage.well():
            assert storage.read(LOG) == b"before"
        with pytest.raises(OSError, match="Input/output"):
            storage.read(LOG)
        again = storage.survivor()
        assert (again.failed, again.fault is not None, storage.fault) == (0, True, None)

    on_a_disk(check)


def test_an_append_that_fails_may_be_done_in_part() -> None:
    """None of it, half or all: what a full disk leaves."""

    def check(storage: FaultyStorage) -> None:
        file, sizes = storage.open(LOG), set()
        storage.fault = fault("append")
        for _ in range(30):
            before = file.size_bytes
            with pytest.raises(OSError, match="Input/output"):
                file.append(b"12", b"34")
            sizes.add(file.size_bytes - before)
        assert sizes == {0, 2, 4}

    on_a_disk(check)
