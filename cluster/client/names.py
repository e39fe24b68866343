"""What a program names: topics, partitions and numbers, looked at before they reach code that would stumble over them.

Owns what can be said of them without asking a broker, which is whether they can be sent at all. Whether they are good
ones is the broker's to say.
"""

from __future__ import annotations

from cluster.config.keys import INT_MAX, LONG_MAX

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


def checked_long(number: object, what: str) -> int:
    """``number`` if 64 bits hold it. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(number, int):
        raise TypeError(f"{what} is an integer, not {type(number).__name__}")
    if not -LONG_MAX <= number <= LONG_MAX:
        raise ValueError(f"{what} has 64 bits: {number}")
    return int(number)


def fits_string(text: str) -> bool:
    """Whether a text can be sent in a field of the protocol."""
    try:
        return len(text.encode()) <= MOST_STRING_BYTES
    except UnicodeEncodeError:
        return False
