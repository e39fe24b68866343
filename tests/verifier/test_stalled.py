"""stalled: a partition that takes no more writes once everything is healed, and its nearest legal neighbors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.settings import settings
from tests.verifier.test_verdict import a_run, audit, closing, decide
from verifier.checks.stalled import stalled, unproven
from verifier.closing.closing import Closing
from verifier.evidence.run_model import PhaseSpan, RunModel

SECOND = 1_000_000_000
PLACE = ("t", 0)


def run(recovery_s: float = 12.0, **changes: Any) -> RunModel:
    """A run healed at 51 s whose recovery took so long."""
    spans = [PhaseSpan("heal", 50 * SECOND, 51 * SECOND)]
    spans.append(PhaseSpan("recovery", 51 * SECOND, int((51 + recovery_s) * SECOND)))
    return a_run(phases=spans, settings=settings(stalled_after_s=10.0, rate=0.0), **changes)


def told(acked_s: float | None, tried_s: float) -> Closing:
    """Evidence in which the partition was last acknowledged and last written to at these times."""
    acked = {} if acked_s is None else {PLACE: int(acked_s * SECOND)}
    tried = {PLACE: int(tried_s * SECOND)}
    known = closing().accounts
    return closing(
        accounts=tuple(
            replace(each, last_acked_ns=acked, last_tried_ns=tried) if each.process == "producer-1" else each
            for each in known
        )
    )


@pytest.mark.parametrize(
    ("acked_s", "tried_s", "recovery_s", "found"),
    [
        (50.0, 63.0, 12.0, True),
        (None, 63.0, 12.0, True),
        (51.5, 63.0, 12.0, False),  # acknowledged after the heal
        (50.0, 50.9, 12.0, False),  # not written to since
        (50.0, 63.0, 9.9, False),  # not waited for long enough
    ],
)
def test_only_a_partition_that_is_written_to_in_vain_is_stalled(
    acked_s: float | None, tried_s: float, recovery_s: float, *, found: bool
) -> None:
    """Each of the three conditions is needed; a partition that was never acknowledged is the worst one."""
    anomalies = list(stalled(run(recovery_s), told(acked_s, tried_s)))
    assert bool(anomalies) is found
    if found:
        assert (anomalies[0].topic, anomalies[0].partition, anomalies[0].detail["waited_ms"]) == ("t", 0, 12_000)


@pytest.mark.parametrize(
    ("acked_s", "tried_s", "recovery_s", "found"),
    [(50.0, 63.0, 1.0, True), (51.5, 63.0, 1.0, False), (50.0, 50.9, 1.0, False), (50.0, 63.0, 12.0, False)],
)
def test_a_recovery_that_ended_early_saw_every_partition_take_writes(
    acked_s: float, tried_s: float, recovery_s: float, *, found: bool
) -> None:
    """One that was written to in vain contradicts it; past the bound it is an anomaly instead."""
    assert unproven(run(recovery_s), told(acked_s, tried_s)) == ([PLACE] if found else [])


def test_without_a_recovery_nothing_is_judged() -> None:
    """A cluster that never came back into sync is unavailable, which is another matter."""
    bare = a_run(phases=[PhaseSpan("heal", 50 * SECOND, 51 * SECOND)])
    assert list(stalled(bare, told(50.0, 63.0))) == []


def test_a_stalled_partition_makes_the_run_invalid_also_without_a_sentinel() -> None:
    """The partition has no place in the tables, and the verdict names it all the same."""
    evidence = told(None, 63.0)
    verdict = decide(run(), audit(*stalled(run(), evidence)), evidence)
    assert verdict.verdict == "invalid"
    assert verdict.accusations[0].startswith("stalled: a partition takes no writes")
    assert "nothing was ever acknowledged in it" in verdict.checks["stalled"].examples[0].text
