"""Assignors: how the leader of a group of consumers divides partitions among its members.

Owns Kafka's four, by the names that consumers agree on: functions of what topics have and members told, which remember
nothing. They do not look at racks. Does not own the group, nor which assignor it chose.
"""
