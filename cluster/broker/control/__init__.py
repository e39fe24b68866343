"""One broker's part in control: its session and registration, the controller role, and what it asks the controller.

``control_plane.ControlPlane`` is the whole; ``metadata_cache`` is what the broker knows of the cluster.
"""
