"""What an operator is told of connections that a broker refuses: the first at once, how many others, and why."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import pytest

from cluster.broker import admission as module
from cluster.broker.admission import Admission
from cluster.broker.metrics import Counters
from cluster.broker.server import ClientConnection
from cluster.config.broker import validate

CLIENTS, PEERS = "CLIENTS", "PEERS"


class FakeClient:
    """A connection as ``Admission`` sees it."""

    def __init__(self, ip: str = "10.0.0.1", listener: str = CLIENTS, active_ns: int = 0) -> None:
        self.ip, self.listener, self.active_ns = ip, listener, active_ns
        self.is_open = True

    def abort(self) -> None:
        self.is_open = False

    def check(self) -> None: ...


class Door:
    """An admission with a clock of its own, which looks at its connections in each turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        monkeypatch.setattr(module, "CHECK_EACH_S", 0.0)
        monkeypatch.setattr(module, "_LOOK_MS", (0, 0))
        self.now_s = 0.0
        self.counters = Counters(now_ns=lambda: int(self.now_s * 1e9))
        config = validate(
            {
                "broker.id": "1",
                "zookeeper.connect": "zk:1",
                "listeners": f"{CLIENTS}://127.0.0.1:0,{PEERS}://127.0.0.1:0",
                "listener.security.protocol.map": f"{CLIENTS}:PLAINTEXT,{PEERS}:PLAINTEXT",
                "inter.broker.listener.name": PEERS,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        self.admission = Admission(config, self.counters)

    def enter(self, client: FakeClient) -> FakeClient:
        self.admission.enter(cast(ClientConnection, client))
        return client

    async def at(self, now_s: float) -> None:
        """Let it look once it is so late."""
        self.now_s = now_s
        for _ in range(3):
            await asyncio.sleep(0)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == module.logger.name]


def test_the_first_refusal_is_logged_at_once_and_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When their ten seconds are over, though no one else comes; then the next one is logged at once again."""
    first = "a connection of 10.0.0.1 is turned away: 10.0.0.1 has max.connections.per.ip=1 connections"

    async def main() -> None:
        door = Door(monkeypatch, max_connections_per_ip="1")
        door.admission.start()
        kept = door.enter(FakeClient())
        refused = [door.enter(FakeClient()) for _ in range(43)]
        assert (kept.is_open, any(each.is_open for each in refused)) == (True, False)
        await door.at(9.9)
        assert told(caplog) == [first]
        await door.at(10)
        others = f"42 more connections were refused; the last: {first}"
        assert told(caplog) == [first, others]
        await door.at(25)
        door.enter(FakeClient())
        assert told(caplog) == [first, others, first]
        assert door.counters.refused_connections == 44
        door.admission.close()

    asyncio.run(main())


def test_a_client_that_makes_room_for_a_broker_is_logged_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The one that has been silent for longest."""
    door = Door(monkeypatch, max_connections="2")
    busy, silent = door.enter(FakeClient("10.0.0.1", active_ns=2)), door.enter(FakeClient("10.0.0.2", active_ns=1))
    peer = door.enter(FakeClient("10.0.0.3", PEERS))
    assert (busy.is_open, silent.is_open, peer.is_open) == (True, False, True)
    assert told(caplog) == ["a connection of 10.0.0.2 is closed for one of a broker: there are max.connections=2"]
    assert door.counters.refused_connections == 1


def test_idle_connections_are_told_with_their_addresses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the addresses that had most of the idle connections."""

    async def main() -> None:
        door = Door(monkeypatch, connections_max_idle_ms="5000")
        door.admission.start()
        for last, count in enumerate((1, 3, 2, 1, 1), 1):
            for _ in range(count):
                door.enter(FakeClient(f"10.0.0.{last}"))
        with caplog.at_level(logging.INFO):
            await door.at(6)
        door.admission.close()
        assert door.counters.idle_connections >= 8

    asyncio.run(main())
    assert told(caplog)[0] == (
        "8 connections closed: silent for connections.max.idle.ms=5000 (3 of 10.0.0.2, 2 of 10.0.0.3, 1 of 10.0.0.1)"
    )
