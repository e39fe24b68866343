"""The error of an experiment that cannot be run as asked."""

from __future__ import annotations


class SettingsError(ValueError):
    """The settings contradict each other or cannot be had; the message names the thing and the fix."""
