"""The sweep ``defects``: the defects of transactions and groups, each under an exercise that makes it fire.

Each exercise is also run without a defect; several defects share an exercise. Owns the matrix: which workload and
faults make a defect fire, and which checks name it. Does not own what a defect does (``cluster.defects``) or how cells
are made from the matrix (``exercises``). Everything is as short as possible: the whole matrix with five seeds should
take at most 45 minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

from chaos.schedules.model import Injection
from chaos.sweeps.exercises import Exercise, Planted, defect_cells
from chaos.sweeps.model import Sweep, Wanted
from loadgen.settings import NATIVE

NAME = "defects"
SUMMARY = "defects of transactions and groups, each beside the same run without it: did it fire, and was it found"

SEEDS = (1,)
#: Enough runs to make starting Spark worthwhile, and few enough that their files stay small.
JUDGED_AT_ONCE = 20

NOTES = (
    "fired: in how many runs the defect took effect, as the brokers noted (nodes/*/defects.jsonl). found: in how many "
    "of these a check that names it found something that the settings forbid.",
    "A run with a defect ends with 0 if it was found by its name, with 1 if it fired and was not, with 2 if it never "
    "fired. A run without one must be valid.",
)


def _at_step(at_s: float, kind: str, step: str) -> Injection:
    return Injection(at_s, kind, 2.0, {}, {"step": step})


#: Timeouts that end an open transaction before final readers stop waiting for it.
_SHORT = ("transaction.timeout.ms=6000", "delivery.timeout.ms=6000")
_KILL = "kill-transaction-coordinator"


def slow_copies(at_s: float, duration_s: float, latency_ms: int) -> tuple[Injection, ...]:
    """Delay the responses between brokers by ``latency_ms``, so that followers lag, and high watermarks even more."""
    return tuple(
        Injection(
            at_s,
            "slow-link",
            duration_s,
            {"link": f"b{one}-b{other}"},
            {"latency_ms": latency_ms, "direction": "response"},
            overlap=True,
        )
        for one, other in permutations((1, 2, 3), 2)
    )


#: Parameters of double-failover that keep every other broker from getting a record of the next leader's epoch.
LEFT_ALONE = {"back": True, "tail": False, "next_tail": True}

EXERCISES: Mapping[str, Exercise] = {
    "zombies": Exercise(6.0, options={"workload": "zombies", "final_patience_s": 8.0, "producer_config": _SHORT}),
    # The producer adds a partition to its transaction after the coordinator has aborted it.
    "timeouts": Exercise(
        8.0,
        client=NATIVE,
        options={
            "workload": "slow-transactions",
            "producer_config": ("transaction.timeout.ms=2000",),
            "broker_config": ("transaction.abort.timed.out.transaction.cleanup.interval.ms=100",),
        },
    ),
    # At the first kill, a coordinator may have forgotten the partitions of transactions; at the second, its decisions.
    "coordinators": Exercise(
        9.0,
        (_at_step(1.0, _KILL, "end-txn-request"), _at_step(5.5, _KILL, "write-txn-markers")),
        options={"workload": "transactions", "final_patience_s": 16.0, "producer_config": _SHORT},
    ),
    # The workload itself makes members join, leave and crash. The markers are so late that the next owners fetch
    # offsets that are still undecided. With more rebalances, no member would have time to commit.
    "pipeline": Exercise(
        14.0, (Injection(1.0, "delay-markers", 13.0, {}, {"delay_ms": 2500}),), options={"workload": "pipeline"}
    ),
    # No member owns the partitions of the crashed half until their sessions expire, so offsets have time to expire.
    "groups": Exercise(
        13.0,
        (_at_step(1.0, "kill-group-coordinator", "offset-commit-request"), Injection(5.0, "crash-members", 7.0)),
        options={
            "workload": "groups",
            "rate": 200,
            "broker_config": ("offsets.retention.check.interval.ms=1000",),
        },
    ),
    # When a follower becomes leader, its high watermark is old and stays old: members reach the broker, its followers
    # do not. A reader whose position is refused starts again at the beginning (``auto.offset.reset=earliest``).
    "elections": Exercise(
        16.0,
        (
            *slow_copies(1.0, 9.0, 300),
            Injection(3.0, "double-failover", 4.0, {"partition": 0}, LEFT_ALONE, overlap=True),
        ),
        options={"workload": "groups", "rate": 200, "consumer_config": ("auto.offset.reset=earliest",)},
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
    """For each exercise and seed: the run without a defect, and one with each of its defects."""
    # --rate is ignored: the faults of these exercises were tuned for their own rates.
    cells = defect_cells(NAME, "exercise", EXERCISES, DEFECTS, replace(wanted, rate=None), SEEDS)
    return Sweep(NAME, SUMMARY, "exercise", tuple(cells), notes=NOTES, judged_at_once=JUDGED_AT_ONCE)
