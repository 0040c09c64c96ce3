#!/usr/bin/env bash
# Builds MailHog and Mailpit for ./bench mail, where Go is at hand. What cannot be built is left out, and said so.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=$PWD/build/bench/peers
mkdir -p "$peers"
command -v go >/dev/null || { echo "There is no Go: maildev stands in for MailHog and Mailpit"; exit 0; }
build() {
  local name=$1 module=$2
  [ -x "$peers/$name" ] && return
  echo "Building $name"
  GOBIN=$peers GOFLAGS=-mod=mod go install "$module" >"$peers/$name.log" 2>&1 || echo "$name could not be built; see $peers/$name.log"
}
build MailHog github.com/mailhog/MailHog@v1.0.1
build mailpit github.com/axllent/mailpit@v1.30.5
exit 0
