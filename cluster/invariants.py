"""InvariantBroken: what a ``validate`` function raises when an invariant does not hold.

Owns the exception. The invariants themselves are next to the code that they are about, in modules named ``invariants``:
in words in the module's docstring, and in code below it. They change nothing. Simulations and tests call them; no
program of the cluster does.
"""

from __future__ import annotations


class InvariantBroken(Exception):
    """One line: the object (``subject``), the invariant (``name``), and the values that break it (``values``)."""

    def __init__(self, subject: object, name: str, values: str) -> None:
        super().__init__(f"{subject}: {name}: {values}")
        self.subject = subject
        self.name = name
        self.values = values
