"""The sweep ``defects``: each defect of transactions and groups, under what exercises it, beside the same run without.

Owns the matrix: which workload and faults bring a defect to fire, and which checks name it. What a defect does is in
``cluster.defects``. Several defects have one exercise, so that the run without any is the same for all of them. All is
as short as it can be: the whole matrix with five seeds is to fit into three quarters of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from chaos.experiment.asked import Asked
from chaos.schedules.model import Injection, Schedule
from chaos.sweeps.model import Cell, Sweep, Wanted
from loadgen.settings import CONFLUENT, NATIVE

NAME = "defects"
SUMMARY = "defects of transactions and groups, each beside the same run without it: did it fire, and was it found"

SEEDS = (1,)
#: What the run without a defect is called.
NONE = "none"
#: Enough of them pay for starting Spark, and few enough that what they leave on the disk stays small.
JUDGED_AT_ONCE = 20

NOTES = (
    "fired: in how many runs the defect took effect, as the brokers noted (nodes/*/defects.jsonl). found: in how many "
    "of these a check that names it found something that the settings forbid.",
    "A run with a defect ends with 0 if it was found by its name, with 1 if it fired and was not, with 2 if it never "
    "fired. A run without one must be valid.",
)


@dataclass(frozen=True, slots=True)
class Exercise:
    """What brings defects to fire. ``hits`` are the faults; without any, nothing is broken."""

    workload: str
    time_limit_s: float
    hits: tuple[Injection, ...] = ()
    client: str | None = None
    rate: int | None = None
    final_patience_s: float | None = None
    broker_config: tuple[str, ...] = ()
    producer_config: tuple[str, ...] = ()
    consumer_config: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planted:
    """Under which exercise a defect fires, and the checks that name it: one of them must find something."""

    exercise: str
    finds: tuple[str, ...]


def _at_step(at_s: float, kind: str, step: str) -> Injection:
    return Injection(at_s, kind, 2.0, {}, {"step": step})


#: Nothing is left open for longer than final readers wait where a transaction hangs, as some defects have it.
_SHORT = ("transaction.timeout.ms=6000", "delivery.timeout.ms=6000")
#: Each process costs a second of a machine's time: one reader that asks for ends, and one of another client at the end.
_READERS, _FINAL_READERS = (NATIVE,), (CONFLUENT,)
_KILL = "kill-transaction-coordinator"

#: Each link on which one broker copies from another.
_SLOW_COPIES = tuple(
    Injection(1.0, "slow-link", 9.0, {"link": f"b{one}-b{other}"}, {"latency_ms": 300, "direction": "response"}, True)
    for one in (1, 2, 3)
    for other in (1, 2, 3)
    if one != other
)

EXERCISES: Mapping[str, Exercise] = {
    "zombies": Exercise("zombies", 6.0, final_patience_s=8.0, producer_config=_SHORT),
    # It adds a partition to its transaction after the coordinator has aborted it.
    "timeouts": Exercise(
        "slow-transactions",
        8.0,
        client=NATIVE,
        producer_config=("transaction.timeout.ms=2000",),
        broker_config=("transaction.abort.timed.out.transaction.cleanup.interval.ms=100",),
    ),
    # The first finds transactions whose partitions a coordinator may have forgotten, the second whose decision.
    "coordinators": Exercise(
        "transactions",
        9.0,
        (_at_step(1.0, _KILL, "end-txn-request"), _at_step(5.5, _KILL, "write-txn-markers")),
        final_patience_s=16.0,
        producer_config=_SHORT,
    ),
    # Members come, leave and crash by themselves. Their offsets are undecided for long enough that the next owners ask
    # for them meanwhile; more rebalances than these would leave no member the time to commit.
    "pipeline": Exercise("pipeline", 14.0, (Injection(1.0, "delay-markers", 13.0, {}, {"delay_ms": 2500}),)),
    # What half of the members had belongs to no one until their sessions are over: offsets have the time to expire.
    "groups": Exercise(
        "groups",
        13.0,
        (_at_step(1.0, "kill-group-coordinator", "offset-commit-request"), Injection(5.0, "crash-members", 7.0)),
        rate=200,
        broker_config=("offsets.retention.check.interval.ms=1000",),
    ),
    # What a follower knows of the high watermark is old when it comes to lead. A reader whose position is refused
    # begins again, as a program's does.
    "elections": Exercise(
        "groups",
        11.0,
        (
            *_SLOW_COPIES,
            Injection(3.0, "kill-leader", 2.0, overlap=True),
            Injection(7.0, "kill-leader", 2.0, overlap=True),
        ),
        rate=200,
        consumer_config=("auto.offset.reset=earliest",),
    ),
}

DEFECTS: Mapping[str, Planted] = {
    "end-whichever-is-open": Planted("zombies", ("aborted-commit",)),
    "take-fenced-producers": Planted("zombies", ("zombie-write",)),
    "take-what-comes-late": Planted("zombies", ("hanging-transaction", "G1a", "aborted-commit")),
    "time-out-unfenced": Planted("timeouts", ("aborted-commit",)),
    "read-undecided": Planted("zombies", ("precommitted-read",)),
    "name-no-aborted": Planted("zombies", ("G1a",)),
    "end-at-the-watermark": Planted("zombies", ("wrong-end-offset",)),
    "end-one-later": Planted("zombies", ("wrong-end-offset",)),
    "add-in-memory": Planted(
        "coordinators", ("undecided-commit", "aborted-commit", "hanging-transaction", "marker-audit")
    ),
    "end-in-memory": Planted("coordinators", ("undecided-commit", "torn-transaction", "marker-audit")),
    "do-not-resume": Planted("coordinators", ("hanging-transaction",)),
    "fetch-unstable-offsets": Planted("pipeline", ("pipeline-exactly-once",)),
    "commit-in-memory": Planted("groups", ("committed-offset-regression", "lost-offset-commit")),
    "expire-by-commit-time": Planted("groups", ("committed-offset-regression", "resume-position")),
    "refuse-above-the-watermark": Planted(
        "elections", ("nonmonotonic-poll", "poll-skip", "committed-offset-regression", "resume-position")
    ),
}


def build(wanted: Wanted) -> Sweep:
    """Of each exercise, the run without a defect and those with each of its defects, for each seed."""
    return Sweep(NAME, SUMMARY, "exercise", tuple(_cells(wanted)), notes=NOTES, judged_at_once=JUDGED_AT_ONCE)


def _cells(wanted: Wanted) -> Iterator[Cell]:
    for name, exercise in EXERCISES.items():
        finds = {NONE: (), **{defect: each.finds for defect, each in DEFECTS.items() if each.exercise == name}}
        for defect in finds:
            for seed in wanted.seeds or SEEDS:
                asked = _asked(exercise, wanted, seed, () if defect == NONE else (defect,))
                schedule = Schedule(seed, _hits(exercise, asked.time_limit_s)) if exercise.hits else None
                labels = {"exercise": name, "defect": defect, "seed": str(seed)}
                yield Cell(labels, asked, schedule, finds=finds[defect])


def _asked(exercise: Exercise, wanted: Wanted, seed: int, defects: tuple[str, ...]) -> Asked:
    return Asked(
        seed=seed,
        name=NAME,
        time_limit_s=wanted.time_limit_or(exercise.time_limit_s),
        client=exercise.client or wanted.client,
        workload=exercise.workload,
        faults=None if exercise.hits else "none",
        rate=exercise.rate,
        readers=_READERS,
        final_readers=_FINAL_READERS,
        final_patience_s=exercise.final_patience_s,
        broker_config=exercise.broker_config,
        producer_config=exercise.producer_config,
        consumer_config=exercise.consumer_config,
        defects=defects,
    )


def _hits(exercise: Exercise, time_limit_s: float) -> tuple[Injection, ...]:
    """Those that are over by then; if none is, the first one, so much earlier or shorter."""
    fitting = tuple(each for each in exercise.hits if each.at_s + each.duration_s <= time_limit_s)
    first = replace(exercise.hits[0], duration_s=min(exercise.hits[0].duration_s, time_limit_s))
    return fitting or (replace(first, at_s=time_limit_s - first.duration_s),)
