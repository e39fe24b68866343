"""Checks that the run declared every process and replica that its settings ask for, and no others. Pure.

Owns these doubts, and the number of members that a workload asks for. Whether the declared evidence exists is checked
by the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.doubts import Doubt
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_model import RunModel
from verifier.workload_asked import workload_of

#: Client -> the default number of members with it, in a workload with a group.
_USUAL_MEMBERS = {"native": 3, "confluent": 3}


def doubts(run: RunModel) -> Iterator[Doubt]:
    """Contradictions between the declaration and the settings. Evidence that was not declared would not be missed."""
    if not run.evidence.processes:
        return  # ``verifier.completeness.histories`` reports it
    for reason in [*_processes(run), *_replicas(run)]:
        yield Doubt(reason)


def _processes(run: RunModel) -> Iterator[str]:
    declared, asked = run.evidence, run.settings
    loads = len(declared.of_role("producers"))
    if loads != (wanted := max(asked.load_processes, _rivals(run))):
        yield f"run.json declares {loads} load processes, but the run asked for {wanted}"
    streams = len(declared.streams)
    if streams != asked.users:
        yield f"run.json declares {streams} streams, but the run asked for {asked.users}"
    for what, processes, clients in (
        ("members", declared.of_role("members"), tuple(members_asked(run))),
        ("readers", declared.of_role("readers"), asked.readers),
        ("final readers", declared.of_role("final"), asked.final_readers),
    ):
        found = sorted(process.client for process in processes)
        if found != sorted(clients):
            yield f"run.json declares the {what} {_listed(found)}, but the run asked for {_listed(sorted(clients))}"


def members_asked(run: RunModel) -> dict[str, int]:
    """The number of group members that the workload asks for, by client; empty without a group."""
    found = workload_of(run).get("members") or {}
    wanted = {client: found.get(client, usual) for client, usual in _USUAL_MEMBERS.items()} if found else {}
    return {client: number for client, number in wanted.items() if number}


def transforms(run: RunModel) -> bool:
    """Whether the members of the workload's group write the records that they read to another topic."""
    return bool((workload_of(run).get("members") or {}).get("transform"))


def _rivals(run: RunModel) -> int:
    """The number of producers that share a ``transactional.id``, each in its own process; 1 if none share."""
    found = (workload_of(run).get("transactions") or {}).get("rivals", 1)
    return found if isinstance(found, int) else 1


def _replicas(run: RunModel) -> Iterator[str]:
    asked = run.settings
    if len(run.evidence.brokers) != asked.brokers:
        yield f"run.json declares {len(run.evidence.brokers)} brokers, but the run asked for {asked.brokers}"
    for topic in run.topics:
        if topic.partitions != asked.partitions:
            yield f"{topic.name} has {topic.partitions} partitions, but should have {asked.partitions}"
    output = sum(name.rpartition("-")[0] == OUTPUT_TOPIC for name in run.evidence.replicas)
    wanted, wanted_there = asked.partitions, asked.partitions if transforms(run) else 0
    if (found := len(run.evidence.replicas) - output) != wanted:
        yield f"run.json declares the replicas of {found} partitions, not of {wanted}"
    if output != wanted_there:
        yield f"run.json declares the replicas of {output} partitions of {OUTPUT_TOPIC}, not of {wanted_there}"
    for name, brokers in sorted(run.evidence.replicas.items()):
        if len(set(brokers)) != asked.replication_factor:
            told = f"run.json declares {len(set(brokers))} replicas of {name}"
            yield f"{told}, but the run asked for {asked.replication_factor}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
