"""What a program names: topics, partitions and numbers, checked before they reach code that would stumble over them.

Owns what can be said about them without asking a broker, which is whether they can be sent at all. Whether they are
good ones is the broker's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cluster.config.keys import INT_MAX
from cluster.topic_partition import TopicPartition

#: The length of a string on the wire is 16 bits with a sign.
MOST_STRING_BYTES = 2**15 - 1


def checked_topic(topic: object) -> str:
    """``topic`` if it can be sent. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(topic, str):
        raise TypeError(f"the name of a topic is a text, not {type(topic).__name__}")
    if not fits_string(topic):
        raise ValueError(f"no topic can have this name: {topic[:80]!r} ({len(topic)} characters)")
    return topic


def checked_partition(partition: object) -> int:
    """``partition`` if it can be one. Raises ``TypeError``, and ``ValueError`` in Kafka's words."""
    if not isinstance(partition, int):
        raise TypeError(f"a partition is an integer, not {type(partition).__name__}")
    if not 0 <= partition <= INT_MAX:
        raise ValueError(f"Invalid partition: {partition}. Partition number should always be non-negative or None.")
    return int(partition)


def checked_key(key: object) -> TopicPartition:
    """``key`` if it is a topic and the number of a partition. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(key, tuple) or len(key) != 2:
        raise TypeError(f"a partition is named by a pair (topic, number), not by {key!r}")
    return checked_topic(key[0]), checked_partition(key[1])


def checked_long(number: object, what: str) -> int:
    """``number`` if 64 bits hold it. Raises ``TypeError`` and ``ValueError``."""
    return checked_integer(number, what, 64)


def checked_integer(number: object, what: str, bits: int) -> int:
    """``number`` if this many bits hold it. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(number, int):
        raise TypeError(f"{what} is an integer, not {type(number).__name__}")
    if abs(number) >= 2 ** (bits - 1):
        raise ValueError(f"{what} has {bits} bits: {number}")
    return int(number)


def checked_brokers(ids: object) -> list[int]:
    """The ids of brokers. Raises ``TypeError`` and ``ValueError``."""
    return [checked_integer(each, "the id of a broker", 32) for each in checked_list(ids, "ids of brokers")]


def checked_configs(configs: object) -> dict[str, str | None]:
    """Keys and their values, if they can be sent. Raises ``TypeError`` and ``ValueError``."""
    checked: dict[str, str | None] = {}
    for key, value in checked_mapping(configs, "configs").items():
        key = checked_text(key, "the key of a config")
        checked[key] = None if value is None else checked_text(value, f"the value of {key}")
    return checked


def checked_text(text: object, what: str) -> str:
    """``text`` if it can be sent. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, not {type(text).__name__}: write it in quotes")
    if not fits_string(text):
        raise ValueError(f"{what} is valid text of at most {MOST_STRING_BYTES} bytes: {text[:80]!r}")
    return text


def checked_topics(topics: object) -> list[str]:
    """Names of topics. Raises ``TypeError`` and ``ValueError``."""
    return [checked_topic(each) for each in checked_list(topics, "names of topics")]


def checked_keys(partitions: object) -> list[TopicPartition]:
    """Partitions. Raises ``TypeError`` and ``ValueError``."""
    return [checked_key(each) for each in checked_list(partitions, "partitions")]


def checked_numbers(numbers: object, what: str, whose: str) -> dict[TopicPartition, int]:
    """A number of 64 bits for each partition. Raises ``TypeError`` and ``ValueError``."""
    pairs = checked_mapping(numbers, what).items()
    return {checked_key(key): checked_long(number, whose) for key, number in pairs}


def checked_list(items: object, what: str) -> list[Any]:
    """What can be gone through, but no text: that would be its letters. Raises ``TypeError``."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise TypeError(f"{what} come as a list, not as {type(items).__name__}: write it in brackets")
    return list(items)


def checked_mapping(items: object, what: str) -> Mapping[Any, Any]:
    """``items`` if it is a mapping. Raises ``TypeError``."""
    if not isinstance(items, Mapping):
        raise TypeError(f"{what} come as a mapping, not as {type(items).__name__}")
    return items


def fits_string(text: str) -> bool:
    """Whether a text can be sent in a field of the protocol."""
    try:
        return len(text.encode()) <= MOST_STRING_BYTES
    except UnicodeEncodeError:
        return False
