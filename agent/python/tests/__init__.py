"""Does the agent do what it says? Run from `agent/python`:

python3 -m unittest discover --quiet --start-directory tests --top-level-directory .
"""
