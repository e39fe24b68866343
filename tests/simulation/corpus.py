"""The corpus: a few seeds that reach what few seeds reach. The gate tells them in place of as many others.

Owns the choice, and the file ``corpus.txt``: a line for each seed, with what it adds to the lines above it. A change of
the code changes what seeds do: then the file is as good as any other seeds, until ``make simulate`` has written it
again. Its runs begin with the corpus, and keep what they reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.simulation.reached import unknown

FILE = Path(__file__).parent / "corpus.txt"
HEADER = "# Seeds, and what each reaches that those above do not. Written by make simulate."
#: Seeds in the file, at most.
MOST = 40
#: Rare is what at most one seed in this many reaches: the gate's other seeds will hardly show it.
RARE = 20
#: Fewer seeds do not show what is rare.
LEAST_SEEDS = 200
#: Seeds that are remembered for each thing: the first that reached it.
REMEMBERED = 4

#: Seed -> what it adds.
Corpus = dict[int, tuple[str, ...]]


class Harvest:
    """What seeds reached, of a run that ``kept`` is told in, too: of many seeds, those that may be worth keeping."""

    def __init__(self, kept: Iterable[int]) -> None:
        self._kept = frozenset(kept)
        self._seeds = 0
        #: Thing -> how many seeds reached it that were not chosen for it.
        self._times: Counter[str] = Counter()
        #: Thing -> how many of the candidates reached it.
        self._remembered: Counter[str] = Counter()
        self._candidates: dict[int, frozenset[str]] = {}

    def __repr__(self) -> str:
        return f"<Harvest of {self._seeds} seeds, {len(self._candidates)} candidates>"

    def add(self, seed: int, reached: Iterable[str]) -> None:
        """One that is clean: what fails is mended, not kept."""
        things = frozenset(reached)
        if seed not in self._kept:
            self._seeds += 1
            self._times.update(things)
        if seed in self._kept or any(self._remembered[thing] < REMEMBERED for thing in things):
            self._remembered.update(things)
            self._candidates[seed] = things

    def chosen(self) -> Corpus | None:
        """The new corpus; None after too few seeds."""
        if self._seeds < LEAST_SEEDS:
            return None
        is_rare = {thing: self._times[thing] * RARE <= self._seeds for thing in self._remembered}
        rare = {seed: {each for each in things if is_rare[each]} for seed, things in self._candidates.items()}
        return choose(rare)


def choose(reached: Mapping[int, set[str]], most: int = MOST) -> Corpus:
    """The seed that adds most, again and again, until none adds anything; of equal ones the first."""
    corpus: Corpus = {}
    left = {seed: set(things) for seed, things in reached.items()}
    while len(corpus) < most:
        seed = max(left, key=lambda each: len(left[each]), default=None)
        if seed is None or not left[seed]:
            break
        corpus[seed] = tuple(sorted(left[seed]))
        for things in left.values():
            things.difference_update(corpus[seed])
    return corpus


def form(corpus: Corpus) -> str:
    """The file's text."""
    lines = [f"{seed}: {'; '.join(things)}" for seed, things in corpus.items()]
    return "\n".join([HEADER, *lines]) + "\n"


def parse(text: str) -> Corpus:
    """A file's text read back. Raises ``ValueError`` with the line that is wrong."""
    header, *lines = text.splitlines()
    if header != HEADER:
        raise ValueError(f"the first line must be {HEADER!r}")
    corpus: Corpus = {}
    known: set[str] = set()
    for line in lines:
        number, _, listed = line.partition(": ")
        things = tuple(listed.split("; "))
        if not (number.isdecimal() and listed) or things != tuple(sorted(set(things))):
            raise ValueError(f"not 'seed: thing; thing', sorted: {line}")
        if wrong := unknown(things):
            raise ValueError(f"nothing can be reached that is called {wrong[0]!r}: {line}")
        if int(number) in corpus or not known.isdisjoint(things):
            raise ValueError(f"a seed or a thing that stands above: {line}")
        corpus[int(number)] = things
        known.update(things)
    if len(corpus) > MOST:
        raise ValueError(f"{len(corpus)} seeds, {MOST} at most")
    return corpus


def kept() -> Corpus:
    """Those of the file."""
    return parse(FILE.read_text())


def gate(count: int) -> list[int]:
    """The seeds of the gate: those of the file, and the first others."""
    first = list(kept())
    others = (seed for seed in range(count) if seed not in first)
    return [*first, *others][:count]
