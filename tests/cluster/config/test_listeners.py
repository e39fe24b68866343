"""Which listener is the brokers' own: nobody whom clients' addresses let in is obeyed as a broker by accident."""

from __future__ import annotations

import pytest

from cluster.config.broker import validate
from cluster.config.errors import ConfigError

KNOWINGLY = {"inter.broker.listener.name": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("settings", "name", "added"),
    [
        ({}, "BROKERS", True),
        ({"listeners": "PLAINTEXT://0.0.0.0:9093"}, "BROKERS", True),
        ({"listeners": "CLIENTS://:9093", "listener.security.protocol.map": "CLIENTS:PLAINTEXT"}, "BROKERS", True),
        ({"advertised.listeners": "PLAINTEXT://localhost:9092"}, "BROKERS", True),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, "PLAINTEXT", False),
        ({"listeners": "PLAINTEXT://[::1]:9092"}, "PLAINTEXT", False),
        ({"listeners": "PLAINTEXT://10.0.0.1:9092", **KNOWINGLY}, "PLAINTEXT", False),
        ({"listeners": "PLAINTEXT://:9092", "security.inter.broker.protocol": "PLAINTEXT"}, "PLAINTEXT", False),
        ({"listeners": "A://:1,PEERS://10.0.0.1:2", "inter.broker.listener.name": "PEERS"}, "PEERS", False),
    ],
)
def test_brokers_have_a_listener_of_their_own(settings: dict[str, str], name: str, added: bool) -> None:
    """On the loopback, unless clients are there too or the operator names another."""
    config = validate(settings)
    assert config.inter_broker_listener_name == name
    own = next(each for each in config.listeners if each.name == name)
    assert config.adds_own_listener is added
    assert (str(own) == "BROKERS://127.0.0.1:0") is added


@pytest.mark.parametrize(
    "settings",
    [
        {"advertised.listeners": "PLAINTEXT://kafka-1:9092"},
        {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://10.0.0.1:9092"},
        {"listeners": "PLAINTEXT://10.0.0.1:9092"},
        {"listeners": "PLAINTEXT://kafka-1:9092"},
        {"listeners": "BROKERS://:9092"},
    ],
)
def test_a_listener_that_clients_of_other_machines_share_is_refused(settings: dict[str, str]) -> None:
    """One on the loopback would not do where brokers are elsewhere; the line says what to write."""
    with pytest.raises(
        ConfigError, match=r"anyone who reaches it would be obeyed .*inter\.broker\.listener\.name=BROKERS"
    ):
        validate(settings)


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({}, None),
        ({"listeners": "PLAINTEXT://127.0.0.1:1", **KNOWINGLY}, None),
        ({"listeners": "PLAINTEXT://:9092", **KNOWINGLY}, "clients and brokers share the listener PLAINTEXT://:9092"),
        (
            {"listeners": "A://:1,PEERS://10.0.0.1:2", "inter.broker.listener.name": "PEERS"},
            "the brokers' own listener PEERS://10.0.0.1:2 is not on the loopback",
        ),
    ],
)
def test_a_brokers_listener_that_others_reach_is_warned_of(settings: dict[str, str], warning: str | None) -> None:
    """Only the operator's word makes it so; the log says at each start what it means."""
    warnings = validate(settings).warnings
    assert [line.startswith(warning) for line in warnings] == [True] if warning else warnings == ()


def test_a_listener_that_does_not_exist_is_refused_however_it_is_named() -> None:
    """Without it nobody could be the brokers' controller."""
    with pytest.raises(ConfigError, match=r"'security\.inter\.broker\.protocol' is 'PLAINTEXT', which is not in"):
        validate({"listeners": "A://127.0.0.1:1", "security.inter.broker.protocol": "PLAINTEXT"})
