"""The error of an experiment that cannot be run as asked."""

from __future__ import annotations


class ExperimentError(ValueError):
    """The settings contradict each other or ask for the unavailable; the message names the setting and the fix."""
