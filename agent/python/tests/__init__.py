"""Tests of the agent. Run from `agent/python`:

python3 -m unittest discover --quiet --start-directory tests --top-level-directory .
"""
