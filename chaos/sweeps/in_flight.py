"""The sweep ``in-flight``: six requests in flight against a broker that remembers five batches.

Six batches are stored and none of their responses arrives. The retry of the first batch is older than anything the
broker remembers. By Kafka's rule, the broker rejects it as out of order; by the rule of gapless
(docs/producer-state.md), it knows that the batch is stored. Only the native producer can have six requests in flight:
with idempotence, librdkafka allows at most five. Owns the matrix. Does not run it.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.experiment.asked import Asked
from chaos.schedules.model import Schedule
from chaos.sweeps.delivery import PARTITIONS, injections
from chaos.sweeps.model import UNKNOWN, Cell, Sweep, Wanted

NAME = "in-flight"
SUMMARY = "six requests in flight against brokers that remember five, by Kafka's rule and by that of gapless"

#: The only client of this sweep, and why.
CLIENT = "native"
WHY = "librdkafka allows at most five requests in flight with idempotence"

TIME_LIMIT_S = 16.0
SEEDS = (1,)
IN_FLIGHT = (5, 6)
#: The values of ``gapless.unknown.producer``.
RULES = ("kafka", "gapless")
FAULTS = ("drop-response", "reset")
#: Small batches that are sent at once, so that as many as possible are in flight while responses are dropped.
RATE = 3_000
PRODUCER = ("batch.size=1000", "linger.ms=0")

NOTES = (
    "rule: gapless.unknown.producer=kafka answers OUT_OF_ORDER_SEQUENCE_NUMBER to a batch below the last five; the "
    "rule gapless.unknown.producer=gapless answers DUPLICATE_SEQUENCE_NUMBER if the history is known without a hole.",
)


def build(wanted: Wanted) -> Sweep:
    """The matrix for these options; the client is always the native one."""
    return Sweep(NAME, SUMMARY, "fault", tuple(_cells(wanted)), notes=NOTES)


def _cells(wanted: Wanted) -> Iterator[Cell]:
    time_limit_s = wanted.time_limit_or(TIME_LIMIT_S)
    for fault in FAULTS:
        for rule in RULES:
            for in_flight in IN_FLIGHT:
                for seed in wanted.seeds or SEEDS:
                    unsafe = ("gapless.allow.unsafe.in.flight=true",) if in_flight > 5 else ()
                    asked = Asked(
                        seed=seed,
                        name=NAME,
                        time_limit_s=time_limit_s,
                        partitions=PARTITIONS,
                        rate=wanted.rate or RATE,
                        client=CLIENT,
                        broker_config=(f"gapless.unknown.producer={rule}",),
                        producer_config=(
                            f"max.in.flight.requests.per.connection={in_flight}",
                            *unsafe,
                            *PRODUCER,
                        ),
                    )
                    labels = {"rule": rule, "in-flight": str(in_flight), "fault": fault, "seed": str(seed)}
                    schedule = Schedule(seed, tuple(injections(fault, time_limit_s, "all")))
                    claims = (UNKNOWN,) if rule == "kafka" and in_flight > 5 else ()
                    yield Cell(labels, asked, schedule, claims)
