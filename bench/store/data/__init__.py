"""The stored values. There is one module per kind of data; each returns a `Dataset`."""
