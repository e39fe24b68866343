"""One conformance suite for every server of Toxiproxy's API: ours, and the real one where it is at hand."""
