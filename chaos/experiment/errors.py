"""The error of an experiment that cannot be run as requested. Owns only the type."""

from __future__ import annotations


class ExperimentError(ValueError):
    """Settings contradict each other or cannot be met. The message names the setting and the fix."""
