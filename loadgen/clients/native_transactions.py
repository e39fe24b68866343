"""gapless's own client as a transactional producer. Owns the reaction to its errors; ``native`` owns the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cluster.client import AbortableTransactionError, FatalTransactionError
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.delivery import ProduceError
from cluster.seams.clock import Clock
from loadgen.clients.base import first_line
from loadgen.clients.native import PRODUCER_DEFAULTS, NativeProducer
from loadgen.clients.transaction_keys import defaults
from loadgen.clients.transactional import USURPERS, Remedy, TransactionalFactory, TransactionRefusal
from loadgen.settings import NATIVE, ConfigValue


def transactional_factory(
    bootstrap: str, transactional_id: str, given: Mapping[str, ConfigValue], clock: Clock
) -> TransactionalFactory:
    """Makes the instances of one transactional producer. The factory raises ``ConfigError`` for a bad key."""
    own = {"bootstrap.servers": bootstrap, "client.id": transactional_id, "transactional.id": transactional_id}
    config = {**PRODUCER_DEFAULTS, **defaults(NATIVE), **given, **own}
    return lambda callbacks: NativeTransactionalProducer(config, callbacks, clock)


class NativeTransactionalProducer(NativeProducer):
    """``TransactionalClient`` on gapless's own producer. A call waits up to ``max.block.ms``; other greenlets run."""

    def initialize(self) -> None:
        called(self._producer.init_transactions)
        self._tell_identity()

    def begin(self) -> None:
        called(self._producer.begin_transaction)

    def occupy(self, topic: str) -> None:
        group = ConsumerGroupMetadata(USURPERS)
        called(lambda: self._producer.send_offsets_to_transaction({(topic, 0): 0}, group))

    def commit(self) -> None:
        called(self._producer.commit_transaction)

    def abort(self) -> None:
        called(self._producer.abort_transaction)


def called(call: Callable[[], None]) -> None:
    """Call the client. Raises ``TransactionRefusal``."""
    try:
        call()
    except ProduceError as error:
        raise refusal_of(error) from error


def refusal_of(error: ProduceError) -> TransactionRefusal:
    """The refusal that an error of the client means."""
    text = f"{error.error_code.name}: {first_line(error)}"
    is_certain = not getattr(error, "may_be_committed", True)
    if isinstance(error, AbortableTransactionError):
        return TransactionRefusal(text, Remedy.ABORT, is_certain=is_certain)
    if isinstance(error, TimeoutError):
        return TransactionRefusal(text, Remedy.REPEAT, is_certain=False)
    if isinstance(error, FatalTransactionError) or not hasattr(error, "may_be_committed"):
        return TransactionRefusal(text, Remedy.REPLACE, is_certain=is_certain)
    # a refused initialization
    return TransactionRefusal(text, Remedy.REPEAT, is_certain=True)
