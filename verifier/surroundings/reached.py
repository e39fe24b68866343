"""Reads what a run reached (``reached.json``), in the conductor's own words. Owns the bounds; judges nothing."""

from __future__ import annotations

from collections.abc import Mapping

from verifier.evidence.run_directory import RunDirectory, read_json

REACHED = "reached.json"
#: The most entries, and the most characters of each text: another program may have written the file.
MOST, LONGEST = 20, 500


def reached(directory: RunDirectory) -> Mapping[str, str]:
    """What the run reached -> how much of it. Empty if the file is missing or cannot be read."""
    try:
        figures = read_json(directory.path / REACHED)["figures"]
        return {str(name)[:LONGEST]: str(text)[:LONGEST] for name, text in list(figures.items())[:MOST]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
