"""Files that belong to no declared process, broker or partition. Owns the search by name; judges nothing.

A seal that was taken again covers whatever is there; what the run declared before its load began does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from verifier.evidence.declared import DeclaredEvidence
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.narrowed import is_foreign

#: What a load process and Locust in it leave; a program of the final phase leaves its log. Anyone who is taken out of
#: the declaration left these.
_OF_PROCESSES = (
    ".series.jsonl", ".status.json", ".log", ".html", ".json",
    "_stats.csv", "_stats_history.csv", "_failures.csv", "_exceptions.csv",
)  # fmt: skip
#: What the load as a whole leaves.
_OF_LOAD = ("settings.json", "web.json")
#: The directory in ``nodes/`` that is no broker's.
_ZOOKEEPER = "zookeeper"
#: Partitions of the brokers' own topics, which appear when a client of the load looks for the coordinator of its group
#: or of its transactions. No run declares them.
_INTERNAL_PARTITION = re.compile(r"(?:__consumer_offsets|__transaction_state)-\d+")


def strangers(directory: RunDirectory, run: RunModel) -> Iterator[str]:
    """Paths within the run directory, sorted; nothing if the run had not declared anything yet."""
    if not run.evidence.processes:
        return
    found = [*_histories(directory, run.evidence), *_load(directory, run.evidence), *_nodes(directory, run.evidence)]
    if is_foreign(run):
        found += set(_beside_data(directory)) - {*found}
    yield from sorted(str(path.relative_to(directory.path)) for path in found)


def _histories(directory: RunDirectory, declared: DeclaredEvidence) -> Iterator[Path]:
    known = {directory.history(process.name) for process in declared.processes}
    yield from (path for path in _files(directory.history_dir) if path not in known)


def _load(directory: RunDirectory, declared: DeclaredEvidence) -> Iterator[Path]:
    whose = {name for process in declared.processes for name in (process.name, process.child)}
    names = {*_OF_LOAD, *(f"{name}{ending}" for name in whose for ending in _OF_PROCESSES)}
    for path in _files(directory.loadgen_dir):
        if path.name.endswith(_OF_PROCESSES) and path.name not in names:
            yield path


def _nodes(directory: RunDirectory, declared: DeclaredEvidence) -> Iterator[Path]:
    """Files of brokers that were not declared, and of partitions that a broker has no replica of."""
    brokers = {str(broker): broker for broker in declared.brokers}
    for path in _files(directory.nodes_dir):
        node, *inner = path.relative_to(directory.nodes_dir).parts
        if node not in brokers:
            if node != _ZOOKEEPER:
                yield path
        elif len(inner) > 2 and inner[0] == "data" and brokers[node] not in declared.replicas.get(inner[1], []):
            if _INTERNAL_PARTITION.fullmatch(inner[1]) is None:
                yield path
        elif path.suffix == ".log" and path.parent.name in declared.replicas and inner[:-2] != ["data"]:
            # anyone who looks for segments finds these, too, and would judge a copy, or what was moved away
            yield path


def _beside_data(directory: RunDirectory) -> Iterator[Path]:
    """What only brokers and a ZooKeeper of our own leave: of others', a run keeps logs alone (docs/target.md)."""
    for path in _files(directory.nodes_dir):
        if "data" not in path.relative_to(directory.nodes_dir).parts[1:2]:
            yield path


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if not path.is_dir())
