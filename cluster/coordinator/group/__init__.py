"""The classic group coordinator, pure: members and generations of groups, and the offsets that they commit.

Owns every decision and the state that decisions need. Does not own sockets, the log, the clock nor timers: the shell
tells what arrived, what time it is and which append succeeded, and carries out what each decision says. In a broker
that is ``cluster.broker.groups`` (docs/groups.md).
"""
