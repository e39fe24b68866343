"""The sender core against brokers that drop, delay, duplicate and reorder: schedules from seeds."""

from __future__ import annotations

import pytest

from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.idempotence import ProducerIdentity
from tests.cluster.client.producer.model_world import Violation, World
from tests.cluster.client.producer.planted import NumbersAtAppend, PutsRetriesAtTheEnd, RestartsInFlight

GATE_SCHEDULES = 200
FULL_SCHEDULES = 20_000
#: Within how many schedules a planted bug must be found.
PATIENCE = 500


def test_every_record_is_stored_once_or_fails() -> None:
    """Exactly once or an error, in order, with bounded memory, and nothing waits forever; without sequences, at least
    once, and in order with one request in flight."""
    for seed in range(GATE_SCHEDULES):
        play(seed)


@pytest.mark.full
@pytest.mark.timeout(7_200)
def test_every_record_is_stored_once_or_fails_in_many_schedules() -> None:
    """The same as in the gate, in 20,000 schedules."""
    for seed in range(FULL_SCHEDULES):
        play(seed)


def play(seed: int) -> None:
    try:
        World(seed).run()
    except Violation as violation:
        raise Violation(f"schedule {seed}: {violation}") from violation


@pytest.mark.parametrize(
    ("accumulator", "identity"),
    [
        (PutsRetriesAtTheEnd, ProducerIdentity),
        (RecordAccumulator, RestartsInFlight),
        (NumbersAtAppend, ProducerIdentity),
    ],
)
def test_a_planted_bug_is_found(accumulator: type[RecordAccumulator], identity: type[ProducerIdentity]) -> None:
    """A sender that is wrong in this way breaks a promise within 500 schedules."""
    for seed in range(PATIENCE):
        world = World(seed, accumulator, identity)
        # Brokers and applications must see it, not a look inside.
        world.is_inspected = False
        try:
            world.run()
        except Violation:
            return
    pytest.fail(f"{PATIENCE} schedules did not find {accumulator.__name__} with {identity.__name__}")
