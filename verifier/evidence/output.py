"""The topic to which the members of a group write what they made of their input. Owns its name."""

from __future__ import annotations

#: Beside the topic of the load, with as many partitions: what was read from one goes to the same one there, unchanged.
OUTPUT_TOPIC = "gapless-output"
