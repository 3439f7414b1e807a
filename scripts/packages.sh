#!/bin/sh
# Installs the programs and Python libraries that the tests use, from Debian packages. If it cannot, it prints the missing
# packages. The toolchains of Rust, Java and Node.js must be installed already.
set -eu

missing=""
want() { # command, package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
want_file() { # glob, package
    ls $1 >/dev/null 2>&1 || missing="$missing $2"
}

for tool in cargo java mvn node npm; do
    command -v "$tool" >/dev/null 2>&1 || { echo "error: $tool is needed: install the $tool toolchain" >&2; exit 1; }
done
want python3 python3
python3 -m pip --version >/dev/null 2>&1 || missing="$missing python3-pip" # for agent/python/tests/requirements.txt, and moto
want chromium chromium
want prometheus prometheus
want openssl openssl
want_file '/usr/lib/postgresql/*/bin/postgres' postgresql
want_file /usr/lib/python3/dist-packages/psycopg2/__init__.py python3-psycopg2
want_file /usr/lib/python3/dist-packages/psycopg/__init__.py python3-psycopg

[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing$missing"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "error: the tests need these packages:$missing (on Debian: sudo apt-get install$missing)" >&2
    exit 1
fi
