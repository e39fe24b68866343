"""bank-total: the accounts of a bank do not add up, because a transfer has only one side.

Definition. In a run of the workload kind ``bank``, each transaction transfers amounts between the two accounts of its
producer: stream 2n has the debits and stream 2n + 1 the credits, and sequence k of both is one transfer. A reader with
an ``isolation`` row that read every partition through its sentinel received one side of a transfer at more offsets than
the other, so that the total of all accounts has changed. (This is Jepsen's bank. Partitions are read one after the
other, so the end of the log is the snapshot.) Legal: a transfer of which a reader received both sides or neither,
whatever the outcome of its transaction; any reader that did not reach the end, that reads everything, or that is a
member of a group, which receives only a part.

    producer-1: begin 3, send s0/4 (-17) and s1/4 (+17), commit 3        final-native: s0/4 at t-0:17, and never s1/4
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from verifier.evidence.sequenced_value import SENTINEL_STREAM
from verifier.evidence.transfers import amount, other_side
from verifier.transactions.client_rows import ClientEvidence
from verifier.transactions.model import Anomalous
from verifier.transactions.state_records import TopicPartition

NAME = "bank-total"


class Bank(NamedTuple):
    """A run of the workload kind ``bank``. ``ends`` has the offset of each partition's sentinel."""

    run_id: int
    ends: Mapping[TopicPartition, int]


#: The values that one reader received: (stream, sequence) -> all (partition, offset) of them.
_Handed = Mapping[tuple[int, int], Set[tuple[TopicPartition, int]]]


def bank_total(evidence: ClientEvidence, bank: Bank) -> Iterator[Anomalous]:
    """One anomaly per reader and transfer, for the side with more offsets; ``offset`` is the first of them."""
    for reader, handed in _by_reader(evidence, bank).items():
        torn = [
            (value, places)
            for value, places in handed.items()
            if len(places) > len(handed.get((other_side(value[0]), value[1]), ()))
        ]
        off = sum(
            amount(bank.run_id, *value) * (len(places) - len(handed.get((other_side(value[0]), value[1]), ())))
            for value, places in torn
        )
        for (stream, sequence), places in torn:
            (topic, partition), offset = min(places)
            detail = {
                "reader": reader,
                "stream": stream,
                "sequence": sequence,
                "lacks": other_side(stream),
                "amount": amount(bank.run_id, stream, sequence),
                "off": off,
            }
            yield Anomalous(NAME, None, topic, partition, offset, detail)


def _by_reader(evidence: ClientEvidence, bank: Bank) -> dict[str, _Handed]:
    """The values that each ``read_committed`` reader received, if it reached the end of every partition."""
    found: dict[str, dict[tuple[int, int], set[tuple[TopicPartition, int]]]] = defaultdict(lambda: defaultdict(set))
    reached: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
    for polled in evidence.polled:
        if polled.process in evidence.members:
            continue
        last = polled.offset_of(polled.last_sequence)
        ends = reached[polled.process]
        ends[polled.place] = max(last, ends.get(polled.place, -1))
        if polled.stream >= SENTINEL_STREAM or polled.first_offset < 0:
            continue
        for sequence in range(polled.first_sequence, polled.last_sequence + 1):
            found[polled.process][polled.stream, sequence].add((polled.place, polled.offset_of(sequence)))
    return {
        reader: handed
        for reader, handed in found.items()
        if all(reached[reader].get(place, -1) >= end for place, end in bank.ends.items())
    }
