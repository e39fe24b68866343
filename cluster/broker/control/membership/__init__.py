"""This broker as a member of its cluster: its session with ZooKeeper, its registration, the queue of its events.

Owns what is true of a broker whether or not it is controller, from joining to leaving in order. Does not own the
election, nor what a controller reads or writes.
"""
