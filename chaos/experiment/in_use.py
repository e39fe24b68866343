"""The typed configuration that a client of the load uses: the given keys on top of the load's own defaults. Pure.

Does not own these defaults (``loadgen.clients``).
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.config.keys import TypedConfig, Value
from cluster.config.values import ConsumerValues, ProducerValues
from loadgen.clients.librdkafka import consumer_config, producer_config
from loadgen.settings import NATIVE, ConfigValue


def producer_in_use(client: str, given: ProducerValues) -> ProducerValues:
    """The configuration that a producer uses. ``given`` has the keys that the load passes to it."""
    if client == NATIVE:
        from loadgen.clients.native import PRODUCER_DEFAULTS

        return ProducerValues(given.table, _over(PRODUCER_DEFAULTS, given))
    return ProducerValues(given.table, given.table.parse(producer_config("", "", _handed(given))))


def consumer_in_use(client: str, given: ConsumerValues) -> ConsumerValues:
    """The configuration that a consumer uses. ``given`` has the keys that the load passes to it."""
    if client == NATIVE:
        from loadgen.clients.native import CONSUMER_DEFAULTS

        return ConsumerValues(given.table, _over(CONSUMER_DEFAULTS, given))
    return ConsumerValues(given.table, given.table.parse(consumer_config("", "", _handed(given))))


def _over(defaults: Mapping[str, ConfigValue], given: TypedConfig) -> dict[str, Value]:
    return {**given.table.parse(defaults), **given.given}


def _handed(given: TypedConfig) -> dict[str, ConfigValue]:
    return dict(given.as_text())
