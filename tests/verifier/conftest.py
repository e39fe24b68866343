"""One Spark session for all tests of this directory: it costs seconds and half a gigabyte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running ``SparkSession``; its JVM is gone when the tests are."""
    from verifier import spark as sessions

    with sessions.session(tmp_path_factory.mktemp("spark")) as started:
        yield started.spark
