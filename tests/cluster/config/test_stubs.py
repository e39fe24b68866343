"""What mypy is told of configurations is what the tables say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cluster.config.stubs import stub
from tests.architecture.sources import ROOT


def test_the_stub_is_made_from_the_tables() -> None:
    """values.pyi is what ``python -m cluster.config.stubs`` writes; run that after a change."""
    assert (ROOT / "cluster" / "config" / "values.pyi").read_text(encoding="utf-8") == stub()


@pytest.mark.parametrize(
    ("group", "key", "told"),
    [
        ("_BrokerNumbers", "replica.lag.time.max.ms", "int"),
        ("_BrokerNumbersOrNone", "broker.id", "int | None"),
        ("_BrokerLists", "log.dirs", "tuple[str, ...]"),
        ("_TopicFlags", "preallocate", "bool"),
        # librdkafka's is a text.
        ("_ProducerListsOrTexts", "bootstrap.servers", "tuple[str, ...] | str"),
    ],
)
def test_a_key_has_the_type_of_its_value(group: str, key: str, told: str) -> None:
    """By its kind, with None where it may be unset, in all tables that a configuration of that kind may have."""
    text = stub()
    assert f'"{key}"' in text.partition(f"\n{group} = Literal[")[2].partition("]")[0]
    assert f"    def __getitem__(self, name: {group}) -> {told}: ...\n" in text


def test_the_stub_is_formatted() -> None:
    """ruff has nothing to change in what is generated."""
    command = [sys.executable, "-m", "ruff", "format", "--check", "--stdin-filename", "values.pyi", "-"]
    done = subprocess.run(command, input=stub(), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
