"""What the sender is told by the configuration. Owns the values that it decides by; keys are ``settings.py``'s."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Kafka's keys of these names; ``acks`` is -1, 0 or 1."""

    acks: int = -1
    max_in_flight: int = 5
    max_request_size: int = 1_048_576
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    retries: int = 2_147_483_647
