"""How defects harm a log after a crash: it is opened correctly, and then changed.

Owns when that happens: at a start after an unclean stop, and not to the brokers' internal topics, which no check
examines. What is changed, and whether there is anything to change, is each defect's own.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.log.data_directory import parse_replica_directory_name
from cluster.log.errors import not_opened
from cluster.log.opening import OpenedLog
from cluster.topic_partition import TopicPartition

#: (which log, what was opened, up to where it was known to be synced); raises ``OSError``.
Harm = Callable[[TopicPartition, OpenedLog, int], None]


def topic_partition_of(directory: str) -> TopicPartition | None:
    """Whose log is in a directory; None for another directory, and for a topic that brokers keep for themselves."""
    found = parse_replica_directory_name(posixpath.basename(directory))
    return None if found is None or found[0].startswith("__") else found


def harmed_after_crash(harm: Harm, rules: Rules, probability: float, random: Random) -> Rules:
    """The rules by which a log is harmed, with ``probability``, when it is opened after an unclean stop."""

    def open_log(directory: str, *settings: object, clean: bool, recovery_point: int, **facts: object) -> OpenedLog:
        opened = rules.open_log(directory, *settings, clean=clean, recovery_point=recovery_point, **facts)
        whose = topic_partition_of(directory)
        if clean or whose is None or random.random() >= probability:
            return opened
        try:
            harm(whose, opened, recovery_point)
        except OSError as error:
            opened.segments.close()
            raise not_opened(f"opening {directory}", error) from error
        return opened

    return replace(rules, open_log=open_log)
