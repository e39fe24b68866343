"""The transactional sender against brokers and coordinators that drop, delay and repeat: schedules from seeds."""

from __future__ import annotations

import pytest

from cluster.client.producer.delivery import ProduceError, RecordErrors
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.transaction.txn_actions import DropBatches
from cluster.client.producer.transactional_identity import TransactionalIdentity
from cluster.client.producer.transactional_sender import TransactionalSenderCore
from tests.cluster.client.producer.model_world import Violation
from tests.cluster.client.producer.transactional_world import TransactionalWorld

GATE_SCHEDULES = 30
FULL_SCHEDULES = 5_000
#: Within how many schedules a planted bug must be found.
PATIENCE = 60


class EndsEarly(TransactionalSenderCore):
    """Does not wait for requests whose batches have expired."""

    @property
    def is_idle(self) -> bool:
        return True


class TellsNothing(TransactionalSenderCore):
    """A failed batch leaves its transaction as it was."""

    def _fail(self, batch, error: ProduceError, record_errors: RecordErrors | None = None) -> None:
        SenderCore._fail(self, batch, error, record_errors)


class DropsNothing(TransactionalSenderCore):
    """What cannot be sent anymore waits."""

    def _drop(self, action: DropBatches) -> bool:
        return False


class SendsAtOnce(TransactionalIdentity):
    """Partitions are added meanwhile."""

    def may_drain(self, batch) -> bool:
        return super(TransactionalIdentity, self).may_drain(batch)


class NumbersOn(TransactionalIdentity):
    """Under another epoch, too."""

    def take(self, producer_id: int, producer_epoch: int) -> None:
        kept = dict(self._partitions)
        super().take(producer_id, producer_epoch)
        self._partitions.update(kept)


def test_transactions_are_all_or_nothing() -> None:
    """A commit that succeeds has all its records, none is in another transaction, twice or out of order, and a producer
    that no one fenced can always continue."""
    for seed in range(GATE_SCHEDULES):
        play(seed)


@pytest.mark.full
@pytest.mark.timeout(7_200)
def test_transactions_are_all_or_nothing_in_many_schedules() -> None:
    """The same as in the gate, in 5,000 schedules."""
    for seed in range(FULL_SCHEDULES):
        play(seed)


def play(seed: int) -> None:
    try:
        TransactionalWorld(seed).run()
    except Violation as violation:
        raise Violation(f"schedule {seed}: {violation}") from violation


@pytest.mark.parametrize("planted", [EndsEarly, TellsNothing, DropsNothing, SendsAtOnce, NumbersOn])
def test_a_planted_bug_is_found(planted: type) -> None:
    """A sender or an identity that is wrong in this way breaks a promise, or itself, within 60 schedules."""
    wrong = {"sender" if issubclass(planted, SenderCore) else "numbers": planted}
    for seed in range(PATIENCE):
        world = TransactionalWorld(seed, **wrong)
        # Brokers and applications must see it, not a look inside.
        world.is_inspected = False
        try:
            world.run()
        except (Violation, KeyError):
            return
    pytest.fail(f"{PATIENCE} schedules did not find {planted.__name__}")
