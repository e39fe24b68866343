"""Describes the events that excuse anomalies: where, when, who led, and which fault came before. Pure.

Owns these descriptions, the time from which all seconds in reports count, and the time of the first acknowledgement.
``Found.event`` has the event itself, also for programs. This module adds the leaders and faults around it. It decides
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verifier.closing.wall_clock import clock
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint
from verifier.evidence.units import ms_of_ns, seconds_of_ns
from verifier.excuses.expectation import ELECTION
from verifier.facts import Found
from verifier.report.timeline import axis_of
from verifier.surroundings.model import LeaderChange, Surroundings
from verifier.witness.effectiveness import Injected
from verifier.witness.witness import SLACK_NS


@dataclass(frozen=True, slots=True)
class Occasions:
    """Describes events in words. All seconds count from ``begin_ns``; ``since`` names that time.

    ``acked_ns`` is the time of the load's first acknowledgement, None if it is unknown.
    """

    run: RunModel
    begin_ns: int
    since: str
    injected: Sequence[Injected] = ()
    changes: Sequence[LeaderChange] = ()
    acked_ns: int | None = None

    @classmethod
    def of(
        cls,
        run: RunModel,
        injected: Sequence[Injected],
        series: Sequence[SeriesPoint] = (),
        around: Surroundings | None = None,
    ) -> Occasions:
        """For a run. Seconds count from the start of its load, or else from its first fault, or else its own start."""
        axis = axis_of(injected, series)
        begin_ns = run.started_ns if axis is None else axis.start_ns
        since = "the start of the load" if series else "the first fault" if injected else "the start of the run"
        known = Surroundings() if around is None else around
        acked_ns = min((int(times[0]) for times in known.acks.values() if times.size), default=None)
        return cls(run, begin_ns, since, injected, known.changes, acked_ns)

    @property
    def first_ack_ms(self) -> float | None:
        """Milliseconds from ``begin_ns`` to the first acknowledgement; None if it is unknown."""
        return None if self.acked_ns is None else max(0.0, ms_of_ns(self.acked_ns - self.begin_ns))

    @property
    def zero(self) -> str:
        """One sentence that says from when the seconds count."""
        at = clock(self.run, self.begin_ns)
        return f"Seconds count from {self.since}{'' if at is None else f', {at} UTC'}."

    def words(self, found: Found) -> str:
        """Partition, event, time, leaders before and after an election, and the fault before it, as far as known."""
        if found.event is None:
            return ""
        what, when = found.event, ""
        if found.event_ns is not None:
            at = clock(self.run, found.event_ns)
            after_s = seconds_of_ns(found.event_ns - self.begin_ns)
            when = f", about {after_s:.1f} s after {self.since}{'' if at is None else f' ({at} UTC)'}"
        if found.excuse == ELECTION and when:
            # drops the event's own time, since ``when`` has it
            what = what.rpartition(", about ")[0] or what
        parts = [f"{found.topic}-{found.partition}: {what}{when}", self._led(found), self._fault(found.event_ns)]
        return "; ".join(part for part in parts if part)

    def _led(self, found: Found) -> str:
        """The leaders before and after an election; empty if they are unknown."""
        if found.excuse != ELECTION or found.epoch is None:
            return ""
        seen = [each for each in self.changes if each.name == (found.topic, found.partition)]
        before = next((each for each in reversed(seen) if each.leader_epoch < found.epoch), None)
        after = next((each for each in seen if each.leader_epoch >= found.epoch), None)
        told = [f"{_leader(each)} {when}" for each, when in ((before, "before"), (after, "after")) if each is not None]
        return f"led by {', by '.join(told)}" if told else ""

    def _fault(self, event_ns: int | None) -> str:
        """The last fault that began before an event, if it lasted at least until shortly before; empty without one."""
        near = [
            each
            for each in self.injected
            if event_ns is not None
            and not each.skipped
            and each.start_ns <= event_ns
            and (each.end_ns is None or event_ns <= each.end_ns + SLACK_NS)
        ]
        if event_ns is None or not near:
            return ""
        last = max(near, key=lambda each: each.start_ns)
        told = f"{last.fault} ({last.target}) began {seconds_of_ns(event_ns - last.start_ns):.1f} s earlier"
        if last.healed_ns is None or last.healed_ns > event_ns:
            return told
        return f"{told}, its healing {seconds_of_ns(event_ns - last.healed_ns):.1f} s earlier"


def _leader(change: LeaderChange) -> str:
    who = "no broker" if change.leader < 0 else f"broker {change.leader}"
    return f"{who} (epoch {change.leader_epoch})"
