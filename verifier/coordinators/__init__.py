"""The topics that brokers make for their coordinators, as evidence: which there are, and what their replicas hold.

``topics`` has their names and what the run says about them, ``logs`` which partitions are there and can be read, and
``internal_replicas`` their replicas as they are compared with each other. The topic that a group writes to is treated
in the same way. Does not own what the records mean (``verifier.transactions``, ``verifier.groups``); judges nothing.
"""
