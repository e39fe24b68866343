"""The catalogue of defects: their names, what they do in one line, and how a list of them is put into the rules.

Owns the syntax ``NAME[:probability]``. Does not own any defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from random import Random

from cluster.broker.rules import Rules
from cluster.defects import (
    add_in_memory,
    commit_in_memory,
    do_not_resume,
    end_at_the_watermark,
    end_in_memory,
    end_one_later,
    end_whichever_is_open,
    expire_by_commit_time,
    fetch_unstable_offsets,
    forget_sequences,
    lose_acked,
    name_no_aborted,
    read_undecided,
    refuse_above_the_watermark,
    refuse_batches,
    take_fenced_producers,
    take_what_comes_late,
    time_out_unfenced,
)
from cluster.defects.firings import Firings

Plant = Callable[[Rules, float, Random, Firings], Rules]


class DefectError(ValueError):
    """No such defect; the text says which ones exist."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One entry of the catalogue. ``takes_probability``: it may happen to a share of batches."""

    name: str
    doc: str
    plant: Plant
    takes_probability: bool


@dataclass(frozen=True, slots=True)
class DefectSpec:
    """A defect as asked for."""

    name: str
    probability: float = 1.0

    def __str__(self) -> str:
        return self.name if self.probability == 1.0 else f"{self.name}:{self.probability:g}"


CATALOGUE = {
    defect.name: defect
    for defect in (
        Defect(lose_acked.NAME, "acknowledge a batch without storing it", lose_acked.plant, True),
        Defect(forget_sequences.NAME, "do not detect duplicates", forget_sequences.plant, False),
        Defect(refuse_batches.NAME, "refuse a batch with a retriable error", refuse_batches.plant, True),
        Defect(
            end_whichever_is_open.NAME,
            "EndTxn ends the open transaction of its ID, no matter which producer sent it",
            end_whichever_is_open.plant,
            False,
        ),
        Defect(
            take_what_comes_late.NAME,
            "accept a batch that belongs to no open transaction",
            take_what_comes_late.plant,
            False,
        ),
        Defect(
            take_fenced_producers.NAME,
            "accept transactional writes of fenced producers",
            take_fenced_producers.plant,
            False,
        ),
        Defect(
            time_out_unfenced.NAME,
            "abort a transaction that times out without fencing its producer",
            time_out_unfenced.plant,
            False,
        ),
        Defect(
            read_undecided.NAME,
            "return undecided records to readers of committed records",
            read_undecided.plant,
            False,
        ),
        Defect(
            name_no_aborted.NAME,
            "do not list aborted transactions in Fetch responses",
            name_no_aborted.plant,
            False,
        ),
        Defect(
            add_in_memory.NAME,
            "do not store the partitions of a transaction before it ends",
            add_in_memory.plant,
            False,
        ),
        Defect(
            end_in_memory.NAME,
            "do not store that a transaction ends before its markers are written",
            end_in_memory.plant,
            False,
        ),
        Defect(
            do_not_resume.NAME,
            "a new coordinator does not complete transactions decided before it",
            do_not_resume.plant,
            False,
        ),
        Defect(
            fetch_unstable_offsets.NAME,
            "return committed offsets that an undecided transaction will change",
            fetch_unstable_offsets.plant,
            False,
        ),
        Defect(
            commit_in_memory.NAME,
            "acknowledge a commit of offsets without storing it",
            commit_in_memory.plant,
            True,
        ),
        Defect(
            expire_by_commit_time.NAME,
            "let offsets expire although members use them",
            expire_by_commit_time.plant,
            False,
        ),
        Defect(
            refuse_above_the_watermark.NAME,
            "refuse positions above a new leader's watermark as out of range",
            refuse_above_the_watermark.plant,
            False,
        ),
        Defect(
            end_at_the_watermark.NAME,
            "ListOffsets returns the high watermark to readers of committed records",
            end_at_the_watermark.plant,
            False,
        ),
        Defect(
            end_one_later.NAME,
            "ListOffsets returns an end offset that is one too high",
            end_one_later.plant,
            False,
        ),
    )
}


def parse(text: str) -> DefectSpec:
    """``NAME`` or ``NAME:probability`` with 0 < probability <= 1. Raises ``DefectError``."""
    if "," in text:
        each = " ".join(f"--defect {part.strip()}" for part in text.split(","))
        raise DefectError(f"'{text}' names several defects; give each its own option: {each}")
    name, colon, share = text.strip().partition(":")
    defect = CATALOGUE.get(name)
    if defect is None:
        near = get_close_matches(name, CATALOGUE, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"use one of {', '.join(sorted(CATALOGUE))}"
        raise DefectError(f"unknown defect '{name}'; {hint}")
    if not colon:
        return DefectSpec(name)
    if not defect.takes_probability:
        raise DefectError(f"defect '{name}' takes no probability")
    try:
        probability = float(share)
    except ValueError:
        probability = -1.0
    if not 0 < probability <= 1:
        raise DefectError(f"the probability of defect '{name}' must be above 0 and at most 1, not '{share}'")
    return DefectSpec(name, probability)


def with_defects(rules: Rules, specs: Iterable[DefectSpec], random: Random, firings: Firings) -> Rules:
    """The rules with these defects planted, in order."""
    for spec in specs:
        rules = CATALOGUE[spec.name].plant(rules, spec.probability, random, firings)
    return rules
