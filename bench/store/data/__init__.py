"""Which values are stored? One module per kind of data; each returns a `Dataset`."""
