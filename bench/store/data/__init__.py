"""The stored values: one module per kind of data."""
