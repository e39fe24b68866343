"""What the tests of defects share: rules with defects planted, and what was noted of their firings."""

from __future__ import annotations

import json

from cluster.broker.rules import Rules
from cluster.defects import parse, with_defects
from cluster.defects.firings import FIRINGS_FILE, Firings
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.randomness import derive


def planted(storage: MemoryStorage, *texts: str) -> Rules:
    """The rules with these defects, which note their firings in ``storage``."""
    storage.makedirs("/node")
    firings = Firings("/node", 1, storage, ManualClock())
    return with_defects(Rules(), [parse(text) for text in texts], derive(1, "defects"), firings)


def fired(storage: MemoryStorage) -> list[dict[str, object]]:
    """The lines of ``defects.jsonl``."""
    path = f"/node/{FIRINGS_FILE}"
    return [json.loads(line) for line in storage.read(path).splitlines()] if storage.exists(path) else []
