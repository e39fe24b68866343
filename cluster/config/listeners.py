"""Listeners: the addresses where a broker listens, and which of them is its peers'. Pure.

Owns ``ListenerAddress`` and the choice of the brokers' own listener. Requests on it are
obeyed: anyone who reaches it can delete topics, depose leaders or hide a broker, for clients do not authenticate yet.
So clients get another one unless they are all on this machine, or unless the operator says so. What is told to others
of a listener is ``cluster.broker.endpoints``'s.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.config.errors import ConfigError

_PLAINTEXT = "PLAINTEXT"
_NAME = "inter.broker.listener.name"
_PROTOCOL = "security.inter.broker.protocol"
#: What a listener on all addresses is reached at, unless ``advertised.listeners`` says more.
LOCAL_HOST = "127.0.0.1"
#: Digits of the greatest number that is written anywhere.
_LONGEST_NUMBER = 19
_ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """One entry of ``listeners`` or ``advertised.listeners``: ``NAME://host:port``. An empty host means all."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def told_host(self) -> str:
        """What to reach it at, if nothing else is said."""
        return LOCAL_HOST if self.host in _ALL_ADDRESSES else self.host

    @property
    def is_local(self) -> bool:
        """Whether this machine alone reaches it."""
        return _is_local(self.host)


#: Added where clients' listeners are open to others: on this machine, on a port that the system chooses.
OWN = ListenerAddress("BROKERS", LOCAL_HOST, 0)


@dataclass(frozen=True, slots=True)
class PeersListener:
    """The name of the brokers' own listener. ``added`` is None if it is one of ``listeners``."""

    name: str
    added: ListenerAddress | None = None


def peers_listener(
    given: Mapping[str, Any], listeners: Sequence[ListenerAddress], advertised: Sequence[ListenerAddress]
) -> PeersListener:
    """Which listener is the brokers' own. ``given`` are the keys that were set.

    The operator's word comes first. Else it is PLAINTEXT, as in Kafka, if this machine alone reaches that; else one of
    its own on the loopback, as long as brokers are told to others at this machine's address alone. Raises ConfigError
    where brokers on other machines are to be expected.
    """
    named = given.get(_NAME) or given.get(_PROTOCOL)
    if named is not None:
        return PeersListener(str(named).upper())
    if any(each.name == _PLAINTEXT and each.is_local for each in listeners):
        return PeersListener(_PLAINTEXT)
    told = {each.name: each.told_host for each in advertised if each.host}
    abroad = [each for each in listeners if not _is_local(told.get(each.name, each.told_host))]
    if abroad or OWN.name in {each.name for each in listeners}:
        shared = abroad[0] if abroad else listeners[0]
        raise ConfigError(
            f"clients and brokers would share the listener {shared}, and anyone who reaches it would be obeyed as a "
            "broker; give the brokers their own listener, in a network that only they can reach: "
            f"listeners={shared},BROKERS://HOST:9091, "
            f"listener.security.protocol.map={shared.name}:PLAINTEXT,BROKERS:PLAINTEXT and {_NAME}=BROKERS; "
            f"or share it on purpose: {_NAME}={shared.name}"
        )
    return PeersListener(OWN.name, OWN)


def exposure(name: str, listeners: Sequence[ListenerAddress]) -> str | None:
    """A line for people if others than this machine reach the brokers' own listener."""
    found = next((each for each in listeners if each.name == name), None)
    if found is None or found.is_local:
        return None
    if len(listeners) == 1:
        return (
            f"clients and brokers share the listener {found}: anyone who reaches it can delete topics, depose leaders "
            f"and hide brokers; give brokers a listener of their own ({_NAME})"
        )
    return (
        f"the brokers' own listener {found} is not on the loopback: anyone who reaches it is obeyed as a broker; keep "
        "it in a network that only brokers can reach"
    )


def open_to_others(peers: str, listeners: Sequence[ListenerAddress]) -> str | None:
    """A line for people if others than this machine reach a listener of clients; ``peers`` names the brokers' own."""
    found = [str(each) for each in listeners if each.name != peers and not each.is_local]
    if not found:
        return None
    return (
        f"clients are served without passwords on {', '.join(found)}, not on the loopback alone: anyone who reaches it "
        "can read, write and delete every topic; for this machine alone: listeners=PLAINTEXT://127.0.0.1:9092"
    )


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_listeners(entries: Iterable[str], key: str) -> tuple[ListenerAddress, ...]:
    """``NAME://host:port`` entries, host perhaps empty or ``[v6]``. Raises ConfigError naming ``key``."""
    found = []
    for entry in entries:
        name, separator, rest = entry.partition("://")
        host, colon, port = rest.rpartition(":")
        if not (name and separator and colon and is_port(port)):
            raise ConfigError(
                f"invalid value '{entry}' for broker config key '{key}': expected NAME://host:port, "
                "with a port from 0 to 65535"
            )
        found.append(ListenerAddress(name.upper(), host.strip("[]"), int(port)))
    return tuple(found)


def is_port(text: str) -> bool:
    """Whether it is the number of a port."""
    return is_digits(text) and int(text) <= 65_535


def is_digits(text: str) -> bool:
    """Whether it is a number as people write it: ``int`` takes the digits of every script, and underscores."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
