#!/usr/bin/env bash
# On a machine with a GPU: tunes every layer of every weights file of a folder and compares the planner's own choice
# with the tuned plan, both as measured in that run. Prints a row for each layer and batch size, and for how many of
# them the planner was within 25 % of the tuned time.
#
#   test/gpu/tune.sh BURIN WEIGHTS_FOLDER OUT_FOLDER [FILE_GLOB]
#
# Environment: BATCHES (default 1,32), PRECISION (default fp32; another one is part of the packages' names), TUNE
# (plans, default 12), LAYERS (a --layer glob, default all), ARCH (default native). OUT_FOLDER keeps the packages, with
# the evidence in them (burin inspect --tuning).
set -euo pipefail
burin=$1 weights=$2 out=$3 glob=${4:-*}
mkdir -p "$out"
precision=${PRECISION:-fp32} suffix=
[[ $precision == fp32 ]] || suffix=-$precision
failed=0
reports=()
for file in "$weights"/$glob.safetensors; do
  name=$(basename "$file" .safetensors)$suffix
  package=$out/$name.tuned.burin
  options=(--plans "${TUNE:-12}" --batch "${BATCHES:-1,32}" --arch "${ARCH:-native}"
           --precision "$precision")
  [[ -z ${LAYERS:-} ]] || options+=(--layer "$LAYERS")
  echo "== $name"
  start=$SECONDS
  if ! "$burin" tune "$file" -o "$package" "${options[@]}" > "$out/$name.tune.txt"; then
    failed=1
    continue
  fi
  echo "tuned and compiled in $((SECONDS - start)) s"
  "$burin" inspect "$package" --json > "$out/$name.tune.json"
  reports+=("$out/$name.tune.json")
done
[[ ${#reports[@]} == 0 ]] || python3 "$(dirname "$0")/tune_table.py" "${reports[@]}"
exit "$failed"
