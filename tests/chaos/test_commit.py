"""Which commit made a run: of a checkout, changed or not, and None where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from chaos.commands.commit import commit


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    return subprocess.run(
        ["git", *identity, *words], cwd=directory, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_checkout_is_named_by_its_commit(tmp_path: Path) -> None:
    """Also where a tag points at it; changed files show, files that git does not know do not."""
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "-a", "v1", "-m", "one")
    (tmp_path / "unknown").write_text("")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path) == head[:12]
    (tmp_path / "file").write_text("2")
    assert commit(tmp_path) == f"{head[:12]}-dirty"


def test_without_a_checkout_there_is_none(tmp_path: Path) -> None:
    """An installed package, or a broken repository: the run goes on without."""
    assert commit(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert commit(tmp_path) is None
