"""What is tried when a run is shrunk, and the outcome. Pure values; decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

from verifier.evidence.how_many import how_many


class TryOutcome(Enum):
    """What one try showed."""

    FAILED = "failed"
    PASSED = "did not fail"
    #: It came to no verdict on what is looked for.
    UNRESOLVED = "no verdict"
    #: It was not run: the settings would be refused.
    IMPOSSIBLE = "not possible"


class SearchEnd(Enum):
    """What a search knows of smaller runs when it ends, in words for people."""

    SMALLER = "a smaller run fails"
    NONE_TRIED = "nothing smaller was tried"
    NONE_FAILED = "nothing smaller failed"
    #: One failed, perhaps by luck.
    NOT_AGAIN = "what was smaller did not fail again"


class PlayingPace(IntEnum):
    """How much of the time of the run is left; each has what those before it have, too."""

    AS_IT_WAS = 0
    #: The load ends a while after the last fault.
    CUT = 1
    #: The first fault comes right after the warm-up.
    SHIFTED = 2
    #: Between two faults is the time that the cluster needs to recover, and no more.
    CLOSED = 3
    #: The load ends soon after the last fault.
    SHORT = 4


@dataclass(frozen=True, slots=True)
class SmallerRun:
    """Some of the injections, by their numbers; at this pace; with these settings of the load instead of its own."""

    events: tuple[int, ...]
    pace: PlayingPace = PlayingPace.AS_IT_WAS
    load: tuple[tuple[str, Any], ...] = ()


@dataclass(slots=True)
class TryCount:
    """In how many of the tries that came to a verdict it failed."""

    runs: int = 0
    failures: int = 0
    unresolved: int = 0
    is_possible: bool = True

    def add(self, outcome: TryOutcome) -> None:
        """Count one more."""
        if outcome is TryOutcome.IMPOSSIBLE:
            self.is_possible = False
        elif outcome is TryOutcome.UNRESOLVED:
            self.unresolved += 1
        else:
            self.runs += 1
            self.failures += outcome is TryOutcome.FAILED

    @property
    def tries(self) -> int:
        """All that were run, with a verdict or without."""
        return self.runs + self.unresolved

    def __str__(self) -> str:
        if not self.runs:
            return (
                f"none of {how_many(self.unresolved, 'try', 'tries')}, without a verdict"
                if self.unresolved
                else "no try"
            )
        without = f" ({self.unresolved} more without a verdict)" if self.unresolved else ""
        return f"{self.failures} of {how_many(self.runs, 'try', 'tries')}{without}"
