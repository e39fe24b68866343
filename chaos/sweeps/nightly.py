"""The sweep ``nightly``: every fault set with every workload that it suits, with seeds derived from the date.

Owns its matrix and its order. A night seldom has time for the whole matrix (``--minutes``). So the cells run along its
diagonals, from a different starting point each night: the first cells all have different fault sets, each with another
workload than the night before. Does not run the cells (``sweep_runner``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from chaos.experiment.asked import Asked
from chaos.experiment.planned import SMALL_SEGMENT
from chaos.experiment.planned import suits as suited
from chaos.faults.catalogue import FAULTS, GROUPS, parse_faults
from chaos.sweeps.model import SEED, Cell, Sweep, Wanted, parse_filter
from loadgen.workload import Workload
from loadgen.workloads import CATALOGUE

NAME = "nightly"
SUMMARY = "every fault set with every workload, seeded by the date (for CI; limit it with --minutes)"

TIME_LIMIT_S = 40.0
#: These faults kill a process for good, so each kind of process must exist twice.
LOAD_KILLS = "kill-producers,kill-readers"
#: Name -> (faults, whether they may overlap). Each fault of ``all`` is in exactly one set besides ``composed``.
FAULT_SETS: Mapping[str, tuple[str, bool]] = {
    "crashes": (
        "kill-leader,kill-follower,kill-controller,pause-leader,rolling-restart,starve-cpu,memory-pressure",
        False,
    ),
    "storms": ("kill-all,kill-majority,kill-and-wipe,restart-storm,double-failover", False),
    "network": ("cut-link,isolate-broker,drop-packets,drop-response,reset,slow-link", False),
    "partitions": ("halves,bridge,ring,leader-with-clients,leader-with-followers,zookeeper-from-one", False),
    "links": ("jitter,bandwidth,slicer,refuse,flapping,slow-close", False),
    "requests": ("delay-request,duplicate-request,cut-frame,close-on", False),
    "zookeeper": ("pause-zookeeper,restart-zookeeper,expire-session", False),
    "orders": ("reassign-partitions,elect-preferred,add-partitions,alter-config,create-delete-topic", False),
    "transactions": (
        "kill-transaction-coordinator,pause-transaction-coordinator,delay-end-txn,repeat-end-txn,"
        "drop-end-txn-response,hold-markers,delay-markers",
        False,
    ),
    "disks": ("power-loss,truncate-tail,full-disk,disk-error,slow-disk", False),
    "files": ("lose-checkpoint,lose-index,bit-flip", False),
    "clocks": ("clock-jump,clock-drift", False),
    "groups": ("kill-group-coordinator,pause-group-coordinator", False),
    "producers": ("pause-producers", False),
    "load": (LOAD_KILLS, False),
    "members": ("pause-members,crash-members,restart-members", False),
    "composed": ("all", True),
}
#: The swarms whose runs must be valid: each seed draws faults and settings.
SWARMS = ("survivable", "historic")
#: The number of seeds reserved for each date: yyyymmdd001 and so on.
SEEDS_A_DAY = 1000


def build(wanted: Wanted) -> Sweep:
    """The matrix once; with ``--minutes``, as many times as could fit into that time, each time with the next seed."""
    if wanted.seeds is not None:
        return Sweep(NAME, SUMMARY, "faults", tuple(_cells(wanted, wanted.seeds)))
    first = wanted.day * SEEDS_A_DAY + 1
    once = Sweep(NAME, SUMMARY, "faults", tuple(_cells(wanted, (first,))))
    if wanted.minutes is None:
        return once
    # the seed in a --filter may belong to a later round
    chosen = once.filtered([term for term in parse_filter(wanted.filters) if term[0] != SEED])
    least_s = max(1, len(chosen)) * wanted.time_limit_or(TIME_LIMIT_S)
    rounds = min(SEEDS_A_DAY - 1, max(1, math.ceil(wanted.minutes * 60 / max(1.0, least_s))))
    return Sweep(NAME, SUMMARY, "faults", tuple(_cells(wanted, tuple(range(first, first + rounds)))))


def suits(faults: str, workload: Workload) -> bool:
    """Whether all faults of a set can take effect with this workload. True for ``all``: its runs omit the others."""
    if faults in GROUPS:
        return True
    return all(suited(FAULTS[name], workload) for name in parse_faults(faults))


def _topic_config(faults: str) -> tuple[str, ...]:
    """The ``KEY=VALUE`` settings of the topic that some fault of the set needs to take effect."""
    named = () if faults in GROUPS else parse_faults(faults)
    needs_closed = any(FAULTS[name].needs_closed_segments for name in named)
    return (f"segment.bytes={SMALL_SEGMENT}",) if needs_closed else ()


def _cells(wanted: Wanted, seeds: tuple[int, ...]) -> Iterator[Cell]:
    loads_of = {
        name: [each for each, workload in CATALOGUE.items() if suits(faults, workload)]
        for name, (faults, _) in FAULT_SETS.items()
    } | {name: [*CATALOGUE] for name in SWARMS}
    # a set that suits every workload begins with another workload each night, so that a few nights cover all workloads
    anywhere = [name for name, loads in loads_of.items() if len(loads) == len(CATALOGUE)]
    # a workload without a rate limit overloads a small machine, including the harness, so it comes last
    for row, (fault_set, loads) in enumerate(loads_of.items()):
        faults, overlap = FAULT_SETS.get(fault_set, (None, False))
        paced = [name for name in loads if not CATALOGUE[name].is_unlimited]
        offset = (anywhere.index(fault_set) if fault_set in anywhere else row) + wanted.day * len(anywhere)
        for column, workload in enumerate(loads):
            place = (paced.index(workload) - offset) % len(paced) if workload in paced else len(CATALOGUE) + column
            for number, seed in enumerate(seeds):
                asked = Asked(
                    seed=seed,
                    name=NAME,
                    time_limit_s=wanted.time_limit_or(TIME_LIMIT_S),
                    client=wanted.client,
                    rate=wanted.rate,
                    faults=faults,
                    overlap=overlap,
                    swarm=fault_set if fault_set in SWARMS else None,
                    workload=workload,
                    load_processes=2 if faults == LOAD_KILLS else 1,
                    topic_config=() if faults is None else _topic_config(faults),
                    defects=wanted.defects,
                )
                labels = {"faults": fault_set, "workload": workload, SEED: str(seed)}
                yield Cell(labels, asked, turn=(number, place, row))
