"""The sweep ``defects``: each defect of transactions and groups, under what exercises it, beside the same run without.

Owns the matrix: which workload and faults bring a defect to fire, and which checks name it. What a defect does is in
``cluster.defects``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.experiment.asked import Asked
from chaos.schedules.model import Injection, Schedule
from chaos.sweeps.model import Cell, Sweep, Wanted
from loadgen.settings import NATIVE

NAME = "defects"
SUMMARY = "defects of transactions and groups, each beside the same run without it: did it fire, and was it found"

TIME_LIMIT_S = 30.0
SEEDS = (1,)
PLANTED, ABSENT = "planted", "absent"

NOTES = (
    "fired: in how many runs the defect took effect, as the brokers noted (nodes/*/defects.jsonl). found: in how many "
    "of these a check that names it found something that the settings forbid.",
    "A run with a defect ends with 0 if it was found by its name, with 1 if it fired and was not, with 2 if it never "
    "fired. A run without one must be valid.",
)

_KILL = "kill-transaction-coordinator"
#: When the first one comes, and how long it is to the next: the broker is back then.
_FIRST_S, _EACH_S, _LASTS_S = 3.0, 7.0, 3.0
_UNASKED = "histories do not tell what ListOffsets answered"


@dataclass(frozen=True, slots=True)
class Exercise:
    """What brings a defect to fire, and the checks that name it: one of them must find something.

    ``kills_at`` is a step of a transaction at which its coordinator is killed again and again, instead of ``faults``.
    ``cannot`` says why no workload can.
    """

    finds: tuple[str, ...]
    workload: str
    faults: str = "none"
    kills_at: str = ""
    client: str | None = None
    rate: int | None = None
    broker_config: tuple[str, ...] = ()
    producer_config: tuple[str, ...] = ()
    cannot: str = ""


EXERCISES = {
    "end-whichever-is-open": Exercise(("aborted-commit",), "zombies"),
    "take-what-comes-late": Exercise(
        ("hanging-transaction", "G1a"),
        "transactions",
        "cut-link",
        cannot="no client of the load writes to a transaction that is over; a raw one does in the simulation",
    ),
    "take-fenced-producers": Exercise(("zombie-write",), "zombies"),
    "time-out-unfenced": Exercise(
        ("aborted-commit",),
        "slow-transactions",
        client=NATIVE,
        # It adds a partition to its transaction after the coordinator has aborted it.
        producer_config=("transaction.timeout.ms=2000",),
        broker_config=("transaction.abort.timed.out.transaction.cleanup.interval.ms=100",),
    ),
    "read-undecided": Exercise(("precommitted-read",), "bank"),
    "name-no-aborted": Exercise(("G1a",), "bank"),
    "add-in-memory": Exercise(("marker-audit", "hanging-transaction"), "transactions", kills_at="end-txn-request"),
    "end-in-memory": Exercise(("marker-audit", "torn-transaction"), "transactions", kills_at="write-txn-markers"),
    "do-not-resume": Exercise(("hanging-transaction",), "transactions", kills_at="write-txn-markers"),
    "fetch-unstable-offsets": Exercise(("pipeline-exactly-once",), "pipeline", "hold-markers"),
    "commit-in-memory": Exercise(
        ("committed-offset-regression", "lost-offset-commit"), "groups", "kill-group-coordinator", rate=200
    ),
    "expire-by-commit-time": Exercise(
        ("committed-offset-regression", "resume-position"),
        "groups",
        rate=200,
        broker_config=("offsets.retention.check.interval.ms=1000",),
    ),
    "refuse-above-the-watermark": Exercise(
        ("nonmonotonic-poll", "poll-skip", "committed-offset-regression", "resume-position"),
        "groups",
        "kill-leader,pause-leader",
        rate=200,
    ),
    "end-at-the-watermark": Exercise((), "transactions", cannot=_UNASKED),
    "end-one-later": Exercise((), "transactions", cannot=_UNASKED),
}


def build(wanted: Wanted) -> Sweep:
    """Each defect, and the same run without it, for each seed."""
    return Sweep(NAME, SUMMARY, "brokers", tuple(_cells(wanted)), notes=NOTES)


def _cells(wanted: Wanted) -> Iterator[Cell]:
    for defect, exercise in EXERCISES.items():
        for brokers in (PLANTED, ABSENT):
            is_planted = brokers == PLANTED
            for seed in wanted.seeds or SEEDS:
                time_limit_s = wanted.time_limit_or(TIME_LIMIT_S)
                schedule = Schedule(seed, tuple(_kills(exercise.kills_at, time_limit_s))) if exercise.kills_at else None
                asked = Asked(
                    seed=seed,
                    name=NAME,
                    time_limit_s=time_limit_s,
                    client=exercise.client or wanted.client,
                    workload=exercise.workload,
                    faults=None if exercise.kills_at else exercise.faults,
                    rate=exercise.rate,
                    broker_config=exercise.broker_config,
                    producer_config=exercise.producer_config,
                    defects=(defect,) if is_planted else (),
                )
                labels = {"defect": defect, "brokers": brokers, "seed": str(seed)}
                finds = exercise.finds if is_planted else ()
                yield Cell(labels, asked, schedule, inapplicable=exercise.cannot, finds=finds)


def _kills(step: str, time_limit_s: float) -> Iterator[Injection]:
    """As many as fit, one at least."""
    at_s = max(0.0, min(_FIRST_S, time_limit_s - _LASTS_S))
    while at_s + _LASTS_S <= time_limit_s:
        yield Injection(round(at_s, 2), _KILL, _LASTS_S, {}, {"step": step})
        at_s += _EACH_S
