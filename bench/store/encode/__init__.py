"""Encodes a dataset for the protocols. One module per protocol; each yields the bodies of requests."""
