"""Encodes a dataset for the protocols. There is one module per protocol; each yields the bodies of requests."""
