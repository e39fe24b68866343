"""Shared by the tests of invariants: the names that a module states and raises, and one that a test breaks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import ModuleType

import pytest

from cluster.invariants import InvariantBroken

_STATED = re.compile(r"^\* ``([a-z-]+)``:", re.MULTILINE)
_RAISED = re.compile(r"InvariantBroken\(\s*[^,]+,\s*\"([a-z-]+)\"")


def stated(module: ModuleType) -> set[str]:
    """The invariants in the module's docstring."""
    return set(_STATED.findall(module.__doc__ or ""))


def raised(module: ModuleType) -> set[str]:
    """The invariants in its code."""
    return set(_RAISED.findall(inspect.getsource(module)))


def is_named(name: str, validate: Callable[[], object], break_it: Callable[[], object]) -> None:
    """What is sound passes; once it is broken ``name`` is told, and only ``name``."""
    validate()
    break_it()
    with pytest.raises(InvariantBroken, match=f": {name}: ") as caught:
        validate()
    assert caught.value.name == name
    assert "\n" not in str(caught.value)
