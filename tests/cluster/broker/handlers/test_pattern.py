"""Handlers keep to their pattern (``cluster.broker.handlers``): an API a module, and no message beyond it."""

from __future__ import annotations

from cluster.protocol.apis import ApiKey
from tests.architecture.sources import imports, modules, within

HANDLERS = "cluster.broker.handlers"
#: What is no API, as the room's first lines say.
SHARED = {"named_once", "committed_offsets", "control_fence", "from_controller", "controller_only"}
#: What executes, and so takes and returns values.
EXECUTES = ("cluster.broker.replicas", "cluster.broker.settings", "cluster.coordinator", "cluster.log")
#: What is a client itself: it asks, and so it makes messages.
CLIENTS = {"cluster.broker.replicas.fetcher"}


def test_a_handler_is_named_like_its_api() -> None:
    """So that whoever looks for an API finds its file."""
    names = {module.name.removeprefix(f"{HANDLERS}.") for module in modules("cluster") if within(module.name, HANDLERS)}
    assert names - {HANDLERS} - SHARED <= {key.name.lower() for key in ApiKey}
    assert names > SHARED


def test_what_executes_knows_no_message() -> None:
    """Versions and layouts end in the handlers."""
    users = {
        each.module
        for module in modules("cluster")
        if any(within(module.name, room) for room in EXECUTES)
        for each in imports(module)
        if within(each.target, "cluster.protocol.messages") or within(each.target, HANDLERS)
    }
    assert users == CLIENTS
