"""Handlers keep to their pattern (``cluster.broker.handlers``): an API a module. That messages end there is held by
``tests/architecture/test_messages.py``."""

from __future__ import annotations

from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from tests.architecture.sources import modules, within

HANDLERS = "cluster.broker.handlers"
#: What is no API, as the room's first lines say.
SHARED = {"named_once", "committed_offsets", "control_fence", "from_controller"}


def test_a_handler_is_named_like_its_api() -> None:
    """So that whoever looks for an API finds its file."""
    names = {module.name.removeprefix(f"{HANDLERS}.") for module in modules("cluster") if within(module.name, HANDLERS)}
    assert names - {HANDLERS} - SHARED <= {key.name.lower() for key in ApiKey}
    assert names > SHARED


def test_every_api_has_a_handler() -> None:
    """Of its name; IncrementalAlterConfigs has that of AlterConfigs."""
    names = {module.name.removeprefix(f"{HANDLERS}.") for module in modules("cluster")}
    assert {key.name.lower() for key in (*SUPPORTED, *INTER_BROKER)} - names == {"incremental_alter_configs"}
