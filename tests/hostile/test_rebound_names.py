"""A web page that points its own name at this machine reads neither the proxy's API nor a broker's metrics."""

from __future__ import annotations

import http.client
import socket

import pytest

from cluster.broker.exposition import BrokerCollector, MetricsServer
from cluster.broker.metrics import Counters
from cluster.hosts import GuardedWsgi, is_ours
from tests.chaos.proxy.harness import our_server

OURS = ["127.0.0.1", "127.0.0.1:8474", "[::1]:80", "[::1]", "192.0.2.7", "localhost", "LocalHost:1", "toxiproxy:8474"]
OTHERS = [
    "rebound.example.org", "example.org:8474", "127.0.0.1.example.org", "localhost.example.org", "example.org.",
    "[::1].example.org", "[example.org]", "1.2.3.4.5", "127.0.0.1:x", "a.b:1:2", "@127.0.0.1.", ":80",
]  # fmt: skip


@pytest.mark.parametrize(("host", "ours"), [*((host, True) for host in OURS), *((host, False) for host in OTHERS)])
def test_the_host_decides(host: str, ours: bool) -> None:
    """Addresses and local names cannot be pointed elsewhere; every domain can."""
    assert is_ours(host) is ours


def test_a_server_answers_by_its_own_names() -> None:
    """What it is bound to, the machine's name; and to what is no browser."""
    assert is_ours("proxy.example.org:1", "proxy.example.org")
    assert is_ours(socket.gethostname())
    assert is_ours(None) and is_ours("")


def ask(port: int, path: str, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    with connection.getresponse() as answer:
        answer.read()
        status = answer.status
    connection.close()
    return status


def test_the_proxys_api_is_not_read_by_a_rebound_name() -> None:
    """Every route, of Toxiproxy's or ours; clients by address or local name are served."""
    with our_server() as api:
        for path in ("/version", "/proxies", "/gapless/stats"):
            assert [ask(api.port, path, host) for host in ("rebound.example.org", f"127.0.0.1:{api.port}")] == [
                403,
                200,
            ]
        assert ask(api.port, "/proxies", "toxiproxy:8474") == 200


def test_metrics_are_not_read_by_a_rebound_name() -> None:
    """Prometheus by address is served."""
    server = MetricsServer([BrokerCollector(Counters(), dict)], 0)
    try:
        assert [ask(server.port, "/metrics", host) for host in ("rebound.example.org", "localhost")] == [403, 200]
    finally:
        server.close()


def test_no_answer_is_open_to_other_origins() -> None:
    """Whatever the application says."""

    def application(_environ: object, start: object) -> list[bytes]:
        start("200 OK", [("Access-Control-Allow-Origin", "http://example.org"), ("X", "y")])  # type: ignore[operator]
        return [b"z"]

    seen: list[object] = []
    assert list(GuardedWsgi(application)({"HTTP_HOST": "localhost"}, lambda *told: seen.append(told))) == [b"z"]
    assert seen == [("200 OK", [("X", "y")])]
