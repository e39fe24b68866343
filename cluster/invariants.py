"""InvariantBroken: how a ``validate`` says that something which always holds does not.

Owns the exception. The invariants themselves stand next to what they are about, in modules named ``invariants``: in
words in the module's docstring, in code below it. They read and change nothing. Simulations and tests call them; no
program of the cluster does.
"""

from __future__ import annotations


class InvariantBroken(Exception):
    """One line: of what (``subject``), which invariant (``name``), and the values that break it (``values``)."""

    def __init__(self, subject: object, name: str, values: str) -> None:
        super().__init__(f"{subject}: {name}: {values}")
        self.subject = subject
        self.name = name
        self.values = values
