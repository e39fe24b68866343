"""Addresses in answers, rewritten so that every client of a foreign cluster stays behind its links (docs/target.md)."""
