"""Admin configuration: Kafka's keys (``AdminClientConfig`` of 3.8). Owns the admin table.

Its connections are opened when a call needs them and tried again until the call's time is over, so most of the keys
that shape connections change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cluster.config.client_keys import COMMON
from cluster.config.keys import INT_MAX, KeyTable, integer
from cluster.config.values import AdminValues

_EFFECTIVE = {"bootstrap.servers", "client.id", "request.timeout.ms", "retry.backoff.ms", "security.protocol"}

ADMIN_KEYS = KeyTable(
    "admin",
    [
        *(key if key.name in _EFFECTIVE else replace(key, carried=True) for key in COMMON),
        integer("default.api.timeout.ms", 60_000, "Maximum time of a call, including retries.", 0, INT_MAX),
        integer("retries", INT_MAX, "Maximum retries. A call's timeout limits them instead.", 0, INT_MAX, carried=True),
        integer("receive.buffer.bytes", 65_536, "SO_RCVBUF.", -1, carried=True),
    ],
)


class AdminConfig(AdminValues):
    """The typed configuration of one admin client."""


def validate(mapping: Mapping[str, object]) -> AdminConfig:
    """The typed configuration of an admin client. Raises ConfigError for an unknown key or an impossible value."""
    given = ADMIN_KEYS.parse(mapping)
    carried = [name for name in given if ADMIN_KEYS.keys[name].carried]
    return AdminConfig(ADMIN_KEYS, given, [ADMIN_KEYS.carried_warning(name) for name in carried])
