#!/usr/bin/env bash
# On a machine with a GPU: compiles one layer with many plans and measures each. Reads lines "FILE LAYER BATCH PLAN"
# (PLAN as for --plan, or "-" for the planner's own) and prints a line per plan: cold and warm medians, the model's time.
#
#   test/gpu/sweep.sh BURIN WEIGHTS_FOLDER WORK_FOLDER < plans.txt
set -euo pipefail
burin=$1 weights=$2 work=$3
mkdir -p "$work"
compile_one() {
  local index=$1 file=$2 layer=$3 batch=$4 plan=$5
  local options=()
  [[ $plan == - ]] || options=(--plan "$plan")
  "$burin" compile "$weights/$file.safetensors" --layer "$layer" --batch "$batch" --arch sm_90 --jobs 1 \
    "${options[@]}" -o "$work/$index.burin" > "$work/$index.log" 2>&1 || true
}
export -f compile_one
export burin weights work
cat -n > "$work/plans.txt"
xargs -a "$work/plans.txt" -P "$(nproc)" -L 1 bash -c 'compile_one "$@"' _
while read -r index file layer batch plan; do
  if [[ ! -f $work/$index.burin ]]; then
    printf '%-14s %3s %-60s %s\n' "$layer" "$batch" "$plan" "$(tail -n 1 "$work/$index.log")"
    continue
  fi
  "$burin" bench "$work/$index.burin" --samples 30 --json "$work/$index.json" > /dev/null 2> "$work/$index.log" ||
    { printf '%-14s %3s %-60s %s\n' "$layer" "$batch" "$plan" "$(tail -n 1 "$work/$index.log")"; continue; }
  python3 - "$work/$index.json" "$layer" "$batch" "$plan" <<'PY'
import json, sys
kernel = json.load(open(sys.argv[1]))["rows"][0]
print("%-14s %3s %-60s warm %7.2f cold %7.2f model %7.2f" % (sys.argv[2], sys.argv[3], sys.argv[4],
      kernel["warm"]["median_us"], kernel["cold"]["median_us"], kernel["predicted_us"]))
PY
done < "$work/plans.txt"
