"""The shape of one bad input. Owns no table."""

from __future__ import annotations

#: The arguments, and what the one line about them must hold: the thing, and the way out.
BadInput = tuple[list[str], list[str]]
