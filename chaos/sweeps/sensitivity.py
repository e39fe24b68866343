"""The sweep ``sensitivity``: defects that need no transactions or groups, each under an exercise that makes it fire.

Each exercise is also run without a defect. Owns the matrix: which exercise makes a defect fire, and which checks name
it. Does not own what a defect does (``cluster.defects``), how cells are made from the matrix (``exercises``), or the
figures (``sensitivity_figures``). Each exercise is as short as possible; those from ``chaos/scenarios`` use only the
beginning of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.schedules.model import Injection
from chaos.sweeps.defects import LEFT_ALONE, slow_copies
from chaos.sweeps.exercises import Exercise, Planted, defect_cells, opening
from chaos.sweeps.model import Sweep, Wanted
from loadgen.settings import NATIVE

NAME = "sensitivity"
SUMMARY = "defects that need no transactions, each under what exercises it: how many are found, how soon; false alarms"

SEEDS = (1,)
JUDGED_AT_ONCE = 20
#: The least load time of a run without a defect, in seconds: a very short run without a false alarm shows little.
CONTROL_S = 20.0
#: The exercise without faults.
HEALTHY = "healthy"

NOTES = (
    "exercised: in how many runs the defect took effect, as the brokers noted (nodes/*/defects.jsonl). found: in how "
    "many of these the verdict was invalid. named: in how many of these a check that names the defect found an anomaly "
    "that the settings do not allow.",
    "records, seconds: acknowledged records, and seconds since the load began, at the first evidence of the anomaly; "
    "medians of the runs.",
    "Exit status of a run with a defect: 0 if the defect was found by its name, 1 if it fired and was not, 2 if it "
    "never fired. A run without a defect must be valid.",
)

#: Options with segments so small that a short run fills several.
_SMALL = {"partitions": 2, "rate": 2000, "topic_config": ("segment.bytes=131072",)}
#: As many batches in flight as a broker remembers. (With idempotence, librdkafka has only one per partition.)
_IN_FLIGHT = ("batch.size=1000", "linger.ms=0", "max.in.flight.requests.per.connection=5")
#: One record per batch, so that batches in two logs end at the same offsets, whatever they contain.
_SINGLE = ("batch.size=1", "linger.ms=0", "max.in.flight.requests.per.connection=5")
#: Producer timeouts that are longer than a session and an election.
_PATIENT = ("request.timeout.ms=10000", "socket.timeout.ms=12000")
#: Keeps a follower that is cut off in the ISR: on a slow machine, a double failover takes longer than the default of
#: ``replica.lag.time.max.ms``.
_LENIENT = ("replica.lag.time.max.ms=30000",)
_RESPONSES = {"partitions": 1, "rate": 1000, "producer_config": _IN_FLIGHT}
_FIRST = {"partition": 0}
_HELD = {"direction": "response", "lossless": True}
_LOST = {"direction": "response", "lossless": False}


def _followers(at_s: float, duration_s: float) -> Injection:
    """Keep the followers of the first partition from fetching."""
    return Injection(at_s, "cut-link", duration_s, {**_FIRST, "link": "followers"}, _HELD)


EXERCISES: Mapping[str, Exercise] = {
    HEALTHY: Exercise(10.0, options=_SMALL),
    # When a batch is refused, later ones are in flight already.
    "in-flight": Exercise(10.0, client=NATIVE, options=_RESPONSES),
    "lost-responses": Exercise(
        16.0,
        tuple(Injection(at_s, "drop-response", 0.8, _FIRST) for at_s in (2.0, 6.5, 11.0)),
        client=NATIVE,
        options=_RESPONSES,
    ),
    # Batches are stored and replicated, their producers get no response, and then another broker leads.
    "lost-responses-and-failover": Exercise(
        14.0,
        (
            Injection(2.0, "drop-response", 2.0, _FIRST),
            Injection(3.5, "kill-leader", 3.0, _FIRST, overlap=True),
        ),
        client=NATIVE,
        options=_RESPONSES,
    ),
    # The follower has everything that the leader has, and finds it on its own disk after the restart.
    "follower-crash": Exercise(
        12.0, (Injection(4.0, "kill-follower", 3.0, _FIRST),), options={"partitions": 1, "rate": 2000}
    ),
    # High watermarks lag, and the next leader dies before any other broker has its records. No follower gets the first
    # leader's last responses (``tail``): their records would be truncated again, and perhaps were never committed.
    "failover-in-a-failover": Exercise(
        18.0,
        (
            *slow_copies(1.0, 9.0, 300),
            Injection(4.0, "double-failover", 4.0, _FIRST, {**LEFT_ALONE, "tail": True}, overlap=True),
        ),
        # With three partitions, each broker leads one, and all links are in use.
        options={"partitions": 3, "rate": 1500, "broker_config": _LENIENT},
    ),
    # The next leader writes in its epoch, and dies before any other broker has these records.
    "epoch-that-no-one-has": Exercise(
        18.0,
        (Injection(3.0, "double-failover", 5.0, _FIRST, LEFT_ALONE),),
        options={
            "partitions": 1,
            "rate": 400,
            "users": 6,
            "producer_config": _SINGLE,
            "broker_config": _LENIENT,
        },
    ),
    # A leader dies with records of several producers that no other broker has; the producers resend them in another
    # order.
    "tail-that-no-one-has": Exercise(
        14.0,
        (
            Injection(3.0, "cut-link", 2.0, {**_FIRST, "link": "followers"}, _LOST),
            Injection(4.0, "kill-leader", 4.0, _FIRST, overlap=True),
        ),
        options={"partitions": 1, "rate": 400, "users": 6, "producer_config": _SINGLE},
    ),
    # Another broker is elected while producers wait for acknowledgements of records that the leader cannot replicate.
    "deposed-with-a-tail": Exercise(
        14.0,
        (
            Injection(3.0, "cut-link", 3.4, {**_FIRST, "link": "followers"}, _LOST),
            Injection(3.1, "expire-session", 2.4, _FIRST, overlap=True),
        ),
        options={"partitions": 1, "rate": 1000, "producer_config": _PATIENT},
    ),
    # The lagging follower is down when the leader dies, and the next leader does not know what was committed since.
    "kafka-7128-lagging-follower": opening("kafka-7128-lagging-follower", 24.0),
    # The leader reaches neither followers nor controller, but ZooKeeper and clients reach it; then it is replaced.
    "leader-on-its-own": Exercise(
        18.0,
        (
            Injection(3.0, "leader-with-clients", 9.0, _FIRST, {"lossless": False}),
            Injection(8.5, "expire-session", 3.5, _FIRST, overlap=True),
        ),
        options={"partitions": 1, "rate": 1000},
    ),
    # The leader is alone in the ISR when its session ends, and the followers that were dropped from it are alive. One
    # may be dropped ``replica.lag.time.max.ms`` after the other.
    "jepsen-2013": Exercise(
        22.0,
        (_followers(2.0, 15.0), Injection(12.0, "expire-session", 3.5, _FIRST, overlap=True)),
        options={"partitions": 1, "rate": 1000},
    ),
    # The leader is alone in the ISR when it dies, and the settings let a follower lead that was dropped from it.
    "jepsen-2013-unclean": Exercise(
        26.0,
        (_followers(2.0, 18.0), Injection(15.5, "kill-leader", 6.0, _FIRST, overlap=True)),
        options={"partitions": 1, "rate": 1000, "broker_config": ("unclean.leader.election.enable=true",)},
    ),
    "all-crash": Exercise(14.0, (Injection(5.0, "kill-all", 2.0),), options={"partitions": 1, "rate": 1000}),
}

_LOSS = ("lost-write", "inconsistent-offsets", "log-divergence", "log-gap")
_TWICE = ("log-duplicate", "duplicate", "sequence-duplicate")

#: The source of a defect that is not modeled on a real bug.
CALIBRATION = "no bug: a calibration"
#: Real bugs are named as in docs/reference/anomalies-and-bugs.md.
DEFECTS: Mapping[str, Planted] = {
    "end-one-later": Planted(HEALTHY, ("wrong-end-offset",), source="KAFKA-5522"),
    "answer-offset-zero": Planted(HEALTHY, ("inconsistent-offsets",), "0.01", source="Bufstream 0.1.0"),
    "lose-acked": Planted(HEALTHY, ("lost-write",), "0.01", source="Bufstream 0.1.0"),
    "begin-one-batch-late": Planted(HEALTHY, ("poll-skip", "int-poll-skip", "unseen"), source=CALIBRATION),
    "swap-records": Planted(HEALTHY, ("log-reorder", "inconsistent-offsets"), "0.01", source=CALIBRATION),
    "repeat-batches": Planted(HEALTHY, _TWICE, "0.01", source=CALIBRATION),
    "change-a-byte": Planted(HEALTHY, ("log-corrupt", "phantom"), "0.01", source=CALIBRATION),
    "damage-copies": Planted(HEALTHY, ("log-corrupt", "log-divergence"), "0.01", source="KAFKA-8722"),
    "read-to-the-end": Planted(HEALTHY, ("read-above-watermark",), "0.1", source="KAFKA-9835"),
    "forget-after-an-error": Planted(HEALTHY, _TWICE, "0.01", source="KAFKA-14034, KAFKA-5494"),
    "take-gaps": Planted(
        "in-flight",
        ("log-reorder", "nonmonotonic-send"),
        beside=("refuse-batches:0.02",),
        source="KAFKA-8483, KAFKA-8484",
    ),
    "forget-sequences": Planted("lost-responses", _TWICE, source="Redpanda 3039"),
    "remember-one-batch": Planted("lost-responses", _TWICE, source="Redpanda 3077, 3038"),
    "shift-duplicates": Planted("lost-responses", ("inconsistent-offsets",), source="Redpanda 5355"),
    "expire-early": Planted("lost-responses", _TWICE, source="KAFKA-5793, Redpanda 22670"),
    "forget-on-failover": Planted("lost-responses-and-failover", _TWICE, source="a bug without an issue number"),
    "skip-recovery": Planted("follower-crash", ("log-corrupt", "log-divergence"), source="KAFKA-10101"),
    "keep-zeros": Planted("follower-crash", ("log-corrupt", "torn-tail", "log-divergence"), source="KAFKA-5431"),
    "forget-epochs": Planted("failover-in-a-failover", ("checkpoint-mismatch", *_LOSS), source="KAFKA-16541"),
    "cut-to-the-watermark": Planted("failover-in-a-failover", _LOSS, source="KAFKA-1211 (KIP-101)"),
    "guess-unknown-epochs": Planted("epoch-that-no-one-has", _LOSS, source="KAFKA-6361 (KIP-279)"),
    "reuse-epochs": Planted("tail-that-no-one-has", ("split-brain", *_LOSS), source="votes kept only in memory"),
    "join-at-the-watermark": Planted("kafka-7128-lagging-follower", _LOSS, source="KAFKA-7128"),
    "lead-alone": Planted("leader-on-its-own", (*_LOSS, "split-brain"), source="KAFKA-15489, KAFKA-14154"),
    "confirm-on-stepping-down": Planted("deposed-with-a-tail", _LOSS, source="Redpanda 3003"),
    "elect-anybody": Planted("jepsen-2013", _LOSS, source="KAFKA-1555"),
    "lose-unsynced": Planted("all-crash", _LOSS, source="KIP-966"),
    "one-is-enough": Planted("jepsen-2013-unclean", ("under-min-isr", *_LOSS), source="KAFKA-1555"),
    "advance-alone": Planted("jepsen-2013-unclean", ("watermark-under-min-isr", *_LOSS), source="KAFKA-15583"),
}


def build(wanted: Wanted) -> Sweep:
    """For each exercise and seed: the run without a defect, and one with each of its defects."""
    cells = defect_cells(NAME, "exercise", EXERCISES, DEFECTS, wanted, SEEDS, control_s=CONTROL_S)
    return Sweep(NAME, SUMMARY, "exercise", tuple(cells), notes=NOTES, judged_at_once=JUDGED_AT_ONCE)
