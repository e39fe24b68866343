"""How long a partition goes without an acknowledgement because of a fault."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verifier.test_verdict import a_run, audit, closing, decide, facts
from verifier.evidence.run_model import PhaseSpan, TopicSpec
from verifier.facts import Audit, Gap
from verifier.figures.unavailability import longest_gap, to_json, unavailability
from verifier.witness.effectiveness import Injected

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("acks", "expected"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], (1, True)),  # never more than a second
        ([1, 2, 4, 8, 9], (4, True)),  # the gap outlasts the fault
        ([1, 9], (6, True)),  # what was missing before the fault is not its fault
        ([1, 4], (6, False)),  # none came any more: until the load ends
        ([], (7, False)),  # never any
        ([1, 6, 10], (4, True)),  # the longest of several, not the last
    ],
)
def test_the_longest_gap_of_a_fault(acks: list[int], expected: tuple[int, bool]) -> None:
    """From 3 to 6 s there was a fault; the load ended at 10 s."""
    assert longest_gap(np.array(acks, dtype=np.int64), 3, 6, 10) == expected


def test_a_partition_without_any_acknowledgement_is_the_worst() -> None:
    """It is in the list for each fault, with the whole time, and marked."""
    run = a_run(topics=[TopicSpec("t", 2, 3)], phases=[PhaseSpan("chaos", 0, 20 * SECOND)])
    fault = Injected("kill-leader", "b1", 5 * SECOND, 8 * SECOND, True, False, {}, healed_ns=7 * SECOND)
    skipped = Injected("cut-link", "b1", 9 * SECOND, None, False, True, {})
    acks = {("t", 0): np.arange(0, 20 * SECOND, SECOND // 2)}
    entries = to_json(unavailability(run, [fault, skipped], acks), [fault, skipped])
    assert [(each["fault"], each["healed_ns"], each["end_ns"]) for each in entries] == [
        ("kill-leader", 7 * SECOND, 8 * SECOND)
    ]
    partitions = entries[0]["partitions"]
    assert partitions["t-0"] == {"longest_gap_ms": 500.0, "ended": True, "ever_acknowledged": True}
    assert partitions["t-1"] == {"longest_gap_ms": 15_000.0, "ended": False, "ever_acknowledged": False}


def test_the_verdict_counts_partitions_that_were_never_acknowledged() -> None:
    """The longest gap of the run is that of the silent partition, for as long as the load ran."""
    run = a_run(topics=[TopicSpec("t", 2, 3)], phases=[PhaseSpan("chaos", 0, 20 * SECOND)])
    availability = decide(run, Audit(facts(), gaps=(Gap("t", 0, SECOND, 1, 1 + SECOND),)), closing()).availability
    assert availability["longest_gap_ms"] == 20_000.0
    assert availability["partitions"]["t-1"]["never_acknowledged"] is True
    assert "never_acknowledged" not in availability["partitions"]["t-0"]


def test_nothing_is_said_where_nothing_is_known() -> None:
    """Without phases and acknowledgements there is no load to measure by."""
    fault = Injected("kill-leader", "b1", 5, 8, True, False, {})
    assert unavailability(a_run(phases=[]), [fault], {}) == []
    assert decide(a_run(), audit(gaps=()), closing()).availability["longest_gap_ms"] is None
