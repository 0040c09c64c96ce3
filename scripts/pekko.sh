#!/usr/bin/env bash
# Brings Apache Pekko with its DynamoDB journal into build/pekko, for tests/journal/test_pekko.py, and compiles what the
# test needs of it: lib/ from Maven, once for each pom.xml; classes/ whenever a source is newer.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
sources=$root/tests/journal/pekko
folder=$root/build/pekko

fetch() {
  cmp -s "$sources/pom.xml" "$folder/pom.xml" && return
  echo "Fetching Apache Pekko with Maven"
  rm -rf "$folder"
  mkdir -p "$folder"
  local attempt
  for attempt in 1 2 3; do
    if mvn -q -B -f "$sources/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" >"$folder/log" 2>&1; then
      cp "$sources/pom.xml" "$folder/"
      return
    fi
    echo "Maven could not bring it (attempt $attempt)" >&2
  done
  cat "$folder/log" >&2
  exit 1
}

compile() {
  [ -d "$folder/classes" ] && [ -z "$(find "$sources" -newer "$folder/classes")" ] && return
  rm -rf "$folder/classes" "$folder/compiling"
  javac -Xlint:all -Werror -d "$folder/compiling" -cp "$folder/lib/*" "$sources"/*.java
  cp "$sources/application.conf" "$folder/compiling/"
  mv "$folder/compiling" "$folder/classes"
}

fetch
compile
