"""loadgen: Locust users that write and read sequenced values, and record what the cluster answered.

Owns workloads, pacing, the recording of histories, the command lines of the load's processes, and the two tools of the
final phase. Only ``users/`` and the locustfile import Locust; everything else works without gevent. Does not own the
history's columns (``verifier.evidence``). Judges nothing.
"""
