"""Tests of the agent. Run from `agent/python`:

python3 -m unittest discover --quiet --start-directory tests --top-level-directory .
"""

import signal

# A shell that starts a command in the background lets it ignore SIGINT, and programs inherit that. Programs that the tests start
# must receive SIGINT in any case. Therefore this process sets a handler, which becomes the default action in its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
