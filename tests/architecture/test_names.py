"""One word, one thing: a public class has a name of its own, a module tells itself from those of other rooms.

Owns the table of the names that are there more than once, each with its reason. Tests are left out: their stand-ins
have the names of what they stand in for, and the oracle of the verifier is a second implementation on purpose.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pytest

from tests.architecture.sources import PACKAGES, Module, modules, nodes

JUDGED = (*PACKAGES, "bench")

#: Classes that share their name: the modules that have it, and why. Empty since the last ones were told apart.
SHARED_CLASSES: Mapping[str, tuple[tuple[str, ...], str]] = {}


def duplicates(found: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The names of (name, place) that stand in more than one place, with the places in order."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in found:
        places[name].append(place)
    return {name: tuple(sorted(there)) for name, there in sorted(places.items()) if len(there) > 1}


def classes(judged: Iterable[Module]) -> Iterable[tuple[str, str]]:
    """(class, module) of every public class at the top of a module."""
    for module in judged:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, module.name


def test_a_class_has_a_name_of_its_own() -> None:
    """No two public classes share a name, but for those of the table; and the table holds no name too many."""
    assert all(reason for _, reason in SHARED_CLASSES.values())
    allowed = {name: places for name, (places, _) in SHARED_CLASSES.items()}
    assert duplicates(classes(modules(*JUDGED))) == allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class A: ...\nclass A: ...", {"A": ("m", "m")}),
        ("class A: ...\nclass _B: ...\nclass _B: ...", {}),
        ("class A: ...\ndef f():\n    class A: ...", {}),
    ],
)
def test_a_shared_name_is_found(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    """Public classes at the top of modules count, others do not."""
    module = Module("m", modules(*JUDGED)[0].path, ast.parse(text), 1)
    assert duplicates(classes([module])) == expected


def test_loggers_are_called_logger() -> None:
    """A module's logger is ``logger``. What logs for another library, or for its own, may say so before that word."""
    wrong = []
    for module in modules(*JUDGED):
        for node in nodes(module):
            if isinstance(node, ast.Assign) and _is_get_logger(node.value):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                wrong += [f"{module.name}:{node.lineno} {name}" for name in names if not name.endswith("logger")]
    assert wrong == []


def _is_get_logger(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("logging.getLogger", "getLogger")
