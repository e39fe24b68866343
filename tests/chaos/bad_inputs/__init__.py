"""Command lines that gapless refuses, and what the one line about each must hold: tables, by what they ask for.

Owns no test; ``tests/chaos/test_commands.py`` runs them all, in a directory with the files of ``files``.
"""

from __future__ import annotations

from tests.chaos.bad_inputs.clusters import CLUSTERS
from tests.chaos.bad_inputs.files import make_files
from tests.chaos.bad_inputs.model import BadInput
from tests.chaos.bad_inputs.runs import RUNS
from tests.chaos.bad_inputs.slips import SLIPS
from tests.chaos.bad_inputs.stored import STORED

__all__ = ["BAD", "make_files"]

BAD: list[BadInput] = [*RUNS, *CLUSTERS, *STORED, *SLIPS]
