"""Tests of the agent. Run from `agent/python`:

python3 -m unittest discover --quiet --start-directory tests --top-level-directory .
"""

import signal

# A command that a shell starts in the background ignores SIGINT, and so do its children. Programs that the tests start must
# receive SIGINT. So this process sets a handler, which becomes the default action in its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
