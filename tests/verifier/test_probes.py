"""What probes saw, in words: every name that a fault records has some, and nothing is dropped."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import modules, nodes, within
from verifier.evidence.probes import KNOWN, probe_words

#: Keys of dictionaries in ``chaos.faults`` that are no probe's: sets of faults, kinds of coordinators, parts of a load,
#: calls of a disk, attributes of toxics.
OTHERS = {"all", "none", "transaction", "group", "producers", "readers", "members", "writes", "syncs"} | {
    *("latency", "jitter", "rate", "average_size", "size_variation", "delay")
}


def recorded() -> set[str]:
    """Every text that is the key of a dictionary, or of an entry of one, in the faults' code."""
    found = set()
    for module in modules("chaos"):
        if within(module.name, "chaos.faults"):
            for node in nodes(module):
                if isinstance(node, ast.Dict):
                    found |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    found |= {node.slice.value} if isinstance(node.slice, ast.Constant) else set()
    return {name for name in found if isinstance(name, str)}


def test_every_name_that_a_fault_records_has_words() -> None:
    """A new probe without words would stand on the page as code writes it."""
    assert {"dead", "isr_full", "held_bytes"} <= recorded()
    assert recorded() - KNOWN - OTHERS == set()


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        (
            {"broker": 2, "pid": 15397, "dead": True, "leader_moved": False},
            "broker 2; process 15397; its process was gone; no other broker led the partition",
        ),
        (
            {"held_bytes": 2209046, "links_clear": True},
            "2,209,046 bytes were held back; nothing of it was left on the links",
        ),
        (
            {"links": ["b2-b3", "b1-b3"], "direction": "response", "lossless": False, "quiet_ms": 300, "quiet": True},
            "links b2-b3, b1-b3; responses; bytes were dropped, not held back; watched for 300 ms; nothing got through",
        ),
        ({"steps": [{"broker": 1, "led": 3, "clean": True}, {"broker": 2, "clean": False}]},
         "broker 1, leader of 3, a clean stop; broker 2, no clean stop"),
        ({"never_heard_of": 7, "dead": "perhaps"}, "never heard of: 7; dead: perhaps"),
        ({}, ""),
    ],
)  # fmt: skip
def test_words(probe: dict[str, object], words: str) -> None:
    """Facts as sentences, figures with what they count, and what has no words as it is."""
    assert probe_words(probe) == words
