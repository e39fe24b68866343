"""What the probes of a fault saw, in words, for reports and progress. Pure. Owns the words.

A name without any is shown as it is. The names are those that ``chaos.faults`` records (docs/faults.md); a test holds
that each of them has its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Name -> what is said if it is true, and if it is not.
_FACTS: Mapping[str, tuple[str, str]] = {
    "dead": ("its process was gone", "its process still ran"),
    "running": ("its process ran again", "its process did not run again"),
    "runs": ("its process ran and answered", "its process did not answer"),
    "stopped": ("its process was stopped", "its process was not stopped anymore"),
    "silent": ("it did not answer", "it still answered"),
    "answers": ("it answered again", "it did not answer"),
    "counted_dead": ("the cluster counted the broker as dead", "the cluster counted the broker as alive"),
    "leader_moved": ("another broker led the partition", "no other broker led the partition"),
    "leaders_moved": ("what it led had moved", "what it led had not moved"),
    "controller_moved": ("another broker was the controller", "no other broker was the controller"),
    "coordinator_moved": ("another broker was the coordinator", "no other broker was the coordinator"),
    "came_by": ("it was caught at its step", "no request or response of its step came by"),
    "controller_changed": ("the controller changed", "the controller stayed"),
    "isr_full": ("every replica was in its ISR", "some replica was not in its ISR"),
    "links_clear": ("nothing of it was left on the links", "something of it was left on the links"),
    "link_clear": ("nothing of it was left on the link", "something of it was left on the link"),
    "clear": ("nothing of it was left on the link", "something of it was left on the link"),
    "flows_again": ("bytes flowed again", "no bytes flowed"),
    "connects_again": ("new connections were served", "no new connection was served"),
    "toxic_in_place": ("the proxy had the cut in place", "the proxy did not have the cut in place"),
    "quiet": ("nothing got through", "something got through"),
    "lossless": ("bytes were held back, not dropped", "bytes were dropped, not held back"),
    "acknowledged_again": ("its producers wrote again", "its producers did not write again"),
    "rejoined": ("its members were in the group again", "its members were not in the group again"),
    "place_taken": ("another one took its place", "no one took its place"),
    "places_taken": ("others took all of their places", "others did not take all of their places"),
    "static": ("static", "dynamic"),
    "in_time": ("in time", "too late"),
    "clean": ("a clean stop", "no clean stop"),
    "damage_found": ("a reader found the damage", "no reader found any damage"),
    "disk_well": ("its disk was well", "its disk was not well"),
    "moved": ("every broker reported these replicas, all in sync", "the replicas did not become these"),
    "removed_data": ("the former replica's data was gone", "the former replica's data was still there"),
    "leader_back": ("the preferred leader led again", "the preferred leader did not lead again"),
    "recreated": ("one was recreated under its name", "none was recreated under its name"),
    "left_isr": ("it was out of the ISR", "it did not leave the ISR"),
    "written_without": ("the others acknowledged without it", "nothing was written without it"),
    "leaderless": ("the partition had no leader", "the partition had a leader all the time"),
    "limited": ("its memory was still limited", "its memory was limited no more"),
    "accepted": ("what was refused was taken again", "what was refused was not taken again"),
}
#: Name -> a text with a place for the value.
_VALUES: Mapping[str, str] = {
    "broker": "broker {}",
    "pid": "process {}",
    "link": "link {}",
    "links": "links {}",
    "direction": "{}s",
    "model": "model: {}",
    "reason": "{}",
    "counters": "counters: {}",
    "latency_ms": "{} ms later",
    "quiet_ms": "watched for {} ms",
    "held_bytes": "{} bytes were held back",
    "dropped_bytes": "{} bytes were dropped",
    "carried_before_bytes": "{} bytes went over it before",
    "asked_bytes": "{} bytes of requests went in",
    "answered_bytes": "{} bytes of responses came out",
    "closed_connections": "{} connections were closed",
    "batches_while_cut": "{} batches reached the log meanwhile",
    "responses_lost": "{} responses were lost",
    "retries": "{} batches were resent",
    "step": "at {}",
    "markers_link": "its markers on link {}",
    "frames": "{} requests or responses of its kind came by",
    "frames_hit": "{} of them were hit",
    "api": "{}",
    "nth": "from number {} on",
    "pings_before": "{} pings were answered before",
    "pings_lost": "{} pings were not answered",
    "pings_elsewhere": "{} pings on other links were answered",
    "pings_again": "{} pings were answered again",
    "expected_ms": "{} ms were to be added",
    "late_ms": "pings were {} ms later",
    "spread_ms": "they differed by {} ms",
    "longest_ms": "the longest wait was {} ms",
    "still_late_ms": "pings were {} ms later afterwards",
    "refused_connections": "{} connections were refused",
    "times_up": "it served {} times in between",
    "sessions_expired": "{} ZooKeeper sessions expired",
    "process": "load process {}",
    "member": "member {}",
    "fenced": "{} of its transactional ids were taken from it",
    "crashed": "{} members crashed",
    "removed": "{} of them were no longer in the group",
    "others": "{} others were in the group",
    "led": "leader of {}",
    "offset": "offset {}",
    "bad_batches": "{} batches had a wrong checksum",
    "lost_bytes": "{} bytes were lost from its disk",
    "lost_files": "{} files were lost",
    "fetched_bytes": "{} bytes of logs were on its disk again",
    "leader_epochs": "{} leader epochs began",
    "isr_changes": "{} changes of an ISR",
    "truncations": "{} logs lost a tail",
    "files_again": "{} of the lost files were there again",
    "verified_bytes": "{} bytes of its logs were verified at the start",
    "disk_error": "its disk failed with {}",
    "failed_calls": "{} calls of its disk failed",
    "delayed_syncs": "{} syncs were delayed",
    "longest_sync_ms": "the longest sync took {} ms",
    "last_sync_ms": "the last sync took {} ms",
    "waited_for_disk_ms": "the broker measured {} ms of waiting for its disk",
    "clock_ahead_ms": "its clock was {} ms ahead",
    "clock_until_then_ms": "until then it was {} ms ahead",
    "dead_after_ms": "after {} ms",
    "records_before": "it had written or read {} records",
    "records_of_others": "{} records of the others afterwards",
    "registrations": "{} registrations followed",
    "taken_percent": "{}% of its time was taken",
    "longest_answer_ms": "the longest answer took {} ms",
    "replicas": "replicas {}",
    "directories_left": "its disk still had {}",
    "copied_bytes": "the new replica had {} bytes",
    "elected": "broker {} to be elected",
    "elections": "{} such elections in the journals",
    "answer": "answered with {}",
    "all_answers": "all answers: {}",
    "ordered_ns": "ordered at {} ns",
    "topics_known": "{} of its topics known",
    "replica_directories": "{} directories of replicas on disks",
    "records_read": "{} records were written and read back",
    "partitions_before": "{} partitions before",
    "partitions_added": "{} added ones known to every broker",
    "stored_bytes": "each of their replicas had {} bytes in sum",
    "key": "setting {}",
    "brokers_agreeing": "{} brokers described that value",
    "closed_segments": "{} segments were closed",
    "full_segments": "{} of them may just have been full",
    "spare_kb": "{} KiB were left to it",
    "halts": "it got no more memory, and halted, {} times",
    "refusal": "a record was refused with {}",
}
#: Name -> the text for one.
_ONE: Mapping[str, str] = {
    "held_bytes": "1 byte was held back",
    "dropped_bytes": "1 byte was dropped",
    "closed_connections": "1 connection was closed",
    "batches_while_cut": "1 batch reached the log meanwhile",
    "responses_lost": "1 response was lost",
    "retries": "1 batch was resent",
    "frames": "1 request or response of its kind came by",
    "frames_hit": "1 of them was hit",
    "pings_before": "1 ping was answered before",
    "pings_lost": "1 ping was not answered",
    "pings_elsewhere": "1 ping on another link was answered",
    "pings_again": "1 ping was answered again",
    "refused_connections": "1 connection was refused",
    "times_up": "it served once in between",
    "sessions_expired": "1 ZooKeeper session expired",
    "fenced": "1 of its transactional ids was taken from it",
    "crashed": "1 member crashed",
    "removed": "1 of them was no longer in the group",
    "others": "1 other was in the group",
    "bad_batches": "1 batch had a wrong checksum",
    "leader_epochs": "1 leader epoch began",
    "isr_changes": "1 change of an ISR",
    "truncations": "1 log lost a tail",
    "lost_bytes": "1 byte was lost from its disk",
    "lost_files": "1 file was lost",
    "files_again": "1 of the lost files was there again",
    "failed_calls": "1 call of its disk failed",
    "delayed_syncs": "1 sync was delayed",
    "halts": "it got no more memory, and halted",
    "registrations": "1 registration followed",
    "elections": "1 such election in the journals",
    "records_read": "1 record was written and read back",
    "partitions_added": "1 added one known to every broker",
    "closed_segments": "1 segment was closed",
    "full_segments": "1 of them may just have been full",
}
#: They name something, and count nothing.
_NUMBERS = frozenset({"broker", "pid", "elected"})
#: Entries of one probe that are shown.
MOST = 40

KNOWN = frozenset({*_FACTS, *_VALUES, "steps"})


def probe_words(probe: Mapping[str, Any]) -> str:
    """What one probe saw, its entries in their order."""
    return "; ".join(_entry(name, value) for name, value in list(probe.items())[:MOST])


def _entry(name: str, value: Any) -> str:
    if name in _FACTS and isinstance(value, bool):
        return _FACTS[name][not value]
    if name == "steps" and isinstance(value, list) and all(isinstance(step, Mapping) for step in value):
        return "; ".join(", ".join(_entry(*each) for each in step.items()) for step in value[:MOST])
    if name in _VALUES:
        told = _VALUES[name].format(value if name in _NUMBERS else _value(value))
        return _ONE.get(name, told) if value == 1 else told
    return f"{name.replace('_', ' ')}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
