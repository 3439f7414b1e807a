"""The stored values. One module per kind of data; each returns a `Dataset`."""
