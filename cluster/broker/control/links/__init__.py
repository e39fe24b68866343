"""What brokers and controller say to each other, in both directions: connections, queues, requests and their layouts.

Owns the way of a message and its form. Does not own what is decided, on either side.
"""
