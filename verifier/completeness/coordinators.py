"""Checks that the logs of the coordinators' topics, and of a group's output, exist and can be read. Pure.

Owns these doubts. No run declares ``__transaction_state`` and ``__consumer_offsets``, because brokers create them. But
the checks take no missing record in a damaged or absent log as an anomaly. So without these logs, they would find
nothing.
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
    """Missing or unreadable logs. They are the cluster's own data, so these doubts blind no evidence."""
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
    """The number of partitions of each topic that the workload needs; empty if gapless did not start the cluster."""
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
