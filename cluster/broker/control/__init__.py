"""One broker's part in control, in rooms by who speaks; ``control_plane`` wires them.

``membership``: this broker to ZooKeeper. ``office``: whether this broker is controller, and how it is asked when it is.
``controller``: what the controller of one epoch decides, writes and tells. ``links``: what brokers and controller say
to each other. Of these, a room imports those that stand after it in this order: office, controller, links, membership.
"""
