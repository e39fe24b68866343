"""Reads, judges and writes histories of client operations in the form of Jepsen's kafka workload.

Owns everything from such a file to its verdict. The verdict rests only on what clients saw. It has the same form as the
verdict of a run (``verifier.verdict``), but no check is shared, since a run has logs and these histories do not.
Everything runs in NumPy on one machine, without Spark.
"""
