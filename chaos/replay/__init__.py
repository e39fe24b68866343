"""Replays: what really happened in a run, as a schedule that plays it again, and how punctually that was done."""
