"""How does the store compare with its peers on space, write cost and read time?

Run from the root of the repository: `python3 -m bench.store --help`. The README beside this file is the map.
"""
