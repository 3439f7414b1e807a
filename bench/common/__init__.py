"""What benchmarks of this project share: processes and what they cost, the machine, tables, packages, HTTP."""
