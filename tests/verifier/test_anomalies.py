"""Every anomaly is defined where its check is, and ``docs/anomalies.md`` says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verifier import explain
from verifier.anomalies import ANOMALIES, BY_NAME
from verifier.anomalies.document import docstring, document
from verifier.anomalies.model import Anomaly
from verifier.operations.anomalies import ANOMALIES as OF_OPERATIONS
from verifier.operations.anomalies import OperationAnomaly

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_made_from_the_docstrings() -> None:
    """docs/anomalies.md is what ``python -m verifier.anomalies.document`` writes; run that after a change."""
    assert (ROOT / "docs" / "anomalies.md").read_text(encoding="utf-8") == document()


@pytest.mark.parametrize("anomaly", OF_OPERATIONS, ids=lambda anomaly: anomaly.name)
def test_the_document_has_the_anomalies_of_histories(anomaly: OperationAnomaly) -> None:
    """Each has a heading, its definition and its example; the links of what it brings lead somewhere."""
    text = (ROOT / "docs" / "anomalies.md").read_text(encoding="utf-8")
    section = text.partition(f"\n### {anomaly.name} in a history\n")[2].partition("\n### ")[0]
    assert "Definition. " in section
    assert f"```text\n{anomaly.example}\n```" in section
    targets = {f"{each.lower()}-in-a-history" for each in (anomaly.name, *anomaly.brings)}
    assert all(f"](#{target})" in text for target in targets)
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    assert targets <= headings


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.name)
def test_a_docstring_names_its_check_and_defines_it(anomaly: Anomaly) -> None:
    """Its first line begins with the name; then come a definition and an indented example; every cause is in it."""
    text = docstring(anomaly.name)
    assert text.startswith(f"{anomaly.name}: ")
    assert "\n\nDefinition. " in text
    assert "\n\n    " in text
    assert "Pure." not in text and "this process" not in text, "readers of docs/anomalies.md do not ask how it is found"
    assert [cause for cause in anomaly.causes if f"``{cause}``" not in text and anomaly.name not in COPIED] == []


#: Their causes are defined in ``verifier.checks.copies``.
COPIED = ("duplicate", "log-duplicate")


def test_names_are_known() -> None:
    """An anomaly stands in one group, brings only what there is, and has a sentence."""
    assert len(BY_NAME) == len(ANOMALIES)
    assert {name for anomaly in ANOMALIES for name in anomaly.brings} <= set(BY_NAME)
    silent = sorted(set(BY_NAME) - set(explain._SENTENCES))
    assert not silent, f"no sentence in verifier/explain for: {', '.join(silent)}"
    assert set(explain._SENTENCES) == set(BY_NAME)
