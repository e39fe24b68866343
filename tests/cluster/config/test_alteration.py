"""Set, delete, append, subtract: what each makes of a stored configuration, and where its values then come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.config.alteration import Alteration, AlterOperation, altered, replaced
from cluster.config.broker import validate
from cluster.config.errors import ConfigError
from cluster.config.layers import (
    DYNAMIC_BROKER_KEYS,
    BrokerLayers,
    Source,
    broker_synonyms,
    check_dynamic,
    topic_synonyms,
    type_number,
)
from cluster.config.topic import TOPIC_KEYS

SET, DELETE, APPEND, SUBTRACT = AlterOperation
policies = st.lists(st.sampled_from(["compact", "delete"]), unique=True).map(",".join)


@pytest.mark.parametrize(
    ("stored", "alteration", "after"),
    [
        ({}, Alteration("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, Alteration("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention.ms": "5"}, Alteration("retention.ms", DELETE, None), {}),
        ({}, Alteration("retention.ms", DELETE, "any"), {}),
        ({}, Alteration("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "compact"}, Alteration("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "compact"}),
        ({"cleanup.policy": "delete"}, Alteration("cleanup.policy", SUBTRACT, "delete,x"), {"cleanup.policy": ""}),
    ],
)  # fmt: skip
def test_each_operation(stored, alteration, after):
    """Appending begins with the default where nothing is stored; what is there already is not there twice."""
    assert altered(TOPIC_KEYS, stored, [alteration]) == after


@given(policies, policies)
def test_appending_and_subtracting_are_sets(stored, value):
    """In the order in which they came."""
    before = {"cleanup.policy": stored}
    union = altered(TOPIC_KEYS, before, [Alteration("cleanup.policy", APPEND, value)])["cleanup.policy"]
    rest = altered(TOPIC_KEYS, before, [Alteration("cleanup.policy", SUBTRACT, value)])["cleanup.policy"]

    def members(text):
        return [part for part in text.split(",") if part]

    assert set(members(union)) == set(members(stored)) | set(members(value))
    assert set(members(rest)) == set(members(stored)) - set(members(value))
    assert len(set(members(union))) == len(members(union))


@pytest.mark.parametrize(
    ("alterations", "text"),
    [
        ([Alteration("retenton.ms", SET, "5")], "did you mean 'retention.ms'"),
        ([Alteration("retention.ms", SET, None)], "cannot be null"),
        ([Alteration("retention.ms", APPEND, "5")], "is not a list"),
        ([Alteration("retention.ms", 7, "5")], "unknown operation 7"),
        ([Alteration("retention.ms", SET, "5"), Alteration("retention.ms", DELETE, None)], "changed twice"),
    ],
)
def test_what_makes_no_sense_is_refused(alterations, text):
    """With a text that names the key."""
    with pytest.raises(ConfigError, match=text):
        altered(TOPIC_KEYS, {}, alterations)


def test_the_whole_configuration_replaces_what_was():
    """AlterConfigs knows nothing of what was set before."""
    assert replaced(TOPIC_KEYS, [("retention.ms", "5")]) == {"retention.ms": "5"}
    with pytest.raises(ConfigError, match="null"):
        replaced(TOPIC_KEYS, [("retention.ms", None)])


def layers(static=(), own=(), shared=()):
    return BrokerLayers(validate({"broker.id": "1", **dict(static)}), dict(own), dict(shared))


def test_the_strongest_layer_holds():
    """This broker's own word before that for all, before the file, before the default; ms before minutes and hours."""
    everything = layers(
        {"log.retention.hours": "2", "message.max.bytes": "7"},
        {"message.max.bytes": "9"},
        {"message.max.bytes": "8", "log.retention.ms": "5"},
    )
    assert everything.effective()["message.max.bytes"] == 9
    assert broker_synonyms(everything, "message.max.bytes") == [
        ("message.max.bytes", "9", Source.DYNAMIC_BROKER),
        ("message.max.bytes", "8", Source.DYNAMIC_DEFAULT_BROKER),
        ("message.max.bytes", "7", Source.STATIC_BROKER),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    ]
    assert topic_synonyms(everything, {"retention.ms": "1"}, "retention.ms") == [
        ("retention.ms", "1", Source.TOPIC),
        ("log.retention.ms", "5", Source.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "2", Source.STATIC_BROKER),
        ("log.retention.hours", "168", Source.DEFAULT),
    ]
    assert topic_synonyms(everything, {}, "max.message.bytes")[0].source is Source.DYNAMIC_BROKER


def test_only_what_gives_topics_their_defaults_changes_while_a_broker_runs():
    """The rest is refused with what to do instead."""
    check_dynamic(["min.insync.replicas", "log.retention.ms"])
    for name in ("listeners", "replica.lag.time.max.ms"):
        assert name not in DYNAMIC_BROKER_KEYS
        with pytest.raises(ConfigError, match=f"'{name}' cannot be changed while the broker runs"):
            check_dynamic([name])
    with pytest.raises(ConfigError, match="did you mean"):
        check_dynamic(["min.insync.replica"])


def test_ints_are_told_from_longs():
    """By their limits, as Kafka types them."""
    names = ("segment.bytes", "retention.ms", "unclean.leader.election.enable", "cleanup.policy", "compression.type")
    assert [type_number(TOPIC_KEYS, name) for name in names] == [3, 5, 1, 7, 2]
