"""The parts of a producer that share its lock, put together as its settings say.

Owns which sender, identity and transaction manager a producer has. Does not own what they do, nor its I/O.
"""

from __future__ import annotations

from cluster.client.backoff import ExponentialBackoff
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.buffer_pool import BufferPool
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.settings import ProducerSettings
from cluster.client.producer.shared_state import ProducerShared
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transactional_identity import TransactionalIdentity
from cluster.client.producer.transactional_sender import TransactionalSenderCore
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random


def producer_parts(settings: ProducerSettings, clock: Clock, random: Random) -> ProducerShared:
    """All but the I/O."""
    config, sender = settings.config, settings.sender
    pool = BufferPool(settings.buffer_bytes)
    backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], random)
    transactional_id = config["transactional.id"]
    manager = None
    if transactional_id is not None:
        manager = TransactionManager(transactional_id, config["transaction.timeout.ms"], backoff.delay_ms)

    accumulator = RecordAccumulator(
        batch_size=settings.limit_bytes,
        linger_ms=settings.linger_ms,
        delivery_timeout_ms=sender.delivery_timeout_ms,
        is_exhausted=pool.is_waited_for,
    )
    identity: ProducerIdentity | None = None
    if manager is not None:
        identity = numbers = TransactionalIdentity(manager, sender.max_in_flight)
        core: SenderCore = TransactionalSenderCore(sender, accumulator, numbers, backoff.delay_ms, manager)
    else:
        identity = ProducerIdentity(sender.max_in_flight) if settings.is_idempotent else None
        core = SenderCore(sender, accumulator, identity, backoff.delay_ms)
    return ProducerShared(settings, accumulator, core, identity, pool, clock, random, manager)
