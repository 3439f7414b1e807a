#!/bin/sh
# Prints the time and result of each part of `make test`, and what the log of each failed part says about the failure. Parts run side
# by side, so a failure can be thousands of lines before the end of the output.
#
# Usage: scripts/test-failures.sh DIRECTORY, with the file `times` and one file PART.failed for each failed part.
set -eu
logs=$1
# The lines with which cargo, Rust's test harness, Maven, node --test, Playwright, unittest, clippy and make report a failure.
failure='panicked at|^test .* FAILED|^error(\[|:)|^\[ERROR\]|^not ok|✖|^(FAIL|ERROR):|Error: |timed out|\*\*\*'

cat "$logs/times"
for log in "$logs"/*.failed; do
	[ -e "$log" ] || continue
	echo
	echo "==== $(basename "$log" .failed) failed. The lines of its log that name a failure, with two lines after each:"
	grep --line-number --extended-regexp --after-context=2 -- "$failure" "$log" | cut -c1-300 | head -n 80 || true
	echo "==== the last 20 lines of $log:"
	tail -n 20 "$log" | cut -c1-300
done
