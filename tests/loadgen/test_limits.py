"""Whether the largest record of a load is taken: counted as each client and a broker count it, to the byte."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.producer.encoding import size_upper_bound
from cluster.config import broker, topic
from cluster.protocol.batch import InvalidBatch, parse_header, validate_from_client
from cluster.protocol.records import NewRecord, build_batch
from loadgen.choices import parse_keys, parse_sizes
from loadgen.clients.confluent import client_logger
from loadgen.limits import (
    LargestRecord,
    Limit,
    advice,
    known_sizes,
    producer_limits,
    topic_limits,
    unless_compressed,
)
from loadgen.settings import CONFLUENT, NATIVE, SettingsError
from loadgen.workload import Workload


def limits_of(client: str, value_bytes: int, key_bytes: int = 0, **config: int) -> dict[str, Limit]:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return {each.key: each for each in producer_limits(client, given, LargestRecord(key_bytes, value_bytes))}


def test_the_largest_record_is_the_largest_that_may_be_drawn() -> None:
    """Its longest key beside its longest value, however rare each is."""
    sizes = parse_sizes({"lognormal": {"median": 300, "sigma": 1.0, "most": 2_000_000}})
    assert LargestRecord.of(sizes, parse_keys("none")) == (0, sizes.table[-1])
    for keys, longest in (({"uniform": {"keys": 1}}, b"key-0"), ({"zipf": {"keys": 1001}}, b"key-1000")):
        assert LargestRecord.of(parse_sizes({"uniform": {"least": 48, "most": 90}}), parse_keys(keys)) == (
            len(longest),
            90,
        )
    bare = Workload("bare")
    assert LargestRecord.of(bare.sizes, bare.key_choice) == (0, 200)


@given(st.integers(0, 12), st.integers(48, 20_000))
def test_a_batch_of_its_own_is_what_a_broker_is_sent(key_bytes: int, value_bytes: int) -> None:
    """As many bytes as the batch that is built of it, and so taken by that limit and not by one less."""
    largest = LargestRecord(key_bytes, value_bytes)
    batch = build_batch([NewRecord(key=largest.key, value=bytes(value_bytes), timestamp=7)])
    assert largest.batch_bytes == len(batch)
    header = parse_header(batch)
    validate_from_client(memoryview(batch), header, largest.batch_bytes)
    with pytest.raises(InvalidBatch, match=r"more than max\.message\.bytes"):
        validate_from_client(memoryview(batch), header, largest.batch_bytes - 1)


@pytest.mark.parametrize("key_bytes", [0, 9])
def test_librdkafka_counts_as_it_is_said_to(key_bytes: int) -> None:
    """What just fits is queued by the library itself, and one byte more is refused."""
    (needed,) = {limits_of(CONFLUENT, value, key_bytes)["message.max.bytes"].needed_bytes for value in (5000,)}
    for most, taken in ((needed, True), (needed - 1, False)):
        limit = limits_of(CONFLUENT, 5000, key_bytes, message_max_bytes=most)["message.max.bytes"]
        assert limit.is_exceeded is not taken
        assert _is_queued(5000, key_bytes, {"message.max.bytes": most}) is taken
    for most, taken in ((5, True), (4, False)):
        key = "queue.buffering.max.kbytes"
        assert producer_limits(CONFLUENT, {key: most}, LargestRecord(key_bytes, 5000))[1].is_exceeded is not taken
        assert _is_queued(5000, key_bytes, {key: most}) is taken


def _is_queued(value_bytes: int, key_bytes: int, config: dict[str, int]) -> bool:
    """Whether librdkafka takes a record that is to go to nobody."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", **config}, logger=client_logger)
    try:
        producer.produce("t", bytes(value_bytes), bytes(key_bytes) or None, partition=0)
    except (KafkaException, BufferError):
        return False
    finally:
        producer.purge()
    return True


def test_the_native_client_counts_as_it_sends() -> None:
    """A batch for the record alone, at its most: against the request and against the memory in all."""
    assert limits_of(NATIVE, 100, 10)["max.request.size"].needed_bytes == size_upper_bound(bytes(10), bytes(100), ())
    for key in ("max.request.size", "buffer.memory"):
        for most, exceeded in ((196, False), (195, True)):
            config = {"batch.size": 100, key: most}
            (limit,) = [each for each in producer_limits(NATIVE, config, LargestRecord(10, 100)) if each.key == key]
            assert limit.is_exceeded is exceeded


@pytest.mark.parametrize(
    ("client", "given", "values"),
    [
        (NATIVE, {}, [1_048_576, 33_554_432]),
        (CONFLUENT, {}, [1_000_000, 131_072]),
        # Kafka's keys are taken by hand for librdkafka too
        (CONFLUENT, {"max.request.size": "5000000", "buffer.memory": 2**30}, [5_000_000, 2**20]),
        (CONFLUENT, {"message.max.bytes": 6_000_000, "fetch.max.bytes": 1}, [6_000_000, 131_072]),
    ],
)
def test_limits_are_those_of_the_clients_configuration(
    client: str, given: dict[str, str | int], values: list[int]
) -> None:
    """As the load gives it to the client, its own defaults where it says nothing."""
    assert [each.value for each in producer_limits(client, given, LargestRecord(0, 100))] == values


@pytest.mark.parametrize("client", [NATIVE, CONFLUENT])
def test_what_is_no_number_is_said_so(client: str) -> None:
    """The key and the value, in one line."""
    with pytest.raises(SettingsError, match=r"'lots' .* '(max\.request\.size|message\.max\.bytes)'"):
        producer_limits(client, {"max.request.size": "lots"}, LargestRecord(0, 100))


def test_a_topic_takes_what_its_batch_and_its_segment_hold() -> None:
    """Kafka's defaults, the broker's for the topic, and the largest request, all against the batch of one record."""
    brokers = broker.validate({"message.max.bytes": "5000", "socket.request.max.bytes": "4000"})
    limits = topic_limits(topic.validate({"segment.bytes": "6000"}, brokers), brokers, LargestRecord(0, 5000))
    assert [(each.option, each.key, each.value) for each in limits] == [
        ("topic", "max.message.bytes", 5000),
        ("topic", "segment.bytes", 6000),
        ("broker", "socket.request.max.bytes", 4000),
    ]
    assert {each.needed_bytes for each in limits} == {LargestRecord(0, 5000).batch_bytes}
    assert [each.is_exceeded for each in limits] == [True, False, True]


@pytest.mark.parametrize(
    ("topic_says", "broker_says", "bounds"),
    [
        (
            {"max.message.bytes": "9", "segment.bytes": "8"},
            {"message.max.bytes": "7"},
            {"max.message.bytes": 9, "segment.bytes": 8},
        ),
        ({}, {"message.max.bytes": "7"}, {"max.message.bytes": 7}),
        ({"max.message.bytes": None}, {"socket.request.max.bytes": "6"}, {"socket.request.max.bytes": 6}),
        ({"max.message.bytes": "-1", "segment.bytes": "much"}, {"message.max.bytes": ""}, {}),
    ],
)
def test_a_cluster_bounds_what_it_says_it_bounds(
    topic_says: dict[str, str | None], broker_says: dict[str, str | None], bounds: dict[str, int]
) -> None:
    """A topic that does not tell has its broker's limit; what nobody tells, or what is no size, bounds nothing."""
    limits = topic_limits(known_sizes(topic_says), known_sizes(broker_says), LargestRecord(0, 100))
    assert {each.key: each.value for each in limits} == bounds


def test_what_is_compressed_may_still_be_taken() -> None:
    """By Kafka's key or librdkafka's; a codec that is none is none."""
    assert unless_compressed("x", {}) == unless_compressed("x", {"compression.type": "none"}) == "x"
    for key in ("compression.type", "compression.codec"):
        assert unless_compressed("x", {key: "lz4"}) == "x (unless it is compressed to less)"


def test_advice_is_one_line_with_the_thing_and_both_fixes() -> None:
    """Who asks for how much, every limit in its way with its value, the size that fits, the settings that do."""
    largest = LargestRecord(8, 5000)
    fits = Limit("producer", "buffer.memory", 9000, 5044)
    assert advice("x", [fits], largest) is None
    low = Limit("producer", "message.max.bytes", 2000, 5044)
    queue = Limit("producer", "queue.buffering.max.kbytes", 4, 5000, 1024)
    assert advice("--workload big.yaml", [low, fits, queue], largest) == (
        "--workload big.yaml: a value of 5000 bytes and a key of 8 is too large for the producer's message.max.bytes "
        "2000 and the producer's queue.buffering.max.kbytes 4; write values of at most 1956 bytes, or give "
        "--producer-config message.max.bytes=5044 --producer-config queue.buffering.max.kbytes=5"
    )
    assert advice("y", [low], LargestRecord(0, 5000), "--kafka-{}-config") == (
        "y: a value of 5000 bytes is too large for the producer's message.max.bytes 2000; write values of at most 1956 "
        "bytes, or give --kafka-producer-config message.max.bytes=5044"
    )


def test_no_size_is_advised_that_no_value_has() -> None:
    """A value has its 48 bytes of header at least."""
    line = advice("z", [Limit("topic", "max.message.bytes", 100, 269)], LargestRecord(0, 200))
    assert line == (
        "z: a value of 200 bytes is too large for the topic's max.message.bytes 100; "
        "give --topic-config max.message.bytes=269"
    )
