"""Every anomaly is defined where its check is, and ``docs/anomalies.md`` says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from verifier import explain
from verifier.anomalies import ANOMALIES, BY_NAME
from verifier.anomalies.document import docstring, document
from verifier.anomalies.model import Anomaly

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_made_from_the_docstrings() -> None:
    """docs/anomalies.md is what ``python -m verifier.anomalies.document`` writes; run that after a change."""
    assert (ROOT / "docs" / "anomalies.md").read_text(encoding="utf-8") == document()


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.name)
def test_a_docstring_names_its_check_and_defines_it(anomaly: Anomaly) -> None:
    """Its first line begins with the name; then come a definition and an indented example; every cause is in it."""
    text = docstring(anomaly.name)
    assert text.startswith(f"{anomaly.name}: ")
    assert "\n\nDefinition. " in text
    assert "\n\n    " in text
    assert [cause for cause in anomaly.causes if f"``{cause}``" not in text and anomaly.name not in COPIED] == []


#: Their causes are defined in ``verifier.checks.copies``.
COPIED = ("duplicate", "log-duplicate")


def test_names_are_known() -> None:
    """An anomaly stands in one group, brings only what there is, and has a sentence."""
    assert len(BY_NAME) == len(ANOMALIES)
    assert {name for anomaly in ANOMALIES for name in anomaly.brings} <= set(BY_NAME)
    assert set(explain._SENTENCES) == set(BY_NAME)
