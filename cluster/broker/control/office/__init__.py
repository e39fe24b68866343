"""The office of controller: winning it, holding it, losing it, and the requests that only its holder serves.

Owns when this broker is controller, in which epoch, and the order of a controller's events. Does not own what a
controller does (``controller``).
"""
