"""Many calls: the workload `calls` of `make bench-scale`.

generator.py runs the generator of calls (`crates/lab/src/calls`), systems.py has the systems that take its calls, questions.py
the questions, work.py the order of the run, report.py tables and aims. worker.py runs inside the environment of the peers.
"""
