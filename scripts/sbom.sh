#!/bin/sh
# Writes one CycloneDX document (JSON) for each program, library and page that we deliver, to target/sbom. They list what is
# delivered, not what builds or tests it. FEATURES=s3,parquet lists the crates of a binary with these features. `make sbom`
# builds the Java agent first, because Maven writes the document of the agent next to its jar.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/target/sbom
tool=$PWD/target/tools/cyclonedx-bom-7.5.0
mkdir -p "$out"

install() { # environment, package
    python3 -m venv --without-pip "$1"
    python3 -m pip --python "$1/bin/python" install --quiet --disable-pip-version-check --root-user-action ignore "$2"
}
npm_sbom() { # folder, type
    (cd "$1" && npm sbom --sbom-format cyclonedx --sbom-type "$2" --omit dev --package-lock-only)
}

cargo xtask sbom ${FEATURES:+--features "$FEATURES"} >"$out/tacho.cdx.json"
cp agent/java/target/tachograph-agent.cdx.json "$out/agent-java.cdx.json"
npm_sbom ui application >"$out/page.cdx.json"
npm_sbom agent/node library >"$out/agent-node.cdx.json"

# A copy of the Python agent is installed into an empty environment, so that the document lists what an installation
# brings, and the sources stay clean.
[ -e "$tool/done" ] || { install "$tool" "cyclonedx-bom==${tool##*-}" && touch "$tool/done"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r agent/python "$work/source"
install "$work/environment" "$work/source"
"$tool/bin/python" -W ignore -m cyclonedx_py environment --pyproject agent/python/pyproject.toml --mc-type library \
    --output-reproducible --short-PURLs --output-file "$out/agent-python.cdx.json" "$work/environment/bin/python"
