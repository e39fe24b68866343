"""A link server of ours, and one link through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.links import (
    Links,
)
from tests.chaos.proxy.harness import (
    HOST,
    Api,
    Upstream,
    echo,
    our_server,
    port_of,
)


@pytest.fixture
def api() -> Iterator[Api]:
    with our_server() as server:
        yield server


@pytest.fixture
def links(api: Api) -> Links:
    return Links(f"http://{HOST}:{api.port}", timeout_s=2.0)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream(echo) as server:
        yield server


@pytest.fixture
def port(links: Links, upstream: Upstream) -> int:
    """The port of a link ``b1-b2`` to an echo."""
    return port_of(links.create("b1-b2", f"{HOST}:{upstream.port}"))
