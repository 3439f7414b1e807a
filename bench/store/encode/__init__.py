"""How does a dataset look on the wire of a system? One module per protocol; each yields the bodies of requests."""
