"""Run as a child: reads messages with kio, writes them again, and says what came out.

kio's Rust decoder aborts the interpreter on some malformed messages, so it is never loaded beside anything else.
One JSON object a line: ``{"api", "version", "side", "hex"}`` in, ``{"hex", "rest"}`` or ``{"error"}`` out.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import kio.index
from kio.serial import entity_reader, entity_writer


def rewritten(job: dict[str, Any]) -> dict[str, Any]:
    """The message as kio writes it, and how many bytes it left unread."""
    load = kio.index.load_request_schema if job["side"] == "request" else kio.index.load_response_schema
    schema = load(job["api"], job["version"])
    body = bytes.fromhex(job["hex"])
    entity, size = entity_reader(schema)(body, 0)
    out = io.BytesIO()
    entity_writer(schema)(out, entity)
    return {"hex": out.getvalue().hex(), "rest": len(body) - size}


def main() -> None:
    """Answer each line of standard input."""
    for line in sys.stdin:
        try:
            answer = rewritten(json.loads(line))
        except Exception as error:
            answer = {"error": repr(error)}
        sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
