"""toxiproxy-python as it comes, against every backend: what users of that library know works.

Its properties: docs/reference/toxiproxy.md "Python library".
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import toxiproxy
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from tests.chaos.proxy.harness import HOST, Upstream, connect, echo, port_of, round_trip_ms
from tests.conformance.toxiproxy.conftest import Backend

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def server(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[toxiproxy.Toxiproxy]:
    """The library's server object on this backend; its class attributes are put back afterwards."""
    monkeypatch.setenv("NO_PROXY", "*")
    client = toxiproxy.Toxiproxy()
    before = (APIConsumer.host, APIConsumer.port)
    client.update_api_consumer(HOST, backend.api.port)
    yield client
    client.update_api_consumer(*before)


def test_round_trip(server: toxiproxy.Toxiproxy) -> None:
    """Create, list, add a toxic, disable, enable, remove, destroy: all through the library."""
    assert server.running()
    assert b"version" in server.version()
    with Upstream(echo) as upstream:
        proxy = server.create(upstream=f"{HOST}:{upstream.port}", name="p")
        assert list(server.proxies()) == ["p"]
        proxy.add_toxic(type="latency", attributes={"latency": 40})
        toxic = proxy.get_toxic("latency_downstream")
        assert (toxic.attributes, toxic.toxicity) == ({"latency": 40, "jitter": 0}, 1)
        with connect(port_of(proxy.listen)) as client:
            assert round_trip_ms(client) >= 39
        assert proxy.destroy_toxic("latency_downstream")
        assert proxy.toxics() == {}
        with proxy.down():
            assert not server.get_proxy("p").enabled
            with pytest.raises(ConnectionRefusedError):
                connect(port_of(proxy.listen))
        with connect(port_of(proxy.listen)) as client:
            round_trip_ms(client)
        assert server.reset()
        assert proxy.destroy()
    assert server.proxies() == {}


def test_errors(server: toxiproxy.Toxiproxy) -> None:
    """The library maps 404, 409 and 400 to its exceptions."""
    proxy = server.create(upstream=f"{HOST}:1", name="p")
    with pytest.raises(ProxyExists):
        server.create(upstream=f"{HOST}:1", name="p")
    with pytest.raises(InvalidToxic):
        proxy.add_toxic(type="nope")
    with pytest.raises(NotFound):
        proxy.destroy_toxic("none")
    server.destroy_all()


def test_populate(server: toxiproxy.Toxiproxy) -> None:
    """The library's own populate creates what is missing."""
    made = server.populate([{"name": "a", "upstream": f"{HOST}:1"}, {"name": "b", "upstream": f"{HOST}:2"}])
    assert [proxy.name for proxy in made] == ["a", "b"]
    server.destroy_all()
