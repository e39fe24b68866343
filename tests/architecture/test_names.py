"""One word, one thing: a class or a type has a name of its own, a module tells itself from the others of its package.

Owns the tables of the names that are there more than once, each with its reason. Tests are left out: their stand-ins
have the names of what they stand in for, and the oracle of the verifier is a second implementation on purpose.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.architecture.sources import PACKAGES, Module, modules, nodes

JUDGED = (*PACKAGES, "bench")

#: Types that share their name: the modules that have it, and why.
SHARED_TYPES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "TopicPartition": (
        ("cluster.controller.context", "cluster.topic_partition", "verifier.transactions.state_records"),
        "the controller's is the same tuple with named fields; the verifier shares no code with the cluster",
    ),
}

_CAPITALIZED = re.compile(r"_?[A-Z]\w*[a-z]\w*")
#: What makes a class when it is called.
_CLASS_MAKERS = ("NamedTuple", "namedtuple", "TypedDict", "NewType", "type", "make_dataclass", "Enum", "IntEnum")


def duplicates(found: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The names of (name, place) that stand in more than one place, with the places in order."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in found:
        places[name].append(place)
    return {name: tuple(sorted(there)) for name, there in sorted(places.items()) if len(there) > 1}


def types(judged: Iterable[Module]) -> Iterator[tuple[str, str]]:
    """(name, module) of every class outside of functions, private or not, and of every public name for a type.

    A private name for a type is shorthand within its module: it counts only if it makes a class of its own. Type
    variables are no types.
    """
    for module in judged:
        for node in _statements(module.tree.body):
            if isinstance(node, ast.ClassDef):
                yield node.name.lstrip("_"), module.name
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and _names_type(target.id, node.value):
                        yield target.id.lstrip("_"), module.name


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, also below ``if``, ``try`` and ``with``, and the classes within classes."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            inner = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
            inner += [handler.body for handler in getattr(node, "handlers", [])]
            for each in inner:
                yield from _statements(each)


def _names_type(name: str, value: ast.expr | None) -> bool:
    if not _CAPITALIZED.fullmatch(name):
        return False
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _CLASS_MAKERS
    return not name.startswith("_")


def test_a_type_has_a_name_of_its_own() -> None:
    """No two types share a name, but for those of the table; and the table holds no name too many."""
    assert all(reason for _, reason in SHARED_TYPES.values())
    allowed = {name: places for name, (places, _) in SHARED_TYPES.items()}
    assert duplicates(types(modules(*JUDGED))) == allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class A: ...\nclass A: ...", {"A": ("m", "m")}),
        ("class _B: ...\nclass B: ...", {"B": ("m", "m")}),
        ("class _B: ...\nclass _B: ...", {"B": ("m", "m")}),
        ("class A: ...\nif TYPE_CHECKING:\n    class A: ...", {"A": ("m", "m")}),
        ("try:\n    class A: ...\nexcept ImportError:\n    class A: ...", {"A": ("m", "m")}),
        ("class Segment: ...\nSegment = _Other", {"Segment": ("m", "m")}),
        ("class Pair: ...\nPair: TypeAlias = tuple[int, int]", {"Pair": ("m", "m")}),
        ('class Pair: ...\n_Pair = NamedTuple("_Pair", [])', {"Pair": ("m", "m")}),
        ('class Row: ...\nRow = typing.TypedDict("Row", {})', {"Row": ("m", "m")}),
        ("class A: ...\ndef f():\n    class A: ...", {}),
        ('class A: ...\nA = TypeVar("A")', {}),
        ("class A: ...\n_A = wire.A\nLIMIT = 1\nLIMIT = 2", {}),
    ],
)
def test_a_shared_name_is_found(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    """Whatever makes a type counts, wherever it stands in a module; what is a function's own does not."""
    module = Module("m", modules(*JUDGED)[0].path, ast.parse(text), 1)
    assert duplicates(types([module])) == expected


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
