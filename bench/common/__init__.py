"""Shared by the project's benchmarks: processes and their cost, the machine, tables, packages, HTTP."""
