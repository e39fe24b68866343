"""How the verdict of a run against a cluster that gapless did not start is narrowed: what is not asked, and why.

Owns that, and which evidence is due from such a cluster. It leaves no journals, and only those replica files that the
run was told about; of other partitions, the run keeps the log as the leader served it (docs/target.md). A check whose
evidence is not due is not asked, which the verdict says; it does not make the verdict unknown. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.workload_asked import transactions_asked

#: Checks of the files next to a log, and of how a log ends when its broker stops: nothing to judge while it runs.
_BESIDE_THE_LOGS = ("torn-tail", "checkpoint-mismatch", "snapshot-mismatch", "aborted-index-audit", "index-mismatch")
_RAN_ON = "the brokers of --target kept running: the files next to their logs change, and are not copied"
_NO_IDS = "the run does not know which producer ids the cluster handed out"
_NO_ISRS = "the run has no journals of the brokers, so it does not know when their leaders adopted which ISR"
#: Checks of what leaders did with too few replicas in sync.
_IN_SYNC = ("under-min-isr", "watermark-under-min-isr")
#: Checks of what the coordinators of transactions decided.
_DECISIONS = ("torn-transaction", "marker-audit", "hanging-transaction", "undecided-commit")
_NOT_DECIDED = "what coordinators decided is not read: __transaction_state has the transactions of others, too"
#: Checks of one replica beside another.
_REPLICAS = ("log-divergence", "internal-divergence")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """``unasked``: the checks that are not asked, and why. ``notes``: what else was not seen."""

    unasked: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it for people: a line for each reason, with its checks, then the rest."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.unasked.items():
            by_reason.setdefault(why, []).append(name)
        return (*(f"not asked: {', '.join(names)}: {why}" for why, names in by_reason.items()), *self.notes)


def is_foreign(run: RunModel) -> bool:
    """Whether the run's cluster was started by others."""
    return run.settings.target is not None


def given_files(run: RunModel) -> frozenset[int]:
    """The brokers of a foreign cluster whose directories the run was told of."""
    ids = (text.partition("=")[0] for text in run.settings.replica_dirs)
    return frozenset(int(each) for each in ids if each.isdecimal())


def due_files(run: RunModel, final: FinalPartition) -> frozenset[int]:
    """The brokers of whose replica of this partition the run must have the log."""
    replicas = frozenset(final.log_end_offsets)
    return replicas if not is_foreign(run) else replicas & (given_files(run) | {final.leader})


def narrowing(run: RunModel) -> Narrowing:
    """What the verdict of this run says nothing about; nothing for a cluster of our own."""
    if not is_foreign(run):
        return Narrowing()
    given = given_files(run)
    unasked = {**dict.fromkeys(_BESIDE_THE_LOGS, _RAN_ON), "unknown-producer-id": _NO_IDS}
    unasked |= dict.fromkeys(_IN_SYNC, _NO_ISRS)
    if transactions_asked(run) is not None:
        unasked |= dict.fromkeys(_DECISIONS, _NOT_DECIDED)
    notes = ["not seen: the brokers' journals, logs, clocks and event loops"]
    unseen = sorted(set(run.evidence.brokers) - given)
    if unseen:
        named = ", ".join(map(str, unseen))
        notes.append(
            f"not seen: the replica files of broker{'s' * (len(unseen) > 1)} {named}; where one of them "
            "leads, the log is judged as it was served; give its directory with --replica-dir ID=DIR"
        )
    if not given:
        unasked |= dict.fromkeys(_REPLICAS, "no --replica-dir was given, so there is only one copy of each log")
    return Narrowing(unasked, tuple(notes))
