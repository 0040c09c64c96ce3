#!/usr/bin/env bash
# Fails if clang-format would change anything. `scripts/check_format.sh --fix` lets it.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(--dry-run --Werror)
[ "${1:-}" = "--fix" ] && mode=(-i)
git ls-files -co --exclude-standard 'src/*.h' 'src/*.cpp' 'tests/*.h' 'tests/*.cpp' | xargs clang-format-19 "${mode[@]}"
