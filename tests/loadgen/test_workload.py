"""Workloads: declared once, checked before anything starts, and no option says otherwise unheard."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from loadgen.settings import LoadSettings
from loadgen.workload import Workload, WorkloadError
from loadgen.workloads import CATALOGUE, find_workload


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_workload_of_the_catalogue_is_one_of_a_load(name: str) -> None:
    """It has a line about it, and its fields are settings that a load accepts."""
    workload = find_workload(name)
    assert workload.name == name and workload.summary
    placed = {"partitions": workload.partitions or 6, "producers": workload.streams or 6}
    settings = LoadSettings(run_id=1, **placed, **workload.load_fields())
    assert bool(settings.outstanding) == workload.is_unlimited
    assert workload.mean_bytes == settings.sizes.mean


def test_a_file_declares_a_workload(tmp_path: Path) -> None:
    """All fields, by the file's name."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "rate: 100\nshape: {bursts: {every_s: 10, for_s: 2, factor: 8}}\n"
        "value_bytes: {uniform: {least: 48, most: 50}}\n"
        "keys: {uniform: {keys: 3}}\npartitions: 2\nstreams: 4\ncompression: zstd\n"
    )
    workload = find_workload(str(path))
    assert (workload.name, workload.partitions, workload.streams, workload.compression) == ("mine", 2, 4, "zstd")
    assert workload.expected_records(20) == 4800
    assert workload.mean_bytes == 49
    assert set(workload.load_fields()) == {"rate", "shape", "value_bytes", "keys"}


def test_the_example_of_the_document_is_a_workload(tmp_path: Path) -> None:
    """What a newcomer copies from docs/load.md is taken, and shows every field but ``outstanding``."""
    text = (Path(__file__).parents[2] / "docs" / "load.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "example.yaml").write_text(example)
    workload = find_workload(str(tmp_path / "example.yaml"))
    assert [each.name for each in fields(workload) if getattr(workload, each.name) is None] == ["outstanding"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "mine.yaml: it is empty; a workload is a mapping"),
        ("[1]", "mine.yaml: it is a list; a workload is a mapping"),
        ("rate: [", "mine.yaml: line 1, column 8: it is not YAML"),
        ("rate: 5\nstreams: 2\nrate: 6", "mine.yaml: line 3: key 'rate' is given twice, first in line 1"),
        ("keys: {zipf: {keys: 2, keys: 3}}", "mine.yaml: line 1: key 'keys' is given twice"),
        ("rats: 3", r"mine.yaml: unknown field 'rats'; did you mean 'rate'\?$"),
        ("values_byte: 3", r"unknown field 'values_byte'; did you mean 'value_bytes'\?$"),
        ("zzz: 3", "unknown field 'zzz'; it has compression, keys"),
        ("7: 3", "unknown field 7; it has compression, keys"),
        ("rate: 0", r"^workload /.*/mine.yaml: rate is records per second above 0"),
        ("rate: fast", "unlimited"),
        ("rate: .nan", "above 0"),
        ("rate: 5\noutstanding: 3", "unlimited"),
        ("rate: unlimited\noutstanding: 0", "outstanding"),
        ("rate: unlimited\nshape: {steps: [[1, 2]]}", "shape"),
        ("streams: 1.5", "streams"),
        ("compression: brotli", "compression"),
        ("value_bytes: 40", "48"),
        ("keys: {zipf: {keys: 0}}", "from 1"),
        ("kind: batches", "kind is one of streams, transactions, bank"),
        ("transactions: {partitions: 2}", "works only with kind: transactions or bank, not with kind: streams"),
        (
            "kind: transactions\ntransactions: {partition: 2}",
            "needs a mapping with partitions, records, aborts, zombies",
        ),
        ("kind: transactions\ntransactions: {records: 13}", "records of transactions is a multiple of its 3"),
        ("kind: transactions\ntransactions: {aborts: 1}", "aborts of transactions is a share"),
        ("kind: transactions\ntransactions: {zombies: -0.1}", "zombies of transactions is a share"),
        ("kind: bank\ntransactions: {partitions: 3}", "partitions of transactions is 2 with kind: bank"),
        ("kind: transactions\nrate: unlimited", "kind: transactions works only with a rate"),
        ("kind: transactions\nstreams: 7\npartitions: 7", "a multiple of 3, not 7"),
        ("kind: transactions\nstreams: 6\npartitions: 2", "write to 3 partitions, and the topic has 2"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """In one line that names the file and the field."""
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=says):
        find_workload(str(path))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A directory and bytes that are no text are not taken for a name that nobody knows."""
    with pytest.raises(WorkloadError, match=r"^workload .*: it cannot be read: it is a directory, not a file$"):
        find_workload(str(tmp_path))
    (tmp_path / "mine.yaml").write_bytes(b"summary: \xfc\n")
    with pytest.raises(WorkloadError, match=r"mine\.yaml: line 1: it is not UTF-8 text"):
        find_workload(str(tmp_path / "mine.yaml"))


def test_an_unknown_name_has_the_nearest_or_says_where_all_are() -> None:
    """And then says that there is no such file either."""
    with pytest.raises(WorkloadError, match=r"^unknown workload 'steedy'; did you mean 'steady'\?$"):
        find_workload("steedy")
    with pytest.raises(WorkloadError, match=r"'gapless list workloads' shows all, or name an existing file$"):
        find_workload("foo")


def test_options_fill_what_a_workload_leaves_open_and_contradict_nothing() -> None:
    """The same value twice is no contradiction; a default is for what neither says."""
    workload = Workload("w", rate=100, partitions=3)
    whole = workload.with_options(
        {"rate": ("--rate", 100), "value_bytes": ("--record-bytes", 300), "streams": ("--users", None)},
        {"rate": 1, "streams": 7},
    )
    assert (whole.rate, whole.value_bytes, whole.streams, whole.partitions) == (100, 300, 7, 3)
    with pytest.raises(WorkloadError, match="--rate 200 contradicts rate 100 of workload w"):
        workload.with_options({"rate": ("--rate", 200)})
    with pytest.raises(WorkloadError, match="--rate 200 contradicts rate unlimited"):
        CATALOGUE["unlimited"].with_options({"rate": ("--rate", 200)})
