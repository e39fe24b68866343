"""The catalogue of faults has each one that there is, and the documents have each one of the catalogue."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import chaos.faults
from chaos.faults.base import Fault
from chaos.faults.catalogue import FAULTS
from chaos.sweeps.nightly import FAULT_SETS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_fault_that_is_written_is_in_the_catalogue() -> None:
    """A class in a module of chaos/faults that nothing abstract is left of."""
    written = set()
    for each in pkgutil.iter_modules(chaos.faults.__path__, "chaos.faults."):
        module = import_module(each.name)
        classes = (found for _, found in inspect.getmembers(module, inspect.isclass) if found.__module__ == each.name)
        written |= {found for found in classes if issubclass(found, Fault) and not inspect.isabstract(found)}
    left_out = sorted(found.__name__ for found in written - set(FAULTS.values()))
    assert not left_out, f"add to a tuple of chaos/faults/catalogue.py (docs/faults.md): {', '.join(left_out)}"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_its_class_and_its_module_have_one_name(name: str) -> None:
    """``power-loss`` is ``PowerLoss`` in ``power_loss.py``: who knows one of them finds the others."""
    fault = FAULTS[name]
    assert fault.__name__ == "".join(word.capitalize() for word in name.split("-"))
    assert fault.__module__ == f"chaos.faults.{name.replace('-', '_')}"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_documented(name: str) -> None:
    """With a row of its own in docs/faults.md, and in a set of docs/nightly.md."""
    rows = [line for line in (DOCS / "faults.md").read_text().splitlines() if line.startswith(f"| `{name}` | ")]
    assert rows, f"add a row for {name} to the first table of docs/faults.md"
    of_a_night = f"`{name}`" in (DOCS / "nightly.md").read_text()
    assert of_a_night or FAULTS[name].by_name_alone, f"add {name} to the table of docs/nightly.md"


@pytest.mark.parametrize("name", [name for name, (faults, _) in FAULT_SETS.items() if faults != "all"])
def test_a_set_of_a_night_is_documented_as_it_is(name: str) -> None:
    """docs/nightly.md has the faults of chaos/sweeps/nightly.py, in their order."""
    row = f"| `{name}` | {', '.join(f'`{fault}`' for fault in FAULT_SETS[name][0].split(','))} |"
    assert row in (DOCS / "nightly.md").read_text().splitlines()
