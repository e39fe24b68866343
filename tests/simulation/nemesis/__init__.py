"""Nemesis: what goes wrong in a simulation. ``base`` is the frame, ``catalogue`` lists the moves by name.

Owns nothing itself: import from the modules.
"""
