"""The corpus: which seeds are kept, what their file may say, and that the gate begins with them."""

from __future__ import annotations

import pytest

from tests.simulation.corpus import FILE, HEADER, LEAST_SEEDS, MOST, Harvest, choose, form, gate, kept, parse

ONE, OTHER, THIRD = "session expired", "producer reset", "disk error at fsync"


def harvest(*, kept: tuple[int, ...] = (), **rare: tuple[int, ...]) -> Harvest:
    """A run of as many seeds as it takes, all of which reach one thing; ``rare`` ones are reached by some."""
    found = Harvest(kept)
    for seed in (*kept, *(seed for seed in range(LEAST_SEEDS + len(kept)) if seed not in kept)):
        found.add(seed, {"acknowledged", *(name for name, seeds in rare.items() if seed in seeds)})
    return found


def test_the_file_is_legal() -> None:
    """Each line names a seed and things that can be reached, no seed and no thing twice, and not too many seeds."""
    corpus = kept()
    assert corpus
    assert form(corpus) == FILE.read_text()


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("4711", "not 'seed"),
        (f"x: {ONE}", "not 'seed"),
        (f"1: {ONE}; {OTHER}", "not 'seed"),
        ("1: the moon", "'the moon'"),
        (f"1: {ONE}\n1: {OTHER}", "stands above"),
        (f"1: {ONE}\n2: {ONE}", "stands above"),
    ],
)
def test_what_is_not_legal_is_refused(line: str, wrong: str) -> None:
    """An illegal case is refused with the line that is wrong."""
    with pytest.raises(ValueError, match=wrong):
        parse(f"{HEADER}\n{line}\n")


def test_the_file_says_what_was_chosen() -> None:
    """Written and read it is the same; without its first line it is none."""
    corpus = {7: (OTHER, ONE), 3: (THIRD,)}
    assert parse(form(corpus)) == corpus
    with pytest.raises(ValueError, match="first line"):
        parse(f"7: {ONE}\n")


def test_the_seed_that_adds_most_is_chosen_first() -> None:
    """Until nothing is added, and not more seeds than may be."""
    reached = {1: {"a"}, 2: {"b", "c"}, 3: {"a", "b", "c"}, 4: {"c", "d"}, 5: set()}
    assert choose(reached) == {3: ("a", "b", "c"), 4: ("d",)}
    assert choose(reached, most=1) == {3: ("a", "b", "c")}


def test_what_is_rare_is_kept() -> None:
    """By the first seed that reached it, unless another reached more; what many reach is no reason."""
    chosen = harvest(one=(5, 6, 700), other=(6,), third=tuple(range(0, 1000, 10))).chosen()
    assert chosen == {6: ("one", "other")}


def test_what_the_corpus_reaches_stays() -> None:
    """Its seeds are preferred; one that adds nothing any more goes."""
    chosen = harvest(kept=(4000, 4001), one=(5, 4000), other=(8,)).chosen()
    assert chosen == {4000: ("one",), 8: ("other",)}


def test_few_seeds_change_nothing() -> None:
    """They do not show what is rare."""
    found = Harvest(())
    found.add(1, {ONE})
    assert found.chosen() is None


def test_the_gate_begins_with_the_corpus() -> None:
    """As many seeds as before, each once."""
    seeds = gate(200)
    assert len(seeds) == len(set(seeds)) == 200
    assert seeds[: len(kept())] == list(kept())
    assert len(set(seeds) & set(range(200 - MOST))) == 200 - MOST
