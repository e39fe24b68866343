"""The sweep ``delivery``: what Kafka's documentation says about acks, idempotence and requests in flight, cell by cell.

Owns the matrix, its dense schedules, and what each cell claims. Does not own what the settings allow
(``verifier.excuses.expectation``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.experiment.asked import Asked
from chaos.schedules.model import Injection, Schedule
from chaos.sweeps.model import Cell, Sweep, Wanted

NAME = "delivery"
SUMMARY = "acks x idempotence x in-flight x fault: what is lost, duplicated and out of order, and how fast it is"

TIME_LIMIT_S = 16.0
#: The time limit at full speed: a million records show as much as two, and are judged in half the time.
FREE_TIME_LIMIT_S = 10.0
SEEDS = (1,)
PARTITIONS = 3
#: The rate with faults that lose records: some are always in transit, and a small machine can handle it.
FAULTY_RATE = 10_000
#: The rate without such faults: more than the load can send, so that the settings limit the throughput.
FREE_RATE = 100_000
#: Kafka's default. With that of librdkafka (1 MB), one request takes all records and leaves none for a second one.
BATCH_BYTES = 16_384
REFUSED = "refuse-batches:0.02"

#: (acks, idempotence). Idempotence requires acks=all.
PROMISES = (("0", False), ("1", False), ("all", False), ("all", True))
IN_FLIGHT = (1, 5)
#: A latency as between two sites, at which several requests in flight pay off.
LATENCY_MS = 5
#: Faults that lose nothing; their cells are measured at full speed.
FREE = ("none", "slow-link")
FAULTS = (*FREE, "drop-response", "reset", "kill-leader", "refuse")

NOTES = (
    f"slow-link: everything the producers send arrives {LATENCY_MS} ms later, for the whole run.",
    "kill-leader: before the leader is killed, its followers are stopped from fetching for 1.2 s, which is less than "
    "replica.lag.time.max.ms, so that it has records that no follower has.",
    f"refuse: the brokers refuse one batch in fifty with NOT_ENOUGH_REPLICAS (the defect {REFUSED}). With these "
    "clients, a lost connection alone does not reorder first copies: everything in flight is resent in order. A batch "
    "that is refused while the next one is accepted does.",
    "With librdkafka (--client confluent), refuse also reorders with one request in flight: librdkafka sends the next "
    "request, which is ready, before it retries the refused one (compare its issue 1092).",
    "records/s is the mean over the duration of the load. With none and slow-link, the requested rate "
    f"({FREE_RATE:,}/s) is more than the load can send; with the other faults it is {FAULTY_RATE:,}/s. Only the rows "
    "of those two compare throughput.",
)


def build(wanted: Wanted) -> Sweep:
    """The matrix for these options."""
    return Sweep(NAME, SUMMARY, "fault", tuple(_cells(wanted)), compared=FREE, notes=NOTES)


def _cells(wanted: Wanted) -> Iterator[Cell]:
    for fault in FAULTS:
        for acks, idempotence in PROMISES:
            for in_flight in IN_FLIGHT:
                for seed in wanted.seeds or SEEDS:
                    yield _cell(wanted, fault, acks, idempotence, in_flight, seed)


def _cell(wanted: Wanted, fault: str, acks: str, idempotence: bool, in_flight: int, seed: int) -> Cell:
    time_limit_s = wanted.time_limit_or(FREE_TIME_LIMIT_S if fault in FREE else TIME_LIMIT_S)
    labels = {
        "acks": acks,
        "idempotence": "on" if idempotence else "off",
        "in-flight": str(in_flight),
        "fault": fault,
        "seed": str(seed),
    }
    asked = Asked(
        seed=seed,
        name=NAME,
        time_limit_s=time_limit_s,
        partitions=PARTITIONS,
        acks=acks,
        idempotence=idempotence,
        rate=wanted.rate or (FREE_RATE if fault in FREE else FAULTY_RATE),
        client=wanted.client,
        faults="none" if fault in ("none", "refuse") else None,
        defects=(REFUSED,) if fault == "refuse" else (),
        producer_config=(f"max.in.flight.requests.per.connection={in_flight}", f"batch.size={BATCH_BYTES}"),
    )
    schedule = None if asked.faults else Schedule(seed, tuple(injections(fault, time_limit_s, acks)))
    nothing_to_drop = "with acks=0 there is no response to drop" if (fault, acks) == ("drop-response", "0") else ""
    claimed = () if nothing_to_drop else claims(fault, acks, idempotence, in_flight)
    return Cell(labels, asked, schedule, claimed, nothing_to_drop)


def claims(fault: str, acks: str, idempotence: bool, in_flight: int) -> tuple[str, ...]:
    """The effects that a cell will show according to Kafka's documentation of ``acks`` and ``enable.idempotence``."""
    if fault in FREE:
        return ()
    if acks == "0":
        # The producer does not learn the outcome of records in transit, or of a refusal.
        return ("lost",)
    found = ["lost"] if fault == "kill-leader" and acks == "1" else []
    if not idempotence:
        if fault in ("drop-response", "reset") or (fault, acks) == ("kill-leader", "all"):
            # The batch was stored (with acks=all, also by the followers), but its response never arrived.
            found.append("duplicated")
        if fault == "refuse" and in_flight > 1:
            found.append("out of order")
    return tuple(found)


#: Seconds from the cut before a kill until the killed broker is started again.
_KILL_S = 3.7


def injections(fault: str, time_limit_s: float, acks: str) -> Iterator[Injection]:
    """As many faults of this kind as fit, at least one, on one partition after the other."""
    if fault == "slow-link":
        yield Injection(0.0, fault, time_limit_s - 1.0, {}, {"latency_ms": LATENCY_MS})
        return
    kills = fault == "kill-leader"
    last_s = time_limit_s - (_KILL_S if kills else 2.0)
    steps: Sequence[float] = _times(max(0.0, min(2.0, last_s)), 7.0 if kills else 1.6, last_s)
    for number, at_s in enumerate(steps):
        target = {"partition": number % PARTITIONS}
        if kills:
            held = {"direction": "response", "lossless": True}
            yield Injection(at_s, "cut-link", 1.4, {**target, "link": "followers"}, held)
            yield Injection(round(at_s + 1.2, 2), "kill-leader", 2.5, target, overlap=True)
        elif fault == "reset":
            # With acks=0, there are no responses: reset requests instead.
            yield Injection(at_s, fault, 0.3, target, {"direction": "request" if acks == "0" else "response"})
        else:
            yield Injection(at_s, fault, 0.5, target)


def _times(first_s: float, step_s: float, last_s: float) -> list[float]:
    count = max(1, int((last_s - first_s) // step_s) + 1)
    return [round(first_s + number * step_s, 2) for number in range(count)]
