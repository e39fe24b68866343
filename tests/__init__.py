"""All tests, in the rooms of what they test (DEVELOPERS.md says which kinds there are)."""
