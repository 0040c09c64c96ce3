#!/usr/bin/env bash
# Runs every fuzzer for the given number of seconds, two at a time; stops at the first crash.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
corpus=build/fuzz/corpus
run_one() {
  local name=$1 seeds=tests/fuzz/seeds/expressions
  case $name in wire_json | answer_json | statement | smtp_session | mime | template | dsn | ses | message_schema | user_token) seeds=tests/fuzz/seeds/$name ;; esac
  mkdir -p "$corpus/$name"
  "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" "$corpus/$name" "$seeds" >"build/fuzz/$name.log" 2>&1 \
    || { echo "fuzz_$name failed; see build/fuzz/$name.log"; tail -40 "build/fuzz/$name.log"; return 1; }
  echo "fuzz_$name: $(grep -o 'number_of_executed_units: *[0-9]*' "build/fuzz/$name.log" | grep -o '[0-9]*$') runs, clean"
}
export -f run_one
export seconds corpus
printf '%s\n' wire_json answer_json condition update projection key_condition statement http_head url smtp_session mime template dsn ses message_schema user_token | xargs -P2 -I{} bash -c 'run_one {}'
