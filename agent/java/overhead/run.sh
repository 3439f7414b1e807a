#!/usr/bin/env bash
# What does watching cost? Builds the agent, fetches Kieker by Maven, measures both in turn; a table on standard output,
# raw figures in bench-results/ of the folder it is called from. Arguments are those of overhead.jar (--help).
set -euo pipefail
java_dir="$(cd "$(dirname "$0")/.." && pwd)"
kieker_version=2.0.2

mvn -q -B -f "$java_dir" -DskipTests package
kieker_dir="$java_dir/overhead/target/kieker"
kieker="$kieker_dir/kieker-$kieker_version-bytebuddy.jar"
if [ ! -f "$kieker" ]; then
  mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="net.kieker-monitoring:kieker:$kieker_version:jar:bytebuddy" -DoutputDirectory="$kieker_dir"
fi
exec java -jar "$java_dir/overhead/target/overhead.jar" \
  --agent "$java_dir/target/tachograph-agent.jar" --kieker "$kieker" "$@"
