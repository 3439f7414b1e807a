"""Encodes a dataset as bodies of requests: one module per protocol."""
