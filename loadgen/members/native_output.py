"""The transactional producer of a native member. Owns its defaults, and how offsets are added to a transaction."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.seams.clock import Clock
from loadgen.clients.native import PRODUCER_DEFAULTS
from loadgen.clients.native_transactions import NativeTransactionalProducer, called
from loadgen.clients.transaction_keys import defaults
from loadgen.members.native import NativeMember
from loadgen.members.output import UNHEARD
from loadgen.settings import NATIVE, ConfigValue

#: Short timeouts, as for the load's producers with librdkafka, so that a producer does not just wait during a fault.
OUTPUT_DEFAULTS: dict[str, ConfigValue] = {
    "request.timeout.ms": 3000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
}


class NativeOutput(NativeTransactionalProducer):
    """``OutputProducer`` on gapless's own producer."""

    def add_offsets(self, topic: str, offsets: Mapping[int, int], member: NativeMember) -> None:
        whose = member.consumer.group_metadata()
        given = {(topic, partition): offset for partition, offset in offsets.items()}
        called(lambda: self._producer.send_offsets_to_transaction(given, whose))


def native_output(bootstrap: str, transactional_id: str, clock: Clock) -> NativeOutput:
    """A producer with this ``transactional.id``."""
    own = {"bootstrap.servers": bootstrap, "client.id": transactional_id, "transactional.id": transactional_id}
    return NativeOutput({**PRODUCER_DEFAULTS, **defaults(NATIVE), **OUTPUT_DEFAULTS, **own}, UNHEARD, clock)
