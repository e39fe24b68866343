"""The door to ``kafka.protocol`` of kafka-python 3.x, which ships Apache Kafka's schemas and a generator for them.

Owns the import and the way to define more of them: the one place that knows how kafka-python is laid out.

``kafka.protocol`` needs nothing of what the package ``kafka`` itself imports: producer, consumer and admin client, more
than half of what loading it costs, in every broker and every command. They are left until somebody asks for them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
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


def _defer(name: str) -> None:
    """Let the modules of a package be imported without its own ``__init__``, which runs at the first look inside."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    package, loader = module_from_spec(spec), spec.loader

    def look(attribute: str) -> Any:
        if package.__dict__.pop("__getattr__", None) is not None:
            with _reading_schemas():
                loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = look
    sys.modules[name] = package


_defer("kafka")
with _reading_schemas():
    from kafka.protocol import admin, consumer, metadata, producer
    from kafka.protocol.api_message import ApiMessage

__all__ = ["admin", "consumer", "define_message", "metadata", "producer"]


def define_message(name: str, package: ModuleType) -> Any:
    """A message class like kafka-python's own, from ``<name>.json`` in ``package``."""
    with _reading_schemas():
        return type(ApiMessage)(name, (ApiMessage,), {}, load_json=package)
