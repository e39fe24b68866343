"""Which client a load uses (``--client``): our own, or confluent-kafka. Owns the choice, no client.

The library that was not chosen is not loaded.
"""

from __future__ import annotations

from cluster.seams.clock import Clock
from loadgen.clients.base import ProducerFactory, RecordReader
from loadgen.settings import NATIVE, LoadSettings


def producer_factory(bootstrap: str, client_id: str, settings: LoadSettings, clock: Clock) -> ProducerFactory:
    """Makes the producers of one stream, one per incarnation. It raises what the client raises for a bad setting."""
    if settings.client == NATIVE:
        from loadgen.clients import native

        return native.producer_factory(bootstrap, client_id, settings.producer_config, clock)
    from loadgen.clients import confluent

    return confluent.producer_factory(bootstrap, client_id, settings.producer_config, clock)


def reader(bootstrap: str, client_id: str, settings: LoadSettings) -> RecordReader:
    """A consumer for assigned partitions."""
    if settings.client == NATIVE:
        from loadgen.clients.native import NativeReader

        return NativeReader(bootstrap, client_id, settings.consumer_config)
    from loadgen.clients.confluent import ConfluentReader

    return ConfluentReader(bootstrap, client_id, settings.consumer_config)


def check_client_config(settings: LoadSettings) -> None:
    """Let the client judge its configuration before anything starts. Raises ``SettingsError`` with its words."""
    if settings.client == NATIVE:
        from loadgen.clients import native

        native.check_client_config(settings)
        return
    from loadgen.clients import confluent

    confluent.check_client_config(settings)
