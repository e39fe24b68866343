"""What stands in committed files: no machine's paths, no package index, and documents that agree with the code."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, committed_files

TEXT = {
    ".py",
    ".md",
    ".toml",
    ".lock",
    ".yml",
    ".yaml",
    ".json",
    ".txt",
    ".cfg",
    ".sh",
    ".j2",
    ".css",
    ".js",
    ".html",
    "",
}

#: Paths that exist on one machine, and the hosts of package and image registries. Pieced together, so that this file
#: does not name them either.
FORBIDDEN = {
    "a path of somebody's machine": re.compile(r"(?<![\w.])/(?:root|home|Users|work|farm|opt/pypi|opt/wheels)/[\w.]"),
    "a scratch directory": re.compile(r"(?<![\w.])/tmp/(?!kafka-logs\b)[\w.]"),
    "the address of a registry": re.compile(
        "|".join(
            (
                r"pypi\." r"org",
                r"pythonhosted\." r"org",
                r"ghcr\." r"io",
                r"docker\." r"io",
                r"quay\." r"io",
                r"repo1?\.maven",
            )
        )
    ),
    "credentials": re.compile(r"(?i)\b(?:api[_-]?key|secret|password|token)\s*[=:]\s*['\"](?=\S*\d)[^'\"\s]{8,}['\"]"),
    "work left undone": re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b"),
}

#: File -> what it may hold nevertheless, and why.
EXCEPTIONS: dict[str, tuple[str, str]] = {}


@cache
def texts() -> dict[str, str]:
    """Name and text of every committed text file."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8", errors="strict")
        for path in committed_files()
        if path.suffix in TEXT and path.name != "LICENSE"
    }


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_file_holds(what: str) -> None:
    """A clone works anywhere, and tells nothing about where it was made."""
    pattern = FORBIDDEN[what]
    wrong = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts().items()
        if EXCEPTIONS.get(name, ("", ""))[0] != what
        # one look at the whole is ten times cheaper than one at each line
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not wrong, "\n".join(wrong)


#: Words that no American writes. Pieced together like those above.
UNWELCOME = {
    "a British or bookish spelling": re.compile(
        r"(?i)\b(?:ane" r"w|neighbo" r"urs?|behavio" r"ur|lice" r"nce|learn" r"t|colo" r"urs?)\b"
    ),
}
#: An option that is misspelled on purpose.
SPELLED_ON_PURPOSE = "tests/chaos/bad_inputs/slips.py"


@pytest.mark.parametrize("what", sorted(UNWELCOME))
def test_no_text_has(what: str) -> None:
    """Every text is written in American English."""
    wrong = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts().items()
        if name != SPELLED_ON_PURPOSE and UNWELCOME[what].search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if UNWELCOME[what].search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_documents_link_to_files_that_exist() -> None:
    """A relative link in a document leads somewhere."""
    broken = []
    for path in committed_files():
        if path.suffix == ".md":
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
                if "://" not in target and not (path.parent / target).exists():
                    broken.append(f"{path.relative_to(ROOT)} -> {target}")
    assert broken == []


def test_documents_name_make_targets_that_exist() -> None:
    """Every ``make x`` in a document is a target of the Makefile, and every target has its line of help."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert targets == set(phony[1].split()) == set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    for name in ("README.md", "DEVELOPERS.md"):
        named = set(re.findall(r"`make ([a-z-]+)", (ROOT / name).read_text()))
        named |= set(re.findall(r"^make ([a-z-]+)", (ROOT / name).read_text(), re.MULTILINE))
        assert named, name
        assert named <= targets, name


def test_the_configuration_document_is_made_from_the_tables() -> None:
    """docs/configuration.md is what ``python -m cluster.config.document`` writes; run that after a change."""
    from cluster.config.document import document

    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == document()


def test_the_document_of_what_is_served_is_made_from_the_tables() -> None:
    """docs/apis.md is what ``python -m cluster.broker.document`` writes, and says of every API whether it is served."""
    from cluster.broker.document import absent, document
    from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey

    assert (ROOT / "docs" / "apis.md").read_text(encoding="utf-8") == document()
    parts = (set(SUPPORTED), set(INTER_BROKER), absent())
    assert sum(map(len, parts)) == len(ApiKey)
    assert set().union(*parts) == set(ApiKey)


def test_every_document_is_linked_from_the_readme() -> None:
    """Whoever reads the README finds every page of docs/."""
    linked = set(re.findall(r"\]\((docs/[\w/-]+\.md)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")} - linked == set()


def test_ci_runs_what_the_readme_tells_a_newcomer() -> None:
    """.ci/run is executable and calls the very commands of the README, lint and test."""
    script = ROOT / ".ci" / "run"
    commands = re.findall(r"^(?:exec )?make --no-print-directory ([a-z-]+)$", script.read_text(), re.MULTILINE)
    assert commands == ["lint", "test"]
    assert script.stat().st_mode & 0o111
    assert "make test" in (ROOT / "README.md").read_text()


def test_results_are_never_committed() -> None:
    """results/ holds its README and .gitignore alone."""
    ignored = (ROOT / "results" / ".gitignore").read_text().split()
    assert ignored == ["*", "!.gitignore", "!README.md"]
    assert (ROOT / "results" / "README.md").exists()


def test_the_license_is_the_whole_apache_license() -> None:
    """LICENSE is the full text, and the package says the same."""
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"


def test_every_script_begins_with_its_purpose() -> None:
    """A shell script says in its first comment what it is for."""
    for path in [ROOT / ".ci" / "run", *sorted((ROOT / "scripts").iterdir())]:
        if path.is_file() and path.suffix != ".py":
            first, second = path.read_text().splitlines()[:2]
            assert first == "#!/bin/sh", path
            assert second.startswith("# "), path


def test_tests_lie_in_directories() -> None:
    """make test finds tests by their directory, so none may lie beside them."""
    assert [path.name for path in Path(ROOT / "tests").glob("test_*.py")] == []
