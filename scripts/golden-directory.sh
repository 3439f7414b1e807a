#!/bin/sh
# Makes the golden directory testdata/directory/NAME, the file testdata/directory/NAME.token with the text of its token, and
# testdata/repository/NAME, a backup repository of the directory: scripts/golden-directory.sh TACHO NAME. TACHO is the binary,
# NAME the date of its build. Run it only for a new name: golden files are never made again (testdata/directory/README.md).
set -eu
tacho=$(realpath "$1")
name=$2
cd "$(dirname "$0")/.."
to=$PWD/testdata/directory/$name
repository=$PWD/testdata/repository/$name
[ ! -e "$to" ] && [ ! -e "$repository" ] || { echo "$name exists" >&2; exit 1; }
cargo build --quiet --package tacho-server --example golden_directory
sender=${CARGO_TARGET_DIR:-$PWD/target}/debug/examples/golden_directory
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
data=$work/data

# The server is killed, so that the newest records stay in the journal.
for part in 1 2; do
    "$tacho" serve --http 127.0.0.1:0 --records 127.0.0.1:0 --data "$data" --selfwatch-seconds 0 \
        >"$work/listening" 2>"$work/log" &
    server=$!
    until grep -q '^listening ' "$work/listening"; do
        kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
        sleep 0.1
    done
    read -r _ http records <"$work/listening"
    "$sender" "${http#http=}" "${records#records=}" "$part"
    kill -KILL "$server"
    wait "$server" || true
done
"$tacho" token add admin --role admin --data "$data" >"$work/token"
find "$data" -name LOCK -delete
rm -f "$data/chunks/RESERVE" "$data/tokens.lock" "$data/audit.log"
"$tacho" check "$data"
mkdir -p testdata/repository
cp -r "$data" "$to"
cp "$work/token" "$to.token"
"$tacho" backup create "$data" "$repository"
rm -f "$repository/LOCK"
rmdir "$repository/incoming" 2>/dev/null || true
