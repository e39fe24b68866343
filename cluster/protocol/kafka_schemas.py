"""The door to ``kafka.protocol`` of kafka-python 3.x, which ships Apache Kafka's schemas and a generator for them.

Owns the import and the way to define more of them: the one place that knows how kafka-python is laid out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def _reading_schemas() -> Iterator[None]:
    """Import or define message classes in here: no warnings.

    kafka-python 3.0 reads its JSON with ``importlib.resources.read_text``, which Python 3.11 alone calls deprecated.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(read|open)_text is deprecated", category=DeprecationWarning)
        yield


with _reading_schemas():
    from kafka.protocol import admin, consumer, metadata, producer
    from kafka.protocol.api_message import ApiMessage

__all__ = ["admin", "consumer", "define_message", "metadata", "producer"]


def define_message(name: str, package: ModuleType) -> Any:
    """A message class like kafka-python's own, from ``<name>.json`` in ``package``."""
    with _reading_schemas():
        return type(ApiMessage)(name, (ApiMessage,), {}, load_json=package)
