"""What a wrong configuration raises. Owns the one error type; the tables own the texts."""

from __future__ import annotations


class ConfigError(ValueError):
    """A key is unknown, a value does not fit, or two settings contradict each other.

    The text is one line for people: what is wrong, where, and what would be right.
    """
