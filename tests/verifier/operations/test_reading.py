"""From files to operations: Jepsen's own form, JSON lines, arrays, and what is refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verifier.operations.histories import Line, history_of, mutated
from verifier.operations.model import OperationHistory, OperationsError
from verifier.operations.options import JudgeOptions
from verifier.operations.pairing import pair
from verifier.operations.reading import read_operations
from verifier.operations.verify_history import judge_file
from verifier.operations.writing import edn_line, json_line

FIXTURE = Path(__file__).resolve().parents[2] / "testdata" / "jepsen_kafka.edn"


def test_a_history_in_jepsens_own_form() -> None:
    """Tagged records, the nemesis, lists and sets, errors with strings, a crash, an admin's dump, an open send."""
    history = read_operations(FIXTURE)
    assert (len(history), history.skipped) == (19, 3)
    operations = pair(history)
    assert operations.problems == ()
    assert [history.names.name(int(code)) for code in history.error if code] == [
        'timeout Timeout of 5000ms expired; "t0-0" {no leader}', "not-leader-or-follower nil",
    ]  # fmt: skip
    found = judge_file(FIXTURE, JudgeOptions(sub_via=frozenset({"assign", "subscribe"}), ww_deps=True))
    assert found.verdict.reasons == ()
    assert found.verdict.verdict == "valid"
    stats = found.verdict.stats
    assert (stats["acked"], stats["read"], stats["unknown"], stats["failed"], stats["keys"]) == (2, 3, 2, 1, 2)


def columns(history: OperationHistory) -> dict[str, Any]:
    """What was read, with names in place of codes."""
    names = history.names
    told: dict[str, Any] = {"process": names.names(history.process), "type": history.type.tolist()}
    for table in ("sends", "reads", "listed", "rebalanced"):
        rows = getattr(history, table)
        told |= {f"{table} {name}": names.names(column) for name, column in rows.items()}
    return told | {"f": history.f.tolist(), "index": history.index.tolist(), "time": history.time.tolist()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.integers(0, 5))
def test_all_forms_say_the_same(tmp_path: Path, seed: int, mutations: int) -> None:
    """EDN by line, as one vector, JSON by line and as one array are read as the operations they were made of."""
    lines = mutated(seed, mutations)
    wanted = columns(history_of(lines))
    texts = {
        "lines.edn": "".join(edn_line(line) + "\n" for line in lines),
        "vector.edn": "[" + "\n ".join(edn_line(line) for line in lines) + "]",
        "pretty.edn": "".join(edn_line(line).replace(", ", ",\n ") + "\n" for line in lines),
        "lines.jsonl": "".join(json_line(line) + "\n" for line in lines),
        "array.json": json.dumps(lines, indent=1),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert columns(read_operations(path)) == wanted, name


GOOD: Line = {"process": 0, "type": "invoke", "f": "send", "value": [["send", 1, 7]]}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "a.edn",
            '{:process 0, :type :invoke, :f :send, :value [[:send 1 7]]}\n{:process 0 :type "',
            "a.edn:2: the file",
        ),
        ("a.edn", "{:process 0, :type :invoke, :f :send, :value [[:send 1 7]\n", "a.edn:1: the file ends within"),
        ("a.edn", "{:process 0, :type :done, :f :send}", "a.edn:1: type 'done' is unknown; it is one of invoke, ok"),
        ("a.edn", "\n{:process 0, :type :ok, :f :read}", "a.edn:2: f 'read' is unknown; it is one of send, poll"),
        ("a.edn", "{:type :ok, :f :send}", "a.edn:1: the operation has no process"),
        ("a.edn", "[1 2]", "a.edn:1: an operation is a map"),
        ("a.edn", "{:process 0, :type :ok, :f :send, :value [[:write 1 7]]}", "'write' is not a micro-operation"),
        ("a.edn", "{:process 0, :type :ok, :f :send, :value [[:send 1 [-5 7]]]}", "a.edn:1: -5 is not an offset"),
        (
            "a.edn",
            "{:process 0, :type :ok, :f :send, :value [[:send 1 [0 7.5]]]}",
            "the value 7.5 is neither an integer nor",
        ),
        ("a.edn", "{:process 0, :type :ok, :f :send, :value [[:send 1.5 [0 7]]]}", "the key 1.5 is neither an"),
        ("a.edn", "{:process 0, :type :ok, :f :poll, :value [[:poll {1 [[0 true]]}]]}", "the value True is neither"),
        ("a.edn", "{:process 0.5, :type :ok, :f :send}", "the process 0.5 is neither an integer nor a string"),
        ("a.edn", "{:process 0, :type :ok, :f :poll, :value [[:poll [1 2]]]}", "a poll's result is a map of keys"),
        ("a.edn", "{:process 0, :type :invoke, :f :poll, :value [[:poll {1 [[0 7]]}]]}", "cannot have read anything"),
        ("a.jsonl", json.dumps(GOOD) + '\n{"process": 0, "ty', "a.jsonl:2: this line is not a complete JSON obj"),
        ("a.jsonl", json.dumps(GOOD | {"index": "x"}), "a.jsonl:1: index must be an integer"),
        ("a.json", "[" + json.dumps(GOOD), "a.json:1: the file ends within its array"),
        ("a.json", f"[\n{json.dumps(GOOD)}\n{json.dumps(GOOD)}]", "a.json:3: expected , or ]"),
        ("a.json", "[] 1", "something follows the array"),
    ],
)
def test_what_is_no_history_is_named(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """File, line and what is wrong; the verdict is unknown for that reason, never valid."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(OperationsError) as raised:
        read_operations(path)
    assert reason in str(raised.value)
    assert judge_file(path, JudgeOptions()).verdict.reasons == (f"the history cannot be read: {raised.value}",)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A file that is not UTF-8 is refused with the position."""
    path = tmp_path / "a.edn"
    path.write_bytes(b"{:process \xff}")
    with pytest.raises(OperationsError, match="not UTF-8 text"):
        read_operations(path)


def test_keys_of_json_objects_are_integers_where_they_read_so(tmp_path: Path) -> None:
    """JSON's objects have no integer keys: "1" of a poll is the key 1 of a send, and "t-1" is itself."""
    path = tmp_path / "a.jsonl"
    lines = [
        {"process": 0, "type": "invoke", "f": "send", "value": [["send", 1, 7], ["send", "t-1", "x"]]},
        {"process": 0, "type": "ok", "f": "send", "value": [["send", 1, [0, 7]], ["send", "t-1", [0, "x"]]]},
        {"process": "r", "type": "invoke", "f": "poll", "value": [["poll"]]},
        {"process": "r", "type": "ok", "f": "poll", "value": [["poll", {"1": [[0, 7]], "t-1": [[0, "x"]]}]]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert judge_file(path, JudgeOptions()).verdict.verdict == "valid"


def test_a_completed_send_may_have_no_offset(tmp_path: Path) -> None:
    """It is acknowledged, and its place is not known: the same as an offset that is null."""
    lines = [
        {"process": 0, "type": "invoke", "f": "send", "value": [["send", 1, 7]]},
        {"process": 0, "type": "ok", "f": "send", "value": [["send", 1, 7]]},
    ]
    read = []
    for name, sent in (("bare.jsonl", 7), ("null.jsonl", [None, 7])):
        lines[1]["value"] = [["send", 1, sent]]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        read.append(columns(read_operations(tmp_path / name)))
    assert read[0] == read[1]
