"""Topology: who there is in a run, and by which address each reaches the others. A value, nothing more.

Owns the names of links and the arithmetic of addresses. Starts nothing, opens nothing, and knows no proxy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: The other end of a broker's link to ZooKeeper.
ZOOKEEPER = "zk"
_NAME = re.compile(r"(?P<opener>[a-z][a-z0-9]*)-(?P<target>b\d+|zk)\Z")


@dataclass(frozen=True, slots=True, order=True)
class LinkName:
    """A directed link, opener first: ``producers-b2``, ``readers-b2``, ``b1-b2``, ``b2-zk``.

    Requests flow from opener to target. A follower's data flows in the response direction of ``follower-leader``.
    """

    opener: str
    target: str

    def __str__(self) -> str:
        return f"{self.opener}-{self.target}"

    @classmethod
    def parse(cls, name: str) -> LinkName:
        """Raises ``ValueError`` for anything that is not opener-target."""
        match = _NAME.match(name)
        if match is None:
            raise ValueError(f"not the name of a link: {name!r}; they are like producers-b2, b1-b2 or b2-zk")
        return cls(match["opener"], match["target"])


def link_names(broker_ids: Iterable[int], groups: Iterable[str]) -> tuple[LinkName, ...]:
    """Every link of a cluster: each load group to each broker, each broker to each other, each broker to ZooKeeper."""
    brokers = [f"b{broker_id}" for broker_id in broker_ids]
    loads = [LinkName(group, broker) for group in groups for broker in brokers]
    peers = [LinkName(one, other) for one in brokers for other in brokers if one != other]
    return (*loads, *peers, *(LinkName(broker, ZOOKEEPER) for broker in brokers))


@dataclass(frozen=True)
class Topology:
    """The addresses of one run, all ``host:port``.

    ``links`` is where each link's proxy listens, by the link's name; ``zookeeper`` and ``listeners`` (by broker and
    listener name) are the real addresses behind them; ``proxy`` is the proxy's API. What is not known is empty.
    """

    brokers: tuple[int, ...]
    links: Mapping[str, str] = field(default_factory=dict)
    zookeeper: str = ""
    listeners: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    proxy: str = ""

    def __post_init__(self) -> None:
        for name in self.links:
            link = LinkName.parse(name)
            ends = (link.opener, link.target)
            for end in ends:
                if re.fullmatch(r"b\d+", end) and int(end[1:]) not in self.brokers:
                    raise ValueError(f"link {name} names broker {end[1:]}, which is not in the topology")

    def address(self, opener: str, target: str) -> str:
        """Where ``opener`` reaches ``target``: the link's proxy. Raises ``KeyError`` if there is no such link."""
        return self.links[f"{opener}-{target}"]

    def bootstrap(self, group: str) -> str:
        """``bootstrap.servers`` of a load group: its own link to each broker."""
        return ",".join(self.address(group, f"b{broker_id}") for broker_id in self.brokers)

    def peer_addresses(self, broker_id: int) -> str:
        """``gapless.peer.addresses`` of a broker: each peer as this broker reaches it."""
        peers = (peer for peer in self.brokers if peer != broker_id)
        return ",".join(f"{peer}@{self.address(f'b{broker_id}', f'b{peer}')}" for peer in peers)

    def zookeeper_connect(self, broker_id: int) -> str:
        """``zookeeper.connect`` of a broker: its own link to ZooKeeper."""
        return self.address(f"b{broker_id}", ZOOKEEPER)

    def advertised_listeners(self, broker_id: int, groups: Iterable[str]) -> str:
        """``advertised.listeners`` of a broker: for each load group the address of that group's link."""
        return ",".join(f"{group.upper()}://{self.address(group, f'b{broker_id}')}" for group in groups)

    def to_json(self) -> dict[str, Any]:
        """JSON values; ``from_json`` gives the same Topology back."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Topology:
        """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for what ``to_json`` did not make."""
        return cls(
            brokers=tuple(int(broker_id) for broker_id in value["brokers"]),
            links=dict(value["links"]),
            zookeeper=str(value["zookeeper"]),
            listeners={int(broker_id): dict(by_name) for broker_id, by_name in value["listeners"].items()},
            proxy=str(value["proxy"]),
        )
