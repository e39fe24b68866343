"""Run as a child: reads messages with kio, writes them again, and says what came out.

kio's Rust decoder aborts the interpreter on some malformed messages, so it is never loaded beside anything else.
A line in is a JSON list of ``{"api", "version", "side", "hex"}`` or ``{"batch": hex}``; a line out is the list of the
answers, ``{"hex", "rest", "value"}`` or ``{"error"}``. Of a message ``value`` is the tree of its fields by their names
in plain JSON: durations and times in milliseconds, bytes as hex, float and uuid as text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import json
import sys
import uuid
from typing import Any

import kio.index
from kio.records.readers import read_batch
from kio.records.writers import write_batch
from kio.serial import entity_reader, entity_writer

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLISECOND = dt.timedelta(milliseconds=1)


def plain(value: Any) -> Any:
    """A field's value, or an entity, in plain JSON."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        return round((value - EPOCH) / MILLISECOND)
    if isinstance(value, dt.timedelta):
        return value // MILLISECOND
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def message(job: dict[str, Any]) -> dict[str, Any]:
    """The message as kio writes it, what it read, and how many bytes it left unread."""
    load = kio.index.load_request_schema if job["side"] == "request" else kio.index.load_response_schema
    schema = load(job["api"], job["version"])
    body = bytes.fromhex(job["hex"])
    entity, size = entity_reader(schema)(body, 0)
    out = io.BytesIO()
    entity_writer(schema)(out, entity)
    return {"hex": out.getvalue().hex(), "rest": len(body) - size, "value": plain(entity)}


def batch(job: dict[str, Any]) -> dict[str, Any]:
    """The same of one record batch without compression, which kio does not know."""
    data = bytes.fromhex(job["batch"])
    read, size = read_batch(data, 0)
    out = io.BytesIO()
    write_batch(out, read)
    return {"hex": out.getvalue().hex(), "rest": len(data) - size, "value": plain(read)}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """One job, or why it failed."""
    try:
        return batch(job) if "batch" in job else message(job)
    except Exception as error:
        return {"error": repr(error)}


def main() -> None:
    """Answer each line of standard input."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps([answer(job) for job in json.loads(line)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
