"""The port by which a process's disk and clock are broken: off unless configured, on this machine alone."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.broker.fault_port import FaultPort, breakable_seams
from cluster.config.broker import validate
from cluster.seams.breakable_disk import RECORD, BreakableDisk
from cluster.seams.clock import SystemClock
from cluster.seams.json_port import JsonPort, ask_json
from cluster.seams.os_storage import OsStorage
from cluster.seams.power_loss import POWER_LOSS, UnsyncedLoss
from cluster.seams.settable_clock import SettableClock

ASK_S = 5.0


class Bench:
    """A fault port over a disk in a directory."""

    def __init__(self, node: Path) -> None:
        self.node = node
        config = validate(
            {"broker.id": "1", "log.dirs": str(node / "data"), "zookeeper.connect": "x:1", "gapless.fault.port": "0"}
        )
        self.storage, self.clock, port = breakable_seams(config, str(node), OsStorage())
        assert isinstance(port, FaultPort)
        self.port = port
        self.storage.makedirs(str(node / "data"))
        self.path = str(node / "data" / "f")

    def ask(self, **request: object) -> dict[str, object] | None:
        return ask_json(f"127.0.0.1:{self.port.port}", request, ASK_S)


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    try:
        yield bench
    finally:
        bench.port.close()


def test_without_the_key_there_is_no_port_and_no_wrapper(tmp_path: Path) -> None:
    """A broker has the machine's own storage and clock: what is off costs nothing."""
    storage = OsStorage()
    config = validate({"broker.id": "1", "log.dirs": str(tmp_path), "zookeeper.connect": "x:1"})
    assert config["gapless.fault.port"] == -1
    found, clock, port = breakable_seams(config, str(tmp_path), storage)
    assert found is storage
    assert type(clock) is SystemClock
    assert port is None


def test_it_listens_on_this_machine_alone(on: Bench) -> None:
    """No configuration makes it reachable from elsewhere."""
    assert on.port._port._server.server_address[0] == "127.0.0.1"


def test_calls_fail_while_they_are_told_to(on: Bench) -> None:
    """The counters say how many did, and the record beside the data directory has each."""
    file = on.storage.open(on.path)
    on.ask(do="fail", calls=["append"], errno="ENOSPC", seed=1)
    with pytest.raises(OSError, match="No space left"):
        file.append(b"x")
    seen = on.ask(do="see")
    assert seen is not None
    assert (seen["failed_calls"], seen["is_well"]) == (1, False)
    assert f'"errno": {errno.ENOSPC}' in (on.node / RECORD).read_text()
    healed = on.ask(do="heal")
    assert healed is not None
    assert healed["is_well"] is True
    file.append(b"x")


def test_syncs_are_slow_while_they_are_told_to_be(on: Bench) -> None:
    """How long they took is seen, then and afterwards."""
    file = on.storage.open(on.path)
    on.ask(do="delay-syncs", delay_ms=20)
    file.fsync()
    seen = on.ask(do="see")
    assert seen is not None
    assert (seen["delayed_syncs"], seen["is_well"]) == (1, False)
    assert isinstance(seen["longest_sync_ms"], int)
    assert seen["longest_sync_ms"] >= 20
    on.ask(do="delay-syncs", delay_ms=0)
    file.fsync()
    after = on.ask(do="see")
    assert after is not None
    assert (after["syncs"], after["delayed_syncs"], after["is_well"]) == (2, 1, True)


def test_the_time_of_day_is_set_and_drifts(on: Bench) -> None:
    """The monotonic clock is not touched."""
    machine = SystemClock()
    assert isinstance(on.clock, SettableClock)

    def ahead_ms() -> float:
        before = on.clock.monotonic_ns() - machine.monotonic_ns()
        assert abs(before) < 1_000_000_000
        return (on.clock.wall_ns() - machine.wall_ns()) / 1e6

    on.ask(do="set-clock", ahead_ms=-60_000)
    assert ahead_ms() == pytest.approx(-60_000, abs=1_000)
    assert on.clock.wall_ms() == pytest.approx(machine.wall_ms() - 60_000, abs=1_000)
    on.ask(do="set-clock", ahead_ms=0, drift_ppm=0)
    assert ahead_ms() == pytest.approx(0, abs=1_000)
    on.clock.skew.set(1_000, 500_000, now_ns=2_000_000_000)
    assert on.clock.skew.ahead_ns(4_000_000_000) == 2_000_000_000


def test_a_process_without_power_ends_and_leaves_what_it_loses(on: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SIGKILL: nothing of it continues; the next one takes what was not synced."""
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *what: killed.append(what))
    file = on.storage.open(on.path)
    file.append(b"synced")
    file.fsync()
    on.storage.sync_directory(str(on.node / "data"))
    file.append(b", and not")
    for seed in range(20):
        on.ask(do="lose-power", seed=seed, word="/data/")
        loss = UnsyncedLoss.from_text((on.node / POWER_LOSS).read_text())
        if loss.cut.get(on.path) == 6:
            break
    assert set(killed) == {(os.getpid(), signal.SIGKILL)}
    assert loss.take(OsStorage()) == 9
    assert Path(on.path).read_bytes() == b"synced"


@pytest.mark.parametrize(
    "line",
    [
        b"POST / HTTP/1.1\r\n",
        b"\n",
        b"[]\n",
        b'{"do": "format"}\n',
        b'{"do": "fail", "calls": ["chmod"], "errno": "EIO", "seed": 1}\n',
        b'{"do": "fail", "errno": "EIO"}\n',
        b'{"do": "delay-syncs"}\n',
        b"x" * 5000 + b"\n",
    ],
)
def test_what_is_no_request_closes_its_connection(on: Bench, line: bytes) -> None:
    """A browser's first line is not a request; the port closes that connection and still serves others."""
    with socket.create_connection(("127.0.0.1", on.port.port), timeout=ASK_S) as connection:
        connection.sendall(line)
        connection.settimeout(ASK_S)
        with contextlib.suppress(ConnectionResetError):  # what was too long was not read to its end
            assert connection.recv(100) == b""
    seen = on.ask(do="see")
    assert seen is not None
    assert seen["is_well"] is True


def test_what_is_read_too_late_is_not_carried_out(on: Bench) -> None:
    """A broker that was stopped reads a request when it continues: who asked has given up, and would not know why the
    disk fails."""
    now_ns = on.clock.monotonic_ns()
    assert on.ask(do="fail", errno="EIO", seed=1, until_ns=now_ns - 1) is None
    assert on.ask(do="see", until_ns=now_ns - 1)["is_well"] is True
    assert on.ask(do="fail", errno="EIO", seed=1, until_ns=now_ns + 60 * 10**9) is not None
    assert on.ask(do="see")["is_well"] is False


def test_no_answer_is_none() -> None:
    """As of a process that ends while it is asked."""
    port = JsonPort(lambda _: (_ for _ in ()).throw(ValueError("no")), 0)
    try:
        assert ask_json(f"127.0.0.1:{port.port}", {}, ASK_S) is None
    finally:
        port.close()
    with pytest.raises(OSError, match="refused"):
        ask_json(f"127.0.0.1:{port.port}", {}, ASK_S)


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    """The broker does not start without the port that it was to have."""
    first = FaultPort(BreakableDisk(str(tmp_path), lambda _: None), SettableClock(), str(tmp_path), 0)
    try:
        with pytest.raises(OSError, match="in use"):
            FaultPort(BreakableDisk(str(tmp_path), lambda _: None), SettableClock(), str(tmp_path), first.port)
    finally:
        first.close()
