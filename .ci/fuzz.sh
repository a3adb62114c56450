#!/usr/bin/env bash
# fuzz.sh BUILD_FOLDER SECONDS: runs every fuzz target of a build for so long, as many at once as there are processors.
# New inputs are kept under BUILD_FOLDER/fuzz/; an input that crashes a target is left there and named.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 seconds=$2

mapfile -t targets < <(find "$build" -maxdepth 1 -type f -executable -name 'fuzz_*' | sort)
[ "${#targets[@]}" -gt 0 ] || { echo "fuzz: $build has no fuzz targets" >&2; exit 1; }

run_target() {
  local target=$1 seconds=$2 build=$3 name work
  name=$(basename "$target")
  work=$build/fuzz/$name
  mkdir -p "$work/found"
  local seeds=()
  [ -d "test/fuzz/seeds/${name#fuzz_}" ] && seeds=("test/fuzz/seeds/${name#fuzz_}")
  if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$work/" "$work/found" "${seeds[@]}" >"$work/log" 2>&1; then
    echo "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") inputs, no fault"
  else
    tail -n 60 "$work/log"
    echo "fuzz: $name: FAULT; the input lies in $work"
    return 1
  fi
}
export -f run_target
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run_target "$@"' _ {} "$seconds" "$build"
