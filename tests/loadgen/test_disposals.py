"""Disposals: clients are closed off the hub, until there is no hub anymore."""

from __future__ import annotations

from loadgen.clients.base import ClientCallbacks
from loadgen.users.disposals import Disposals
from tests.loadgen.fakes import FakeProducer


def a_client() -> FakeProducer:
    return FakeProducer(ClientCallbacks(lambda *_: None, lambda _: None, lambda *_: None))


def test_a_disposed_client_is_closed_by_the_time_that_was_waited() -> None:
    """Disposing returns at once; waiting sees all of them closed."""
    disposals, clients = Disposals(), [a_client(), a_client()]
    for client in clients:
        disposals.dispose(client)
    assert not any(client.disposed for client in clients)
    disposals.wait()
    assert all(client.disposed for client in clients)


def test_abandoned_disposals_begin_nothing() -> None:
    """At the interpreter's exit, streams that were made long before close without a greenlet or a thread."""
    disposals, client = Disposals(), a_client()
    dispose = disposals.dispose
    disposals.abandon()
    dispose(client)
    disposals.wait()
    assert not client.disposed
