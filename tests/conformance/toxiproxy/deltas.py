"""Where our server answers otherwise than the captured Toxiproxy 2.12.0, on purpose. docs/proxy.md has the same table.

Keyed by section and name of the row of ``capture.jsonl``. Everything else must be equal.
"""

from __future__ import annotations

from typing import Any


def _error(text: str) -> dict[str, Any]:
    return {
        "status": 400,
        "content_type": "text/plain; charset=utf-8",
        "answer": f'{{"error":"{text}","status":400}}\n',
    }


_TOXICITY = _error("toxicity was invalid, must be between 0 and 1")

DELTAS: dict[tuple[str, str], dict[str, Any]] = {
    # no host means the loopback address, not every interface
    ("list / create", "create empty host"): {
        "answer": '{"name":"peh","listen":"127.0.0.1:21004","upstream":"127.0.0.1:21999","enabled":true,"toxics":[]}'
    },
    ("list / create", "create no listen"): {
        "answer": '{"name":"pnl","listen":"127.0.0.1:36703","upstream":"127.0.0.1:21999","enabled":true,"toxics":[]}'
    },
    # a name that could never be addressed again is refused
    ("list / create", "name with slash"): _error("name was invalid, must not contain a slash"),
    # toxicity is a probability
    ("toxics", "toxicity 2 (out of range)"): _TOXICITY,
    ("toxics", "toxicity -1"): _TOXICITY,
}

#: What is missing from later lists because it was refused.
ABSENT = (
    '"a/b":{"name":"a/b","listen":"127.0.0.1:21012","upstream":"127.0.0.1:21999","enabled":true,"toxics":[]},',
    '"a/b":{"name":"a/b","listen":"127.0.0.1:21012","upstream":"127.0.0.1:21999","enabled":true,"toxics":[]}',
    '{"attributes":{"latency":0,"jitter":0},"name":"t2","type":"latency","stream":"downstream","toxicity":2},',
    '{"attributes":{"latency":0,"jitter":0},"name":"tm","type":"latency","stream":"downstream","toxicity":-1},',
)

#: An accident of a Go struct that clients must ignore anyway; our server leaves it out.
LOGGER = '"Logger":{},'
