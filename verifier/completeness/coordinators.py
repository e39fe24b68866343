"""Whether the logs are there that say what coordinators decided and stored, and what a group wrote. Pure.

No run declares the coordinators' topics, since brokers create them. But what is absent or damaged in them accuses no
one of what it lacks, so that without them nothing would be found.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.completeness.declared import transforms
from verifier.completeness.together import together
from verifier.coordinators.topics import OFFSETS_TOPIC, STATE_TOPIC, configured_partitions
from verifier.doubts import Doubt
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_model import RunModel
from verifier.narrowed import is_foreign
from verifier.workload_asked import transactions_asked


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """What is not there, or cannot be read. It is the cluster's data: nothing becomes blind."""
    there = closing.coordinators
    absent = [
        (f"{topic}-{number}", "no broker has a log of it, and the run used it")
        for topic, count in _wanted(run).items()
        for number in range(count)
        if (topic, number) not in there
    ]
    damaged = [
        (f"{topic}-{number}", "its most advanced log cannot be read to its end")
        for (topic, number), is_readable in sorted(there.items())
        if not is_readable
    ]
    for reason in together([*absent, *damaged]):
        yield Doubt(reason)


def _wanted(run: RunModel) -> dict[str, int]:
    """How many partitions each of these topics has, if the workload needs it. Those of others are never read."""
    if is_foreign(run):
        return {}
    has_groups = bool(run.evidence.of_role("members"))
    found = {}
    if transactions_asked(run) is not None or (has_groups and transforms(run)):
        found[STATE_TOPIC] = configured_partitions(run, STATE_TOPIC) or 1
    if has_groups:
        found[OFFSETS_TOPIC] = configured_partitions(run, OFFSETS_TOPIC) or 1
    if has_groups and transforms(run):
        found[OUTPUT_TOPIC] = run.settings.partitions
    return found
