"""Code that all benchmarks share: processes and their cost, the machine, tables, packages, HTTP."""
