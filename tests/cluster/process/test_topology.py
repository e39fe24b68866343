"""Topology: names of links, and the addresses that follow from them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.process.topology import LinkName, Topology, link_names

GROUPS = ("producers", "readers")


def topology(brokers: tuple[int, ...]) -> Topology:
    names = link_names(brokers, GROUPS)
    return Topology(
        brokers=brokers,
        links={str(name): f"127.0.0.1:{41000 + index}" for index, name in enumerate(names)},
        zookeeper="127.0.0.1:2181",
        listeners={broker: {"CONTROL": f"127.0.0.1:{42000 + broker}"} for broker in brokers},
        proxy="127.0.0.1:8474",
    )


def test_links_are_named_opener_first() -> None:
    """Every pair that talks has a link of its own, named by who opens it."""
    names = [str(name) for name in link_names((1, 2), GROUPS)]
    assert names == ["producers-b1", "producers-b2", "readers-b1", "readers-b2", "b1-b2", "b2-b1", "b1-zk", "b2-zk"]
    assert LinkName.parse("b1-b2") == LinkName("b1", "b2")


@pytest.mark.parametrize("name", ["", "b1", "b1-", "-b1", "b1-b", "b1-producers", "B1-b2", "b1-b2-b3", "b1-zk\n"])
def test_what_is_no_link_is_refused(name: str) -> None:
    """Only opener-target is a link's name, and a target is a broker or ZooKeeper."""
    with pytest.raises(ValueError, match="not the name of a link"):
        LinkName.parse(name)


def test_each_end_reaches_the_others_by_its_own_links() -> None:
    """The configuration of brokers and clients follows from the links' addresses."""
    made = topology((1, 2, 3))
    assert made.bootstrap("producers") == "127.0.0.1:41000,127.0.0.1:41001,127.0.0.1:41002"
    assert made.peer_addresses(2) == f"1@{made.links['b2-b1']},3@{made.links['b2-b3']}"
    assert made.zookeeper_connect(3) == made.links["b3-zk"]
    assert made.advertised_listeners(1, GROUPS) == (
        f"PRODUCERS://{made.links['producers-b1']},READERS://{made.links['readers-b1']}"
    )
    with pytest.raises(KeyError):
        made.address("b1", "b1")


def test_a_link_to_nobody_is_refused() -> None:
    """A topology does not name brokers that it does not have."""
    with pytest.raises(ValueError, match="names broker 4"):
        Topology(brokers=(1,), links={"b1-b4": "127.0.0.1:1"})


@given(st.sets(st.integers(min_value=0, max_value=50), min_size=1, max_size=5))
def test_json_gives_the_same_topology_back(brokers: set[int]) -> None:
    """What is written to run.json is read back equal, through real JSON."""
    made = topology(tuple(sorted(brokers)))
    assert Topology.from_json(json.loads(json.dumps(made.to_json()))) == made
