"""Whether the run declared what it was asked for: every process, every replica, and no other. Pure.

The other modules of this package check whether what was declared is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.doubts import Doubt
from verifier.evidence.run_model import RunModel


def doubts(run: RunModel) -> Iterator[Doubt]:
    """Where the declaration and the settings disagree. What was never declared would never be missed."""
    if not run.evidence.processes:
        return  # said already, with the histories
    for reason in [*_processes(run), *_replicas(run)]:
        yield Doubt(reason)


def _processes(run: RunModel) -> Iterator[str]:
    declared, asked = run.evidence, run.settings
    loads = len(declared.of_role("producers"))
    if loads != asked.load_processes:
        yield f"run.json declares {loads} load processes, but the run asked for {asked.load_processes}"
    streams = len(declared.streams)
    if streams != asked.users:
        yield f"run.json declares {streams} streams, but the run asked for {asked.users}"
    for what, processes, clients in (
        ("readers", declared.of_role("readers"), asked.readers),
        ("final readers", declared.of_role("final"), asked.final_readers),
    ):
        found = sorted(process.client for process in processes)
        if found != sorted(clients):
            yield f"run.json declares the {what} {_listed(found)}, but the run asked for {_listed(sorted(clients))}"


def _replicas(run: RunModel) -> Iterator[str]:
    asked = run.settings
    if len(run.evidence.brokers) != asked.brokers:
        yield f"run.json declares {len(run.evidence.brokers)} brokers, but the run asked for {asked.brokers}"
    for topic in run.topics:
        if topic.partitions != asked.partitions:
            yield f"{topic.name} has {topic.partitions} partitions, but should have {asked.partitions}"
    if len(run.evidence.replicas) != asked.partitions:
        yield f"run.json declares the replicas of {len(run.evidence.replicas)} partitions, not of {asked.partitions}"
    for name, brokers in sorted(run.evidence.replicas.items()):
        if len(set(brokers)) != asked.replication_factor:
            told = f"run.json declares {len(set(brokers))} replicas of {name}"
            yield f"{told}, but the run asked for {asked.replication_factor}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
