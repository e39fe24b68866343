"""YAML that people write: every key once, and one line that says where something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents import DocumentError, kind_of, load_yaml, read_text

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
DOCUMENTS = st.recursive(SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text() | st.integers(), each))


@given(DOCUMENTS, st.booleans())
def test_what_has_every_key_once_reads_as_the_library_reads_it(document: Any, flow: bool) -> None:
    """The loader changes nothing else."""
    text = yaml.safe_dump(document, default_flow_style=flow, allow_unicode=True)
    assert load_yaml(text) == yaml.safe_load(text)


@given(st.lists(st.sampled_from("abcd"), max_size=5))
def test_a_key_that_comes_twice_is_refused_and_no_other(keys: list[str]) -> None:
    """The first repetition is named, with its line and that of the key it would replace."""
    text = "".join(f"{key}: {number}\n" for number, key in enumerate(keys))
    repeats = [number for number, key in enumerate(keys) if key in keys[:number]]
    if not repeats:
        assert load_yaml(text) == ({key: number for number, key in enumerate(keys)} or None)
        return
    with pytest.raises(DocumentError) as refused:
        load_yaml(text)
    line, key = repeats[0], keys[repeats[0]]
    assert str(refused.value) == (
        f"line {line + 1}: key '{key}' is given twice, first in line {keys.index(key) + 1}; leave one of them out"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: {b: {c: 1,\n c: 2}}", "line 2: key 'c'"),
        ("- {x: 1}\n- {y: 1, y: 2}", "line 2: key 'y'"),
        ('rate: 1\n"rate": 2', "line 2: key 'rate'"),
        ("1: a\n0x1: b", "line 2: key '0x1'"),
        ("1: a\ntrue: b", "line 2: key 'true'"),
        ("? {z: 1, z: 2}\n: 3", "line 1: key 'z'"),
        ("base: &b {k: 1}\nuse: {<<: *b, <<: *b}", "line 2: key '<<'"),
        ("a: &a {self: *a, k: 1,\n k: 2}", "line 2: key 'k'"),
        ("a: 1\nb: [1, 2", "line 2, column 9: it is not YAML: while parsing a flow sequence"),
        ("a: 1\n--- \nb: 2", "line 2, column 1: it is not YAML: expected a single document"),
        ("a: *b", "line 1, column 4: it is not YAML: found undefined alias"),
        ("a: !!python/object:os.system {}", "line 1, column 4: it is not YAML: could not determine a constructor"),
        ("[1]: 2", "line 1, column 1: it is not YAML: while constructing a mapping, found unhashable key"),
        ("a: 2020-02-31", "it is not YAML: day"),
        ("a: " + "9" * 5000, "it is not YAML: Exceeds the limit"),
        ("a: \x00", "it is not YAML: unacceptable character #x0000"),
        ("[" * 5000, "it is nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(text: str, says: str) -> None:
    """Wherever the mapping stands, and however its key is spelt."""
    with pytest.raises(DocumentError) as refused:
        load_yaml(text)
    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)


def test_a_merged_key_may_be_said_again() -> None:
    """That is what merging is for; and an alias that is used twice is looked at once."""
    text = "base: &b {k: 1, l: 2}\none: {<<: *b, k: 3}\ntwo: *b"
    assert load_yaml(text) == {"base": {"k": 1, "l": 2}, "one": {"k": 3, "l": 2}, "two": {"k": 1, "l": 2}}


def test_a_file_that_is_no_text_says_why(tmp_path: Path) -> None:
    """Absent, a directory, not UTF-8: without a traceback, and the line of the first wrong byte."""
    text = tmp_path / "text"
    text.write_bytes(b"a: 1\nb: \xe4")
    for path, says in (
        (tmp_path / "absent", "it cannot be read: there is no such file or directory"),
        (tmp_path, "it cannot be read: it is a directory, not a file"),
        (text, "line 2: it is not UTF-8 text (byte 0xe4)"),
    ):
        with pytest.raises(DocumentError) as refused:
            read_text(path)
        assert str(refused.value) == says
    text.write_bytes("\ufeffa: ä\r\n".encode())
    assert load_yaml(read_text(text)) == {"a": "ä"}


def test_what_is_no_mapping_is_called_by_its_kind() -> None:
    """For the line that says that a mapping is wanted."""
    assert [kind_of(load_yaml(text)) for text in ("", "# only this", "[]", "3")] == [
        "it is empty",
        "it is empty",
        "it is a list",
        "it is a single value",
    ]
