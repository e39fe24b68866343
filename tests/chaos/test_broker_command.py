"""``gapless broker`` that cannot start: one line names the setting, nothing is bound, and no traceback."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.log.data_directory import lock_directory
from cluster.metadata.names import unresolved
from cluster.seams.os_storage import OsStorage
from tests.support.leftovers import Place

pytestmark = pytest.mark.integration

#: No ZooKeeper listens there.
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path / "place") as made:
        yield made


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of 127.0.0.1 on which someone listens."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield int(made.getsockname()[1])


def settings(place: Place, **given: object) -> str:
    """The name of a file with the properties of broker 1 and these, a dot of a key written as two underscores."""
    own = {
        "broker.id": 1,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": NOWHERE,
        "log.dirs": place.directory / "data",
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    text = "".join(f"{name}={value}\n" for name, value in own.items() if value is not None)
    (place.directory / "one.properties").write_text(text)
    return "one.properties"


def refused(place: Place, **given: object) -> str:
    """The last line that the broker says, with status 254."""
    assert place.run("broker", "--config", settings(place, **given), timeout_s=60) == 254, place.err
    assert "Traceback" not in place.err
    return place.err.splitlines()[-1]


def test_a_broker_without_a_zookeeper_is_refused_before_anything_is_bound(place: Place) -> None:
    """By name, as one without an identity is."""
    said = refused(place, zookeeper__connect=None)
    assert "'zookeeper.connect' is missing; set it, as in zookeeper.connect=127.0.0.1:2181" in said
    assert place.err.count("\n") == 1 and place.out == ""


def test_a_second_broker_on_a_data_directory_is_refused(place: Place) -> None:
    """A data directory in use is refused in the words of ``gapless up``."""
    data = str(place.directory / "data")
    lock = lock_directory(data, OsStorage())
    try:
        assert f"gapless: the data directory {data} is in use by another broker" in refused(place)
    finally:
        lock.release()


def test_an_unusable_data_directory_is_refused(place: Place) -> None:
    """A data directory that cannot exist, here inside a file, is refused by its path."""
    (place.directory / "file").write_text("")
    data = place.directory / "file" / "data"
    assert f"gapless: cannot use the data directory {data}: " in refused(place, log__dirs=data)


def test_a_port_that_is_taken_is_named_with_its_key(place: Place, taken: int) -> None:
    """A listener's, and that of the metrics."""
    listener = f"PLAINTEXT://127.0.0.1:{taken}"
    said = refused(
        place,
        listeners=f"A://127.0.0.1:0,{listener}",
        listener__security__protocol__map="A:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    )
    assert said == f"gapless: listeners: {listener}: address already in use"
    said = refused(place, gapless__metrics__port=taken)
    assert said == f"gapless: gapless.metrics.port={taken}: address already in use"


def test_a_client_listener_that_others_reach_is_said(place: Place) -> None:
    """Kafka's default is on every interface; the brokers' own listener is on the loopback, and one on it is no news."""
    data = str(place.directory / "data")
    lock = lock_directory(data, OsStorage())
    try:
        refused(
            place,
            listeners="PLAINTEXT://:0,HERE://127.0.0.1:0",
            listener__security__protocol__map="PLAINTEXT:PLAINTEXT,HERE:PLAINTEXT",
        )
        assert "clients are served without passwords on PLAINTEXT://:0, not on the loopback alone: " in place.err
        refused(place)
        assert "without passwords" not in place.err
    finally:
        lock.release()


def test_a_broker_that_is_stopped_while_it_starts_has_failed_in_nothing(place: Place) -> None:
    """It waits for its ZooKeeper; SIGTERM is an interruption, not a failure of the harness."""
    broker = place.start("broker", "--config", settings(place))
    place.wait_for('"bound"', 30.0, lambda each: each.out)
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(30) == 130, place.err
    assert place.err.splitlines()[-1] == "gapless: interrupted: the broker was stopped before it had started"


def test_the_name_that_no_one_knows_is_the_cause(place: Place) -> None:
    """Of a ZooKeeper that was not reached."""
    assert asyncio.run(unresolved("127.0.0.1:1,nohost.invalid:2181/chroot")).startswith(": nohost.invalid: ")
    assert asyncio.run(unresolved("127.0.0.1:1,[::1]:2/chroot")) == ""
    given = {"zookeeper__connect": "nohost.invalid:2181", "zookeeper__connection__timeout__ms": 500}
    assert place.run("broker", "--config", settings(place, **given), timeout_s=60) == 255, place.err
    assert "no ZooKeeper session at nohost.invalid:2181 within 500 ms: nohost.invalid: " in place.err.splitlines()[-1]
