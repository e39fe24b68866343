"""verifier (room in the making)."""
