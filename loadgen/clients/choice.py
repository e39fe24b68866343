"""Chooses the client library of a producer (``--client``) or a reader. Does not own any client.

Does not load the library that was not chosen.
"""

from __future__ import annotations

from cluster.seams.clock import Clock
from loadgen.clients import librdkafka
from loadgen.clients.base import ProducerFactory, RecordReader
from loadgen.clients.consumer_keys import in_words_of
from loadgen.clients.consumer_keys import left_out as untold
from loadgen.clients.transaction_keys import check_transactional, defaults
from loadgen.clients.transactional import TransactionalFactory
from loadgen.settings import CONFLUENT, ISOLATION, KAFKA_PYTHON, NATIVE, READ_COMMITTED, LoadSettings


def producer_factory(bootstrap: str, client_id: str, settings: LoadSettings, clock: Clock) -> ProducerFactory:
    """A factory for the producers of one stream, one per incarnation. It raises the client's error for a bad key."""
    if settings.client == NATIVE:
        from loadgen.clients import native

        return native.producer_factory(bootstrap, client_id, settings.producer_config, clock)
    from loadgen.clients import confluent

    return confluent.producer_factory(bootstrap, client_id, settings.producer_config, clock)


def transactional_factory(
    bootstrap: str, transactional_id: str, settings: LoadSettings, clock: Clock
) -> TransactionalFactory:
    """A factory for the instances of one transactional producer. It raises the client's error for a bad key."""
    if settings.client == NATIVE:
        from loadgen.clients import native_transactions

        return native_transactions.transactional_factory(bootstrap, transactional_id, settings.producer_config, clock)
    from loadgen.clients import confluent_transactions

    return confluent_transactions.transactional_factory(bootstrap, transactional_id, settings.producer_config, clock)


def reader(
    client: str, bootstrap: str, client_id: str, settings: LoadSettings, *, is_committed: bool = False
) -> RecordReader:
    """A consumer for assigned partitions, of any client; no offset of it is ever reset.

    ``is_committed``: it is to be handed only what is committed.
    """
    given = in_words_of(client, settings.client, settings.consumer_config)
    if is_committed:
        given = {**given, ISOLATION: READ_COMMITTED}
    if client == NATIVE:
        from loadgen.clients.native import NativeReader

        return NativeReader(bootstrap, client_id, given)
    if client == KAFKA_PYTHON:
        from loadgen.clients.kafka_python import KafkaPythonReader

        return KafkaPythonReader(bootstrap, client_id, given)
    from loadgen.clients.confluent import ConfluentReader

    return ConfluentReader(bootstrap, client_id, given)


def left_out(settings: LoadSettings) -> list[tuple[str, str]]:
    """The (client, key) pairs of the configuration for which that client has no counterpart."""
    configs = (settings.producer_config, settings.consumer_config)
    missing = [key for config in configs for key in librdkafka.left_out(config)]
    found = [("librdkafka", key) for key in missing if settings.client == CONFLUENT]
    for client in dict.fromkeys(settings.readers):
        found += [(client, key) for key in untold(client, settings.client, settings.consumer_config)]
    return list(dict.fromkeys(found))


def check_client_config(settings: LoadSettings) -> None:
    """Have the clients check their configuration before anything starts. Raises ``SettingsError`` with their words."""
    for client in dict.fromkeys((settings.client, *settings.readers)):
        given = in_words_of(client, settings.client, settings.consumer_config)
        producing = settings.producer_config if client == settings.client else {}
        if client == settings.client and settings.is_transactional:
            producing = {**defaults(client), **producing, "transactional.id": "check"}
            check_transactional(client, producing)
        own = settings.with_changes({"client": client, "consumer_config": given, "producer_config": producing})
        if client == NATIVE:
            from loadgen.clients import native

            native.check_client_config(own)
        elif client == CONFLUENT:
            from loadgen.clients import confluent

            confluent.check_client_config(own)
