"""Processes: what starts, watches and ends every child of a run, and where Java and ZooKeeper come from.

Owns the Supervisor (which knows nothing of Kafka), Java, the ZooKeeper server and the Topology value. It works on the
operating system's processes, so it lies outside the seams; nothing here runs under simulation.
"""
