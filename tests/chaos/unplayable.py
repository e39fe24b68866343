"""Injections that no run can make: a table. Owns no test; ``test_commands`` runs them all (``bad_inputs``)."""

from __future__ import annotations

#: Injections that no run can make, each in a schedule of its own, the arguments beside it, and what the line must hold.
UNPLAYABLE = {
    "unknown": ("fault: kill-leadr", [], ["kill-leadr at 1 s: unknown fault", "did you mean 'kill-leader'?"]),
    "partition": (
        "fault: kill-leader, target: {partition: 99}",
        [],
        ["kill-leader at 1 s: target partition must be an integer from 0 to 5 (there are 6), not 99"],
    ),
    "few": ("fault: reset, target: {partition: 2}", ["--partitions", "2"], ["from 0 to 1 (there are 2), not 2"]),
    "below": ("fault: reset, target: {partition: -1}", [], ["target partition must be an integer from 0", "not -1"]),
    "text": ("fault: reset, target: {partition: two}", [], ["target partition must be an integer", "not 'two'"]),
    "yes": ("fault: reset, target: {partition: yes}", [], ["target partition must be an integer", "not True"]),
    "broker": ("fault: kill-leader, target: {broker: 2}", [], ["target has no 'broker'; it takes partition"]),
    "link": (
        "fault: cut-link, target: {link: b1-b9}",
        [],
        ["cut-link at 1 s: there is no link 'b1-b9' with --brokers 3; use one of b1-b"],
    ),
    "lone": (
        "fault: cut-link, target: {link: b1-b2}",
        ["--brokers", "1", "--replication-factor", "1"],
        ["there is no link 'b1-b2' with --brokers 1; use one of"],
    ),
    "nobody": (
        "fault: cut-link, target: {link: followers}",
        ["--brokers", "1", "--replication-factor", "1"],
        ["link followers: with --brokers 1 there are no followers"],
    ),
    "number": (
        "fault: slow-link, target: {link: 4}",
        [],
        ["there is no link 4 with --brokers 3; use one of producers"],
    ),
    "followers": ("fault: slow-link, target: {link: followers}", [], ["there is no link 'followers'"]),
    "linked": ("fault: reset, target: {link: b1-b2}", [], ["target has no 'link'; it takes partition"]),
    "way": (
        "fault: cut-link, parameters: {direction: both}",
        [],
        ["parameter direction must be request or response, not 'both'"],
    ),
    "lossless": (
        "fault: isolate-broker, parameters: {lossless: 1}",
        [],
        ["isolate-broker at 1 s: parameter lossless must be true or false, not 1"],
    ),
    "loss": ("fault: drop-packets, parameters: {loss: 5}", [], ["loss must be a number above 0 and at most 1, not 5"]),
    "slow": ("fault: slow-link, parameters: {latency_ms: 0}", [], ["latency_ms must be an integer from 1", "not 0"]),
    "parameter": ("fault: kill-leader, parameters: {signal: 9}", [], ["parameters has no 'signal'; it takes none"]),
    "foreign": (
        "fault: pause-zookeeper",
        ["--zookeeper", "host:1"],
        ["pause-zookeeper at 1 s: a ZooKeeper given with --zookeeper is never broken; take it out"],
    ),
    "one": (
        "fault: pause-leader",
        ["--replication-factor", "1"],
        ["pause-leader at 1 s: it needs 2 replicas to take effect, but there is --replication-factor 1; take it out"],
    ),
    "unit": (
        "fault: kill-leader, duration: 3",
        [],
        ["injection 1", "unknown key 'duration'; did you mean 'duration_s'?"],
    ),
}
