#!/bin/sh
# Prints what the log of each failed part of `make test` says about the failure, the time and result of each part, and the names of the
# failed tests. Parts run side by side, so a failure can be thousands of lines before the end of the output. The names are last,
# because some services show only the end.
#
# Usage: scripts/test-failures.sh DIRECTORY, with the file `times` and one file PART.failed for each failed part.
set -eu
logs=$1
# The lines with which cargo, Rust's test harness, Maven, node --test, Playwright, unittest, clippy and make report a failure.
failure='panicked at|^test .* FAILED|^error(\[|:)|^\[ERROR\]|^not ok|✖|^(FAIL|ERROR):|Error: |timed out|\*\*\*'
# The lines that name one failed test. The third is Maven's summary, which includes the line and the reason.
name='^test .* FAILED|<<< (FAILURE|ERROR)!$|^\[ERROR\] +[A-Z][A-Za-z]+\.[A-Za-z]+.*:[0-9]+|^not ok|^ *✖ |^ +[0-9]+\) |^(FAIL|ERROR):'

for log in "$logs"/*.failed; do
	[ -e "$log" ] || continue
	echo
	echo "==== $(basename "$log" .failed) failed. The lines of its log that name a failure, with two lines after each:"
	grep --line-number --extended-regexp --after-context=2 -- "$failure" "$log" | cut -c1-300 | head -n 80 || true
	echo "==== the last 20 lines of $log:"
	tail -n 20 "$log" | cut -c1-300
done
echo
cat "$logs/times"
for log in "$logs"/*.failed; do
	[ -e "$log" ] || continue
	echo "$(basename "$log" .failed): $(grep --count --extended-regexp -- "$name" "$log" || true) lines that name failed tests"
	grep --extended-regexp -- "$name" "$log" | cut -c1-240 | head -n 8 || true
done
