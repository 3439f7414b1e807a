"""Run from the root: `python3 -m unittest discover -s experiments/overhead/tests -t .`. `test_smoke` needs Java,
Maven and the agent."""
