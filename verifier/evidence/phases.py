"""The phases of a run in their order: the conductor goes through them, the verifier asks for them. Owns their names."""

from __future__ import annotations

START = "start"
LOAD_STARTS = "load starts"
#: The phase in which faults are injected.
CHAOS = "chaos"
HEAL = "heal"
#: Everything is healed and in sync, and the load continues.
RECOVERY = "recovery"
FLUSH = "flush"
FINAL_READ = "final read"
STOP = "stop"

PHASES = (START, LOAD_STARTS, CHAOS, HEAL, RECOVERY, FLUSH, FINAL_READ, STOP)
#: The phases in which records are sent.
LOAD_PHASES = (LOAD_STARTS, CHAOS, HEAL, RECOVERY)
