"""The office of controller: winning it, holding it, losing it, and what only its holder is asked to do.

Owns when this broker is controller, in which epoch, and the order of a controller's events. Does not own what a
controller does (``controller``).
"""
