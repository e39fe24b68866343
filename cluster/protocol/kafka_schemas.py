"""The door to ``kafka.protocol`` of kafka-python 3.x, which ships Apache Kafka's schemas and a generator for them.

Owns the import and the way to define more of them: the one place that knows how kafka-python is laid out.

``kafka.protocol`` needs nothing of what the package ``kafka`` itself imports: producer, consumer and admin client, more
than half of what loading it costs, in every broker and every command. They are left until someone asks for them.
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
    from kafka.protocol.schemas.fields.codecs import EncodeBufferPool

__all__ = [
    "ApiMessage",
    "EncodeBufferPool",
    "admin",
    "consumer",
    "define_message",
    "encode_body",
    "metadata",
    "producer",
]

#: Of the buffer in which messages are encoded, from one to the next: what kafka-python begins with.
_KEPT_BYTES = 65_536


def define_message(name: str, package: ModuleType) -> Any:
    """A message class like kafka-python's own, from ``<name>.json`` in ``package``."""
    with _reading_schemas():
        return type(ApiMessage)(name, (ApiMessage,), {}, load_json=package)


def encode_body(message: Any, version: int) -> bytes:
    """The body of a message. Raises ``struct.error`` for what the version's layout has no room for.

    kafka-python keeps a buffer for each thread, as large as the largest message that was encoded in it: not here.
    """
    try:
        return bytes(message.encode(version=version))
    finally:
        with EncodeBufferPool.acquire() as kept:
            if len(kept.buf) > _KEPT_BYTES:
                kept.buf = bytearray(_KEPT_BYTES)
