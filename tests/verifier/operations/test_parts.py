"""A file of operations that several processes read is the history that one process reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verifier.operations.histories import mutated
from verifier.operations import parts, reading
from verifier.operations.model import OperationHistory, OperationsError
from verifier.operations.reading import read_operations
from verifier.operations.writing import FORMS

NAMED = '{"process": "a", "type": "ok", "f": "send", "value": [["send", "k%d", [%d, "v%d"]]], "error": "e%d"}\n'


def everything(history: OperationHistory) -> dict[str, Any]:
    """All that a history says, codes included, in plain data."""
    found: dict[str, Any] = {}
    for name in history.__slots__:
        value = getattr(history, name)
        if isinstance(value, dict):
            found |= {f"{name} {column}": (rows.dtype, rows.tolist()) for column, rows in value.items()}
        elif isinstance(value, np.ndarray):
            found[name] = (value.dtype, value.tolist())
        else:
            found[name] = value._names if name == "names" else value
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.integers(0, 5), st.sampled_from(sorted(FORMS)), st.integers(2, 6), st.booleans())
def test_parts_are_the_whole(tmp_path: Path, seed: int, mutations: int, form: str, count: int, blank: bool) -> None:
    """Down to the codes of names and the numbers of lines, wherever the file is cut."""
    path = tmp_path / f"history.{form}"
    end = "\n\n" if blank else "\n"
    path.write_text("".join(FORMS[form](line) + end for line in mutated(seed, mutations)), encoding="utf-8")
    cuts = parts._cuts(path, path.stat().st_size, count)
    assert [begin for begin, _ in cuts[1:]] == [end for _, end in cuts[:-1]]
    read = [reading._read_part(path, *cut) for cut in cuts]
    assert everything(parts.together(read)) == everything(read_operations(path, 1))


def test_two_processes_give_the_history_of_one(tmp_path: Path) -> None:
    """Names that both parts have, and names that one has."""
    path = tmp_path / "history.jsonl"
    path.write_text("".join(NAMED % (each % 7, each, each % 5, each // 9) for each in range(40)), encoding="utf-8")
    assert everything(read_operations(path, 2)) == everything(read_operations(path, 1))


BAD = '{"process": 1, "type": "ok", "f": "dance"}\n'


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("second.jsonl", NAMED % (1, 1, 1, 1) * 30 + BAD, r"second\.jsonl:31: f 'dance' is unknown"),
        ("first.jsonl", BAD + NAMED % (1, 1, 1, 1) * 30, r"first\.jsonl:1: f 'dance' is unknown"),
        ("bytes.jsonl", NAMED % (1, 1, 1, 1) * 30 + "\udcff\n", "not UTF-8 text"),
    ],
)
def test_an_error_is_named_as_by_one_process(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """The line is counted from the beginning of the file, in whichever part it is."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(OperationsError, match=reason):
        read_operations(path, 2)


@pytest.mark.parametrize("broken", ["{:process 0, :type :ok, :f :send,\n :value %s}\n", "%s"])
def test_what_goes_on_across_a_cut_is_read_whole(tmp_path: Path, broken: str) -> None:
    """A form over several lines, and a string with ends of lines in it, are no ends of a part."""
    whole = "{:process 0, :type :ok, :f :send, :value [[:send 1 [0 1]]]}\n"
    long = "[[:send 1 [0 1]]" + "\n" * 400 + "]"
    text = (broken % long) if ":" in broken else whole.replace("[[:send 1 [0 1]]]", long)
    path = tmp_path / "history.edn"
    path.write_text(whole + text + whole, encoding="utf-8")
    assert len(read_operations(path, 2)) == len(read_operations(path, 1)) == 3
