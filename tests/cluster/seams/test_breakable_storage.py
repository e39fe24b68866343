"""A storage that can be broken: its calls fail as they are told to, and a power loss takes from real files what the
model in memory says."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.seams.breakable_disk import MOST_RECORDED, BreakableDisk
from cluster.seams.breakable_storage import BreakableStorage
from cluster.seams.disk_fault import CALLS, DiskFault
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.os_storage import OsStorage
from cluster.seams.power_loss import UnsyncedLoss
from cluster.seams.randomness import derive
from cluster.seams.storage import Storage


class Bench:
    """A disk in a directory, and what it recorded."""

    def __init__(self, root: Path) -> None:
        self.root = str(root / "data")
        self.lines: list[str] = []
        self.disk = BreakableDisk(self.root, self.lines.append)
        self.storage = BreakableStorage(OsStorage(), self.disk)
        self.storage.makedirs(self.root)
        self.storage.sync_directory(self.root)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"


@pytest.fixture
def on(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def fault(*calls: str, word: str = "", number: int = errno.EIO) -> DiskFault:
    return DiskFault(frozenset(calls), word, number, derive(1, "fault"))


@pytest.mark.parametrize("call", CALLS)
def test_each_call_fails_alone_and_is_recorded(on: Bench, call: str) -> None:
    """With the error of the fault; each other call goes through."""
    path = on.path("f.log")
    file = on.storage.open(path)
    file.append(b"before")
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: on.storage.open(path).close(),
        "append": lambda: file.append(b"x"),
        "pwrite": lambda: file.pwrite(b"x", 0),
        "pread": lambda: file.pread(1, 0),
        "truncate": lambda: file.truncate(3),
        "fsync": file.fsync,
        "read": lambda: on.storage.read(path),
        "sync_directory": lambda: on.storage.sync_directory(on.root),
        "rename": lambda: on.storage.rename(path, path + ".deleted"),
        "remove": lambda: on.storage.remove(path + ".deleted"),
    }
    assert set(calls) == set(CALLS)
    on.disk.fault = fault(call, number=errno.ENOSPC)
    for name, work in calls.items():
        if name == call:
            with pytest.raises(OSError, match="No space left"):
                work()
        else:
            work()
    assert on.disk.failed == {call: 1}
    (entry,) = map(json.loads, on.lines)
    assert (entry["call"], entry["errno"]) == (call, errno.ENOSPC)


def test_what_is_sent_without_being_read_fails_as_a_read(on: Bench) -> None:
    """sendfile reads past the seam: a request for the descriptor is refused."""
    file = on.storage.open(on.path("f"))
    assert file.fileno() is not None
    on.disk.fault = fault("pread")
    with pytest.raises(OSError, match="Input/output"):
        file.fileno()


def test_other_disks_are_well(on: Bench, tmp_path: Path) -> None:
    """The journal beside the data directory is written whatever happens, and so is a neighbor with a longer name."""
    on.disk.fault = fault(*CALLS)
    for path in (str(tmp_path / "control.jsonl"), on.root + "-2/f"):
        on.storage.makedirs(path.rpartition("/")[0])
        on.storage.append_line(path, "x")
        on.storage.open(path).append(b"y")
        on.storage.write_atomic(path, b"z")
        on.storage.rename(path, path + "2")
        assert on.storage.read(path + "2") == b"z"
        on.storage.remove(path + "2")
    assert not on.lines and not on.disk.failed
    assert not on.disk.tree.nodes


def test_an_append_that_fails_may_be_done_in_part(on: Bench) -> None:
    """None of it, half or all, as on a full disk."""
    file, sizes = on.storage.open(on.path("f")), set()
    on.disk.fault = fault("append", number=errno.ENOSPC)
    for _ in range(30):
        before = file.size_bytes
        with pytest.raises(OSError, match="No space left"):
            file.append(b"12", b"34")
        sizes.add(file.size_bytes - before)
    assert sizes == {0, 2, 4}


def test_a_checkpoint_fails_at_any_of_its_steps_and_the_former_one_stays(on: Bench) -> None:
    """What is written atomically is the former file or the new one."""
    path = on.path("checkpoint")
    on.storage.write_atomic_all({path: b"old"})
    for call in ("open", "truncate", "append", "fsync", "rename"):
        on.disk.fault = fault(call)
        with pytest.raises(OSError, match="Input/output"):
            on.storage.write_atomic(path, b"new")
        on.disk.fault = None
        assert on.storage.read(path) == b"old"
    on.storage.write_atomic(path, b"new")
    assert on.storage.read(path) == b"new"


def test_slow_syncs_take_longer_and_say_how_long(on: Bench) -> None:
    """Of files and of directories; nothing else waits."""
    file = on.storage.open(on.path("f"))
    on.disk.sync_delay_s = 0.002
    file.append(b"x")
    file.fsync()
    on.storage.sync_directory(on.root)
    assert on.disk.delayed_syncs == 2
    assert on.disk.longest_sync_ns >= 2_000_000
    assert [json.loads(line)["took_ns"] >= 2_000_000 for line in on.lines] == [True, True]
    on.disk.sync_delay_s = 0.0
    file.fsync()
    assert on.disk.delayed_syncs == 2


def test_the_record_is_bounded(on: Bench) -> None:
    """A broker that tries again and again does not fill the disk; the counters have the rest."""
    on.disk.fault = fault("open")
    for _ in range(MOST_RECORDED + 5):
        with pytest.raises(OSError, match="Input/output"):
            on.storage.open(on.path("f"))
    assert len(on.lines) == MOST_RECORDED
    assert on.disk.failed["open"] == MOST_RECORDED + 5
    on.disk.fault = None
    on.storage.open(on.path("f")).close()


# Power losses


def test_without_power_no_call_returns(on: Bench) -> None:
    """A caller that has synced something never learns of it: so no one is told of what is lost."""
    file = on.storage.open(on.path("f"))
    began, ended = threading.Event(), threading.Event()

    def sync() -> None:
        began.set()
        on.disk.wait_for_power()
        file.fsync()
        ended.set()

    on.disk.lose_power(Random(1))
    thread = threading.Thread(target=sync, daemon=True)
    thread.start()
    assert began.wait(5)
    assert not ended.wait(0.05)
    assert on.disk._without_power is not None
    on.disk._without_power.set()
    assert ended.wait(5)


def test_what_is_found_counts_as_synced(tmp_path: Path) -> None:
    """And what is written since does not, until it is."""
    before = Bench(tmp_path)
    before.storage.makedirs(before.path("t-0"))
    before.storage.open(before.path("t-0/f")).append(b"found")
    on = Bench(tmp_path)
    file = on.storage.open(on.path("t-0/f"))
    assert on.disk.unsynced() == {}
    file.append(b" and new")
    assert on.disk.unsynced() == {on.path("t-0/f"): 8}
    file.fsync()
    assert on.disk.unsynced() == {}
    assert on.disk.lose_power(Random(1)) == UnsyncedLoss()


def test_a_part_of_the_tree_can_lose_its_tail_alone(on: Bench) -> None:
    """A word names the paths that are hit; the others keep even what was never synced."""
    for name in ("a.log", "b.log"):
        on.storage.open(on.path(name)).append(b"0123456789")
    on.storage.sync_directory(on.root)
    sizes = set()
    for seed in range(50):
        loss = on.disk.lose_power(Random(seed), "a.log")
        assert {*loss.cut} <= {on.path("a.log")}
        assert (loss.gone, loss.directories) == ((), ())
        sizes |= set(loss.cut.values())
    assert {0} < sizes < set(range(10))


def test_a_loss_is_written_down_and_taken_later(on: Bench) -> None:
    """From the files of a process that is gone, by another one; it says how many bytes that were."""
    cut, gone = on.path("cut"), on.path("t-0/gone")
    on.storage.makedirs(on.path("t-0"))
    for path in (cut, gone):
        on.storage.open(path).append(b"0123456789")
    loss = UnsyncedLoss.from_text(UnsyncedLoss({cut: 4}, (gone, on.path("never")), (on.path("t-0"),)).as_text())
    assert loss.take(OsStorage()) == 16
    assert OsStorage().read(cut) == b"0123"
    assert OsStorage().listdir(on.root) == ["cut"]
    with pytest.raises((KeyError, TypeError, ValueError)):
        UnsyncedLoss.from_text('{"cut": {}}')


NAMES = ("a", "b", "d/a", "d/b", "d/e/a")
DIRECTORIES = ("", "d", "d/e")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from(NAMES), st.integers(1, 9)),
        st.tuples(st.just("pwrite"), st.sampled_from(NAMES), st.integers(0, 5)),
        st.tuples(st.just("truncate"), st.sampled_from(NAMES), st.integers(0, 5)),
        st.tuples(st.just("fsync"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("sync_directory"), st.sampled_from(DIRECTORIES), st.just(0)),
        st.tuples(st.just("makedirs"), st.sampled_from(DIRECTORIES), st.just(0)),
        st.tuples(st.just("write_atomic"), st.sampled_from(NAMES), st.integers(1, 9)),
        st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("rename"), st.sampled_from(("d/e",)), st.sampled_from(("x", "d/x"))),
        st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("remove_tree"), st.sampled_from(DIRECTORIES[1:]), st.just(0)),
    ),
    max_size=25,
)


@given(operations=OPERATIONS)
def test_a_power_loss_leaves_what_the_model_in_memory_says(
    operations: list[tuple[str, str, int | str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both keep the same model: after the same calls, the same files are left with the same bytes."""
    on = Bench(tmp_path_factory.mktemp("disk"))
    memory = MemoryStorage()
    memory.makedirs("/data")
    for each in ("/", "/data"):
        memory.sync_directory(each)
    for operation in operations:
        if operation[:2] == ("rename", "d/e") and memory.exists(f"/data/{operation[2]}"):
            continue  # a directory replaces none that has files, which the one in memory does not know
        outcomes = [_done(storage, root, operation) for storage, root in ((on.storage, on.root), (memory, "/data"))]
        assert outcomes[0] == outcomes[1], operation
    loss = on.disk.lose_power(Nothing())
    loss.take(OsStorage())
    memory.power_loss()
    assert dict(_files(OsStorage(), on.root)) == dict(_files(memory, "/data"))


class Nothing(Random):
    """Spares nothing."""

    def choice(self, _seq: object) -> int:  # type: ignore[override]
        return 0


def _done(storage: Storage, root: str, operation: tuple[str, str, int | str]) -> str:
    """One call; how it ended."""
    call, name, value = operation
    path = f"{root}/{name}".rstrip("/")
    data = b"0123456789"[: value if isinstance(value, int) else 0]
    try:
        if call in ("append", "pwrite", "truncate", "fsync"):
            file = storage.open(path)
            try:
                if call == "append":
                    file.append(data)
                elif call == "pwrite":
                    file.pwrite(b"!", int(value))
                elif call == "truncate":
                    file.truncate(min(int(value), file.size_bytes))
                else:
                    file.fsync()
            finally:
                file.close()
        elif call == "write_atomic":
            storage.write_atomic(path, data)
        elif call == "rename":
            storage.rename(path, f"{root}/{value}")
        else:
            getattr(storage, call)(path)
    except OSError as error:
        return type(error).__name__
    return "done"


def _files(storage: Storage, root: str) -> Iterator[tuple[str, bytes]]:
    for directory in ("", "/d", "/d/e", "/x", "/d/x"):
        for name in storage.listdir(root + directory):
            path = f"{root}{directory}/{name}"
            try:
                data = storage.read(path)
            except OSError:
                yield path.removeprefix(root), b"a directory"
            else:
                yield path.removeprefix(root), data
