"""What a run says that it reached (``reached.json``): words of the conductor's, shown as they are. Judges nothing."""

from __future__ import annotations

from collections.abc import Mapping

from verifier.evidence.run_directory import RunDirectory, read_json

REACHED = "reached.json"
#: Of a file that someone else may have written.
MOST, LONGEST = 20, 500


def reached(directory: RunDirectory) -> Mapping[str, str]:
    """What, and how much of it; empty if the run did not say, or if it cannot be read."""
    try:
        figures = read_json(directory.path / REACHED)["figures"]
        return {str(name)[:LONGEST]: str(text)[:LONGEST] for name, text in list(figures.items())[:MOST]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
