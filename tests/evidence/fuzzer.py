"""The evidence fuzzer: for each seed a copy of a valid run, with one thing of it tampered with, and how it is judged.

A run of which anything was changed is never valid, but for the listed equivalents. It is never invalid if only evidence
about the cluster was changed, and not the cluster's own data (the files of its logs). A verifier that raises is as bad.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from tests.evidence.equivalents import SEALED, equivalent
from tests.evidence.judge import Judgement, judge
from tests.evidence.tampering import Tampering, tamper
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory

#: The cluster's own data: whoever damages it, the bytes are what a reader would be handed.
DATA = "nodes/*/data/*"

#: What can come of a tampered copy.
OUTCOMES = ("unknown", "invalid", "valid_equivalent", "falsely_valid", "falsely_invalid", "crashed")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One tampered copy. ``what`` is one of ``OUTCOMES``."""

    seed: int
    source: str
    tampering: Tampering
    what: str
    judgement: Judgement

    @property
    def is_false(self) -> bool:
        return self.what in ("falsely_valid", "falsely_invalid", "crashed")

    def __str__(self) -> str:
        reasons = "; ".join(self.judgement.reasons[:3]) or "no reason"
        return f"seed {self.seed}: {self.what}: {self.source}: {self.tampering.path}: {self.tampering.how}: {reasons}"


def is_data(path: str) -> bool:
    """Whether this is of the cluster's data."""
    return fnmatch(path, DATA)


def classify(tampering: Tampering, judgement: Judgement, before: Path, after: Path) -> str:
    """What came of it, by the rule of this module."""
    if judgement.verdict == "valid":
        known = equivalent(tampering.path, before, after, SEALED)
        return "falsely_valid" if known is None else "valid_equivalent"
    if judgement.verdict == "invalid":
        return "invalid" if is_data(tampering.path) else "falsely_invalid"
    return "crashed" if judgement.verdict == "crashed" else "unknown"


class Drawn(NamedTuple):
    """A copy that was tampered with, and not yet judged; ``name`` is by what it is judged."""

    seed: int
    source: str
    tampering: Tampering
    copy: Path

    @property
    def name(self) -> str:
        return str(self.seed)


def draw(sources: Mapping[str, Path], seeds: Sequence[int], home: Path, *, resealed: bool = False) -> list[Drawn]:
    """One tampered copy per seed, of the sources in turn, below ``home``."""
    names, drawn = sorted(sources), []
    for seed in seeds:
        name, copy = names[seed % len(names)], home / str(seed)
        shutil.copytree(sources[name], copy)
        drawn.append(Drawn(seed, name, tamper(copy, seed), copy))
        if resealed:
            _seal_again(copy)
    return drawn


def outcomes(
    drawn: Sequence[Drawn], judgements: Mapping[str, Judgement], sources: Mapping[str, Path]
) -> Iterator[Outcome]:
    """What came of each copy."""
    for seed, source, tampering, copy in drawn:
        judgement = judgements[str(seed)]
        what = classify(tampering, judgement, sources[source], copy)
        yield Outcome(seed, source, tampering, what, judgement)


def fuzz(
    spark: Any, sources: Mapping[str, Path], seeds: Sequence[int], home: Path, *, resealed: bool = False
) -> Iterator[Outcome]:
    """One tampered copy per seed, all judged together. ``home`` is emptied again."""
    drawn = draw(sources, seeds, home, resealed=resealed)
    yield from outcomes(drawn, judge(spark, {each.name: each.copy for each in drawn}, home / "staged"), sources)
    for each in drawn:
        shutil.rmtree(each.copy)


def _seal_again(copy: Path) -> None:
    """As a forger would; a run.json that cannot be read cannot be sealed, and is refused anyway."""
    try:
        seal.take(RunDirectory(copy))
    except (OSError, ValueError):
        return
