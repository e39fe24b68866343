"""When too few replicas of a partition were in sync, and what clients were told meanwhile.

``too_few`` finds these times in the leaders' journals and in what the conductor saw; ``in_sync_checks`` asks the
checks, which are in ``verifier/checks``. Owns no check.
"""
