"""The group coordinator of a broker, over the wire and by itself."""
