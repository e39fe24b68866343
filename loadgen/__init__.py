"""loadgen: Locust users that write and read sequenced values and record what they were told.

Owns workload, pacing, the recording of histories, the command lines of the load's processes, and the two tools of the
final phase. ``users/`` and the locustfile alone import Locust; everything else imports without gevent. Does not own
the history's columns (``verifier.evidence``) nor any judgment.
"""
