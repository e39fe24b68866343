"""The second oracle for codecs, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.oracle import Kio


@pytest.fixture(scope="session")
def kio() -> Iterator[Kio]:
    """kio in a child process; skips where it is not installed."""
    pytest.importorskip("kio._version", reason="kio, the second oracle for codecs, is not installed")
    child = Kio()
    yield child
    child.close()
