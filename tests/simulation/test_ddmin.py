"""Delta debugging: what is left is what is needed, in few trials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.ddmin import smallest

FORTY = tuple(range(40))


@given(st.sets(st.sampled_from(FORTY), max_size=5))
def test_what_is_needed_is_left(needed: set[int]) -> None:
    """If some items fail whenever they are together, they are what is left, in their order, and each is needed."""
    found = smallest(FORTY, lambda subset: needed <= set(subset), 1000)
    assert found.items == tuple(sorted(needed))
    assert found.is_minimal


def test_three_of_forty_take_few_trials() -> None:
    """Far fewer than there are items, wherever the three lie."""
    for needed in ({0, 1, 2}, {0, 20, 39}, {7, 8, 33}):
        asked: list[tuple[int, ...]] = []

        def fails(subset: tuple[int, ...], needed: set[int] = needed, asked: list = asked) -> bool:
            asked.append(subset)
            return needed <= set(subset)

        found = smallest(FORTY, fails, 1000)
        assert set(found.items) == needed
        assert found.trials == len(asked) == len(set(asked)) <= 40


@given(st.integers(0, 60), st.randoms(use_true_random=False))
def test_what_is_left_fails(most_trials: int, random) -> None:
    """Also where what fails has no pattern; no subset is asked twice, and no more of them than may be."""
    answers = {FORTY: True}

    def fails(subset: tuple[int, ...]) -> bool:
        assert subset not in answers
        answers[subset] = random.random() < 0.3
        return answers[subset]

    found = smallest(FORTY, fails, most_trials)
    assert answers[found.items]
    assert found.trials == len(answers) - 1 <= most_trials
    if found.is_minimal:
        without_one = [found.items[:n] + found.items[n + 1 :] for n in range(len(found.items))]
        assert not any(answers[each] for each in without_one)


@pytest.mark.parametrize("items", [(), (1,)])
def test_nothing_is_needed(items: tuple[int, ...]) -> None:
    """What fails without any item is left with none."""
    found = smallest(items, lambda _subset: True, 10)
    assert found.items == ()
    assert found.is_minimal
