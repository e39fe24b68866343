"""What the harness itself saw and did, independently of any broker: who led when, and which faults bit.

``leaderships`` says what follows from the conductor's looks at leaders, ``effectiveness`` reads its record of faults,
and ``unclean_orders`` has the unclean elections that faults ordered. ``witness`` puts them together, with the limits
that excuses go by. Owns neither the events that follow (``verifier.excuses``) nor what a fault that did not bite means
for the verdict (``verifier.completeness``).
"""
