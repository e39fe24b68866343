"""A fault's file says which fault it is: its first line names it, as the catalogue does, and no other."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping

import pytest

from chaos.faults.catalogue import FAULTS
from tests.architecture.sources import modules

_NAMED = re.compile(r"``([a-z]+(?:-[a-z]+)*)``: ")


def misnamed(docs: Mapping[str, str], homes: Mapping[str, str]) -> list[str]:
    """The modules of ``docs`` whose first line names another fault than theirs, by the module of each fault."""
    own = {module: name for name, module in homes.items()}
    found = []
    for module, doc in docs.items():
        named = _NAMED.match(doc)
        if (named[1] if named else None) != own.get(module):
            found.append(module)
    return found


def homes() -> dict[str, str]:
    return {name: fault.__module__ for name, fault in FAULTS.items()}


def test_a_fault_is_named_by_its_file() -> None:
    """Each fault has a module of its own, which begins with its name; what several share begins with no name."""
    docs = {module.name: ast.get_docstring(module.tree) or "" for module in modules("chaos")}
    faults = {name: doc for name, doc in docs.items() if name.startswith("chaos.faults.")}
    assert misnamed(faults, homes()) == []
    assert len(set(homes().values())) == len(FAULTS)


def test_a_fault_says_what_it_does_in_its_own_words() -> None:
    """No two faults share the sentence that follows the name."""
    firsts = [(sys.modules[module].__doc__ or "").splitlines()[0].partition(": ")[2] for module in homes().values()]
    assert len({*firsts}) == len(firsts)
    assert all(firsts)


@pytest.mark.parametrize(
    ("doc", "is_wrong"),
    [("``a-b``: breaks.", False), ("``c``: breaks.", True), ("Breaks ``a-b``.", True), ("", True)],
)
def test_a_wrong_name_is_found(doc: str, is_wrong: bool) -> None:
    """Another fault's name, one that is not at the beginning, or none."""
    assert misnamed({"m.a": doc, "m.shared": "What they share."}, {"a-b": "m.a", "c": "m.c"}) == ["m.a"] * is_wrong
    assert misnamed({"m.shared": "``c``: breaks."}, {"c": "m.c"}) == ["m.shared"]
