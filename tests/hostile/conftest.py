"""One broker for the tests that must not break it: each with its own topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.absence import Plain
from tests.hostile.target import Target, target


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A broker with the defaults."""
    with target(tmp_path_factory.mktemp("target")) as found:
        yield found


@pytest.fixture
def plain(broker: Target) -> Iterator[Plain]:
    """A connection to it."""
    with Plain(broker.port) as made:
        yield made
