"""Requests that hurt, and how far: each one small and well-formed, against a broker in a process of its own."""
