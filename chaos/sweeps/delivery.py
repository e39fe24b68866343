"""The sweep ``delivery``: what Kafka's documentation says about acks, idempotence and requests in flight, cell by cell.

Owns the matrix, its dense schedules and the claims. What the settings allow is the verifier's expectation matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.experiment.asked import Asked
from chaos.schedules.model import Injection, Schedule
from chaos.sweeps.model import Cell, Sweep, Wanted

NAME = "delivery"
SUMMARY = "acks x idempotence x in-flight x fault: what is lost, duplicated and out of order, and how fast it is"

TIME_LIMIT_S = 16.0
#: At full speed a million records say as much as two, and are judged in half the time.
FREE_TIME_LIMIT_S = 10.0
SEEDS = (1,)
PARTITIONS = 3
#: With faults that lose records: enough that some are always in transit, and no more than a small machine can handle.
FAULTY_RATE = 10_000
#: Without such faults: more than the load can send, so that the settings limit the throughput and not the rate.
FREE_RATE = 100_000
#: Kafka's default. With librdkafka's (1 MB), one request takes everything and leaves nothing for a second one.
BATCH_BYTES = 16_384
REFUSED = "refuse-batches:0.02"

#: (acks, idempotence): it is refused without acks=all.
PROMISES = (("0", False), ("1", False), ("all", False), ("all", True))
IN_FLIGHT = (1, 5)
#: As between two sites, where several requests in flight pay off.
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
    """The matrix, by the options of the sweep."""
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
    """What Kafka's documentation says that this cell will show (enable.idempotence and acks)."""
    if fault in FREE:
        return ()
    if acks == "0":
        # No one learns what became of records in transit, nor of a refusal.
        return ("lost",)
    found = ["lost"] if fault == "kill-leader" and acks == "1" else []
    if not idempotence:
        if fault in ("drop-response", "reset") or (fault, acks) == ("kill-leader", "all"):
            # The batch was stored (with acks=all, by the followers too), and its response never arrived.
            found.append("duplicated")
        if fault == "refuse" and in_flight > 1:
            found.append("out of order")
    return tuple(found)


#: From the cut before a kill to the start of the broker that was killed.
_KILL_S = 3.7


def injections(fault: str, time_limit_s: float, acks: str) -> Iterator[Injection]:
    """As many as fit, one partition after the other. Each kind comes at least once."""
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
            # With acks=0, no response is awaited: a reset loses requests.
            yield Injection(at_s, fault, 0.3, target, {"direction": "request" if acks == "0" else "response"})
        else:
            yield Injection(at_s, fault, 0.5, target)


def _times(first_s: float, step_s: float, last_s: float) -> list[float]:
    count = max(1, int((last_s - first_s) // step_s) + 1)
    return [round(first_s + number * step_s, 2) for number in range(count)]
