"""The tables of configuration keys tell the truth about what the code does with them."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from cluster.config.admin import ADMIN_KEYS
from cluster.config.broker_keys import BROKER_KEYS
from cluster.config.consumer import CONSUMER_KEYS
from cluster.config.keys import KeyTable
from cluster.config.topic import BROKER_SYNONYMS, TOPIC_KEYS
from tests.architecture.sources import modules, nodes, within


@cache
def literals() -> set[str]:
    """Every text in the product's code, but for the tables themselves."""
    return {
        node.value
        for module in modules("cluster", "chaos")
        # A client asks for its own keys, some of which are spelled like a broker's.
        if not within(module.name, "cluster.client")
        if not within(module.name, "cluster.config") or module.name in ("cluster.config.broker", "cluster.config.asked")
        for node in nodes(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def used(table: KeyTable) -> set[str]:
    """The keys that some code asks for; a broker key also through the topic key whose default it is."""
    named = literals()
    through_topics = {
        broker_key for name, synonyms in BROKER_SYNONYMS.items() if name in named for broker_key, _factor in synonyms
    }
    return {name for name in table.keys if name in named or (table is BROKER_KEYS and name in through_topics)}


@pytest.mark.parametrize("table", [BROKER_KEYS, TOPIC_KEYS], ids=repr)
def test_a_key_without_effect_says_so(table: KeyTable) -> None:
    """A key that no code asks for is marked as carried: whoever sets it is warned, and the document shows it."""
    assert {name for name, key in table.keys.items() if not key.carried} - used(table) == set()


@pytest.mark.parametrize("table", [BROKER_KEYS, TOPIC_KEYS], ids=repr)
def test_a_key_with_effect_is_not_called_carried(table: KeyTable) -> None:
    """A key that some code asks for has lost the mark."""
    assert {name for name, key in table.keys.items() if key.carried} & used(table) == set()


#: What a client's rooms may read of its table: its own, and the I/O that it shares with others.
CLIENT_ROOMS = {
    CONSUMER_KEYS: ("cluster.client.consumer", "cluster.client.wiring"),
    ADMIN_KEYS: ("cluster.client.admin",),
}
#: Read by no code of the client: there is one choice, which the table alone refuses the others of; bootstrap servers
#: are read by the wiring.
ALWAYS = {"security.protocol", "bootstrap.servers"}


@pytest.mark.parametrize("table", CLIENT_ROOMS, ids=repr)
def test_a_clients_key_says_whether_it_has_effect(table: KeyTable) -> None:
    """A key of a native client is marked as carried exactly if no code of that client asks for it."""
    named = ALWAYS | {
        node.value
        for module in modules("cluster")
        if any(within(module.name, room) for room in CLIENT_ROOMS[table])
        for node in nodes(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {name for name, key in table.keys.items() if not key.carried} == table.keys.keys() & named
