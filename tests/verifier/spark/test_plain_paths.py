"""Whatever a run directory is called, Spark is given a path that it takes as it is, and nothing is left of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from verifier.spark.plain_paths import PlainPaths

ODD = ("a, b", "größe", "50%", "[x]", "{a,b}", "a:b", "$HOME", 'a"b', "back\\slash", "stern*", "数据", "new\nline")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where links are made."""
    found = tmp_path / "tmp"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


@pytest.mark.parametrize("name", ["plain", "a dir", "a.b_c-d+e@f=g"])
def test_a_plain_directory_stands_for_itself(tmp_path: Path, temporary: Path, name: str) -> None:
    """A path that Spark takes is used as it is: no link is made."""
    assert PlainPaths().to(tmp_path / name) == tmp_path / name
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ODD)
def test_an_odd_one_gets_a_link_until_the_end(tmp_path: Path, temporary: Path, name: str) -> None:
    """The same directory keeps its link; another one gets its own."""
    home = tmp_path / name
    home.mkdir()
    (home / "file").write_text("here")
    paths = PlainPaths()
    plain = paths.to(home)
    assert plain.name.isascii() and plain.parent.parent == temporary and (plain / "file").read_text() == "here"
    assert paths.to(home) == plain != paths.to(tmp_path / "ü")
    paths.close()
    assert list(temporary.iterdir()) == [] and (home / "file").exists()


def test_an_odd_temporary_directory_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in it would be no plainer."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "größe"))
    paths = PlainPaths()
    plain = paths.to(tmp_path / "größe")
    assert str(plain).isascii() and plain.parent.parent == Path("/tmp")
    paths.close()
    assert not plain.parent.exists()
