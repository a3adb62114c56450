#!/usr/bin/env bash
# test.sh BUILD_FOLDER [--title=NAME] [ctest options]: runs the tests of a build and closes with the line
# "N passed, N failed, N skipped" (with a title before it where one is given).
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
title=
case "${1:-}" in --title=*) title=${1#--title=}; shift ;; esac
results=$build/test-results.xml
rm -f "$results"
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"
# ctest's exit status does not tell a failed test from a run that broke off; the summary judges what ctest wrote.
ctest --test-dir "$build" --output-on-failure --progress --output-junit "$PWD/$results" "$@" || true
[ -s "$results" ] || { echo "error: ctest left no results in $results" >&2; exit 1; }
python3 .ci/summary.py "$results" "$title"
