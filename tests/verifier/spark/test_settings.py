"""What Spark is told by how much there is to judge, without starting it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from verifier.spark.questions import union
from verifier.spark.settings import SMALL_BYTES, TINY, TINY_BYTES, settings_for

CODEGEN, PARTITIONS = "spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions"


@pytest.mark.parametrize(("size_bytes", "partitions"), [(TINY_BYTES + 1, "2"), (SMALL_BYTES + 1, "16")])
def test_much_evidence_keeps_what_speeds_rows_up(tmp_path: Path, size_bytes: int, partitions: str) -> None:
    """Compiled queries, plans that adapt, tasks for all cores: only little evidence goes without."""
    little, much = (settings_for(tmp_path, "local[2]", each, []) for each in (TINY_BYTES, size_bytes))
    assert (little[CODEGEN], little[PARTITIONS], little[TINY]) == ("false", "1", "true")
    assert much[PARTITIONS] == partitions
    spared = {name for name in little if name not in much}
    assert {TINY, CODEGEN, "spark.sql.adaptive.enabled", "spark.sql.constraintPropagation.enabled"} <= spared


@dataclass(frozen=True)
class Frame:
    """How many unions a frame is made of, one within the other."""

    names: str
    depth: int = 0

    def union(self, other: Frame) -> Frame:
        return Frame(self.names + other.names, max(self.depth, other.depth) + 1)


@pytest.mark.parametrize(("names", "depth"), [("a", 0), ("ab", 1), ("abcde", 3), ("abcdefgh", 3)])
def test_many_frames_are_put_together_by_halves(names: str, depth: int) -> None:
    """In their order, each in as few unions as can be: Spark analyzes all of a frame again in each."""
    together = union([Frame(name) for name in names])
    assert together == Frame(names, depth)
