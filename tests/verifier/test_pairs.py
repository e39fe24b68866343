"""Every check goes red on a planted case and stays silent on its nearest legal neighbor: the table of pairs.

A planted example names its neighbor; here is which groups of anomalies hold themselves to it, and that the pairs are
complete. That the examples are found, exactly, is ``test_checks``'.
"""

from __future__ import annotations

import pytest

from tests.verifier.conftest import Judged
from tests.verifier.planted import PLANTED
from verifier import explain
from verifier.anomalies import files, headers

#: The anomalies whose every cause must have a pair.
PAIRED = (*headers.ANOMALIES, *files.ANOMALIES)
PAIRS = [(name, example.neighbor) for name, example in PLANTED.items() if example.neighbor is not None]


def own(name: str) -> set[tuple[str, str | None]]:
    """What a planted example shows that its neighbor does not."""
    neighbor = PLANTED[name].neighbor
    assert neighbor is not None
    return set(PLANTED[name].expected) - set(PLANTED[neighbor].expected)


@pytest.mark.parametrize(("name", "neighbor"), PAIRS)
def test_a_neighbor_is_legal(name: str, neighbor: str) -> None:
    """What a pair is about is found in the one, and nothing whatever of that check in the other."""
    checks = {check for check, _ in PLANTED[name].expected}
    assert own(name)
    assert not checks & {check for check, _ in PLANTED[neighbor].expected}


def test_every_check_and_cause_has_a_pair() -> None:
    """No check of these groups, and no cause, goes without a planted case that has a legal neighbor."""
    wanted = {(each.name, cause) for each in PAIRED for cause in (each.causes or [None])}
    assert wanted - {key for name, _ in PAIRS for key in own(name)} == set()


@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "neighbor"), PAIRS)
def test_the_one_is_red_and_the_other_silent(judged: dict[str, Judged], name: str, neighbor: str) -> None:
    """The verifier says so of both."""
    checks = {check for check, _ in own(name)}
    assert checks <= {found.check for found in judged[f"planted: {name}"].audit.found}
    assert not checks & {found.check for found in judged[f"planted: {neighbor}"].audit.found}


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_every_example_can_be_told(judged: dict[str, Judged]) -> None:
    """Whatever is found has a sentence that names its place."""
    for each in judged.values():
        for found in each.audit.found:
            assert explain.sentence(found).startswith(f"{found.topic}-{found.partition}: ")
