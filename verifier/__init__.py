"""verifier: judges a run from its evidence (what clients were told, what disks hold, what readers saw).

``verify`` is the one entry; ``python -m verifier.job RUN_DIR`` is the same in a process of its own. Importing this
loads neither pyspark nor pandas.
"""

from __future__ import annotations

from verifier.verdict import Verdict
from verifier.verification import verify

__all__ = ["Verdict", "verify"]
