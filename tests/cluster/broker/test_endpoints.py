"""What a broker tells others of its listeners."""

from __future__ import annotations

from cluster.broker.endpoints import advertised_endpoints
from cluster.config.broker import validate


def test_what_is_advertised_wins_over_what_was_bound() -> None:
    """Absent, or with port 0: as bound. A wildcard address is told as the local host."""
    config = validate(
        {
            "broker.id": "1",
            "listeners": "A://127.0.0.1:0,B://0.0.0.0:0,C://127.0.0.1:0",
            "advertised.listeners": "A://example.org:9000,C://example.org:0",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT",
            "inter.broker.listener.name": "A",
        }
    )
    told = [str(endpoint) for endpoint in advertised_endpoints(config, {"A": 1, "B": 2, "C": 3})]
    assert told == ["A://example.org:9000", "B://127.0.0.1:2", "C://example.org:3"]
