"""The synchronous Admin: its keys, its thread, its end. What it asks is tested where it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster.client import Admin, NewTopic
from cluster.client.cluster_calls import BROKER_RESOURCE
from cluster.config.errors import ConfigError


def test_keys():
    """Kafka's own; an unknown one is refused with the nearest, and so are bootstrap servers that are none."""
    with pytest.raises(
        ConfigError, match=r"unknown admin config key 'bootstrap\.server'; did you mean 'bootstrap\.ser"
    ):
        Admin({"bootstrap.server": "h:1"})
    with pytest.raises(ConfigError, match=r"admin config 'bootstrap\.servers' is empty"):
        Admin({})
    with pytest.raises(ConfigError, match="not a host:port address"):
        Admin({"bootstrap.servers": "h"})


def test_a_key_without_effect_is_warned_of(caplog):
    """So that nobody believes in it."""
    with Admin({"bootstrap.servers": "h:1", "metadata.max.age.ms": 1}):
        pass
    assert "admin config key 'metadata.max.age.ms' is accepted but has no effect" in caplog.text


def test_the_end():
    """Closing ends the thread; a second time does nothing, and calls are refused."""
    before = threading.active_count()
    admin = Admin({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 50})
    assert threading.active_count() == before + 1
    with pytest.raises(TimeoutError, match="Metadata: "):
        admin.list_topics()
    admin.close()
    admin.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="already been closed"):
        admin.list_topics()


def test_several_share_one_thread():
    """Which ends with the last of them, and not before."""
    before = threading.active_count()
    config = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 1}
    with Admin(config) as first:
        with Admin(config):
            assert threading.active_count() == before + 1
        with pytest.raises(TimeoutError, match="Metadata: "):
            first.list_topics()
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_forked_process_is_told_that_nobody_asks():
    """The thread did not come along: a call that would wait forever raises, a new client works, both can be closed."""
    config = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 1}
    with Admin(config) as parent:
        thread = parent._loop_thread._thread
        parent._loop_thread._thread = threading.Thread()
        with pytest.raises(
            RuntimeError, match=r"does not run: after fork\(\), create a new client in the child process"
        ):
            parent.list_topics()
        with Admin(config) as child, pytest.raises(TimeoutError):
            child.list_topics()
        parent._loop_thread._thread = thread


@pytest.fixture(scope="module")
def admin() -> Iterator[Any]:
    """Of a cluster that does not exist: whatever is not refused before it is asked is a ``TimeoutError``."""
    with Admin({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 1}) as made:
        yield made


KEY = ("t", 0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: a.describe_topics("t"), "names of topics come as a list, not as str"),
        (lambda a: a.describe_topics([1]), "the name of a topic is a text, not int"),
        (lambda a: a.delete_topics(b"t"), "names of topics come as a list, not as bytes"),
        (lambda a: a.delete_topics([None]), "the name of a topic is a text, not NoneType"),
        (lambda a: a.create_topics(NewTopic("t")), "topics to be created come as a list, not as NewTopic"),
        (lambda a: a.create_topics(["t"]), r"is a NewTopic, not str: NewTopic\('name'\)"),
        (lambda a: a.create_topics([NewTopic(b"t")]), "the name of a topic is a text, not bytes"),
        (lambda a: a.create_topics([NewTopic("t", "3")]), "the number of partitions of t is an integer, not str"),
        (lambda a: a.create_topics([NewTopic("t", 1, 1.5)]), "the replication factor of t is an integer, not float"),
        (lambda a: a.create_topics([NewTopic("t", configs={"retention.ms": 5})]), "the value of retention.ms is a"),
        (lambda a: a.create_topics([NewTopic("t", configs=["retention.ms"])]), "configs come as a mapping, not as l"),
        (lambda a: a.create_topics([NewTopic("t", assignment=[[1]])]), "the replicas of t come as a mapping"),
        (lambda a: a.create_topics([NewTopic("t", assignment={"0": [1]})]), "a partition is an integer, not str"),
        (lambda a: a.create_topics([NewTopic("t", assignment={0: 1})]), "ids of brokers come as a list, not as int"),
        (lambda a: a.create_topics([NewTopic("t", assignment={0: ["1"]})]), "the id of a broker is an integer"),
        (lambda a: a.create_partitions(["t"], 3), "the name of a topic is a text, not list"),
        (lambda a: a.create_partitions("t", "3"), "the number of partitions of t is an integer, not str"),
        (lambda a: a.describe_configs(1, BROKER_RESOURCE), "the name of a resource is a text, not int: write it in"),
        (lambda a: a.describe_configs("t", "topic"), "the type of a resource is an integer, not str"),
        (lambda a: a.incremental_alter_configs("t", {"a": True}), "the value of a is a text, not bool: write it in"),
        (lambda a: a.incremental_alter_configs("t", {1: "a"}), "the key of a config is a text, not int"),
        (lambda a: a.incremental_alter_configs("t", [("a", "b")]), "configs come as a mapping, not as list"),
        (lambda a: a.incremental_alter_configs(None, {}), "the name of a resource is a text, not NoneType"),
        (lambda a: a.list_offsets([KEY]), "times of partitions come as a mapping, not as list"),
        (lambda a: a.list_offsets({KEY: "latest"}), "a timestamp is an integer, not str"),
        (lambda a: a.list_offsets({"t-0": 0}), r"named by a pair \(topic, number\), not by 't-0'"),
        (lambda a: a.list_offsets({KEY: 0}, isolation_level="read_committed"), "isolation level is an integer"),
        (lambda a: a.delete_records({KEY: 1.0}), "an offset is an integer, not float"),
        (lambda a: a.delete_records({("t", "0"): 1}), "a partition is an integer, not str"),
        (lambda a: a.describe_producers(KEY), r"named by a pair \(topic, number\), not by 't'"),
        (lambda a: a.describe_producers("t"), "partitions come as a list, not as str"),
        (lambda a: a.describe_log_dirs(1), "ids of brokers come as a list, not as int"),
        (lambda a: a.describe_log_dirs("12"), "ids of brokers come as a list, not as str"),
        (lambda a: a.elect_leaders([KEY]), "the kind of an election is an integer, not list"),
        (lambda a: a.elect_leaders(partitions=[("t",)]), r"named by a pair \(topic, number\), not by \('t',\)"),
        (lambda a: a.alter_partition_reassignments({KEY: 1}), "ids of brokers come as a list, not as int"),
        (lambda a: a.alter_partition_reassignments([KEY]), "moves come as a mapping, not as list"),
    ],
)  # fmt: skip
def test_what_is_of_the_wrong_type_is_refused(admin: Any, call: Callable[[Any], object], text: str) -> None:
    """In the call, before anything is asked, with what it should be."""
    with pytest.raises(TypeError, match=text):
        call(admin)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: a.delete_topics(["t" * 40_000]), "no topic can have this name"),
        (lambda a: a.create_topics([NewTopic("t", 2**31)]), "the number of partitions of t has 32 bits"),
        (lambda a: a.create_topics([NewTopic("t", 1, 2**15)]), "the replication factor of t has 16 bits"),
        (lambda a: a.create_topics([NewTopic("t", configs={"a": "\ud800"})]), "the value of a is valid text of"),
        (lambda a: a.create_partitions("t", -(2**31)), "the number of partitions of t has 32 bits"),
        (lambda a: a.describe_configs("one", BROKER_RESOURCE), "a broker is named by its id, such as '1'"),
        (lambda a: a.incremental_alter_configs("t" * 40_000, {}), "the name of a resource is valid text of at most"),
        (lambda a: a.list_offsets({("t", -1): 0}), "Invalid partition: -1"),
        (lambda a: a.list_offsets({KEY: 2**63}), "a timestamp has 64 bits"),
        (lambda a: a.describe_log_dirs([2**31]), "the id of a broker has 32 bits"),
        (lambda a: a.elect_leaders(200), "the kind of an election has 8 bits"),
    ],
)  # fmt: skip
def test_what_no_request_can_carry_is_refused(admin: Any, call: Callable[[Any], object], text: str) -> None:
    """In the call too; whether what can be sent is any good is the cluster's to say."""
    with pytest.raises(ValueError, match=text):
        call(admin)
    with pytest.raises(TimeoutError):
        admin.create_topics([NewTopic("", 0, 0, {"a": None})])
