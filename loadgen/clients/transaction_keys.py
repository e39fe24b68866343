"""The default configuration of a load's transactional producers. Pure.

Owns these defaults, and a rule that librdkafka adds. If a fault delays a transaction for longer than its timeout, the
coordinator aborts it and fences its producer. The default timeout is long enough for an election, and so short that an
open transaction at the end of a load is aborted before the final readers stop waiting.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadgen.settings import CONFLUENT, ConfigValue, SettingsError

TRANSACTION_TIMEOUT_MS = 15_000
#: How long one call waits before it is repeated.
CALL_MS = 1000

#: As in the load's defaults for librdkafka. A record gets more time for its delivery than a request.
REQUEST_MS = 3000

TIMEOUT, DELIVERY, BLOCK = "transaction.timeout.ms", "delivery.timeout.ms", "max.block.ms"
_DEFAULTS: dict[str, ConfigValue] = {TIMEOUT: TRANSACTION_TIMEOUT_MS, DELIVERY: TRANSACTION_TIMEOUT_MS}


def defaults(client: str) -> dict[str, ConfigValue]:
    """The defaults for this ``--client``, in the keys of that client."""
    # librdkafka's calls get their timeouts as arguments
    return dict(_DEFAULTS) if client == CONFLUENT else {**_DEFAULTS, BLOCK: CALL_MS, "request.timeout.ms": REQUEST_MS}


def check_transactional(client: str, given: Mapping[str, ConfigValue]) -> None:
    """Raises ``SettingsError`` if a client of the load cannot write transactions with this configuration."""
    whole = {**defaults(client), **given}
    delivery_ms, timeout_ms = int(whole[DELIVERY]), int(whole[TIMEOUT])
    if client == CONFLUENT and delivery_ms > timeout_ms:
        raise SettingsError(
            f"{DELIVERY} {delivery_ms} is above {TIMEOUT} {timeout_ms}, which {client} does not take; "
            "lower the first or raise the second"
        )
