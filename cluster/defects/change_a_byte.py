"""change-a-byte: store another last byte of a value, under a checksum that is right for it.

What a broker does that computes the checksum of a batch after it has damaged it. A calibration of the verifier: no
checksum of Kafka's tells, so the value itself must.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.altered import altering
from cluster.defects.firings import Firings
from cluster.protocol.records import Record

NAME = "change-a-byte"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """The last record of the batch is changed, if it has a value."""
    return altering(NAME, _changed, rules, probability, random, firings)


def _changed(records: list[Record]) -> list[Record] | None:
    value = records[-1].value
    if not value:
        return None
    return [*records[:-1], records[-1]._replace(value=value[:-1] + bytes([value[-1] ^ 1]))]
