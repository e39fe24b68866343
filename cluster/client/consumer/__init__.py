"""consumer: reading by assignment: positions, what to fetch from whom, and what an answer means.

Owns the client side of Fetch and ListOffsets. Does not own connections and metadata (``cluster.client``) nor layouts
(``cluster.protocol``).
"""
