#!/usr/bin/env bash
# On a machine with a GPU: compiles every weights file of a folder, verifies every kernel against float64 and measures
# it beside cuDNN. docs/performance.md holds the results.
#
#   test/gpu/archive.sh BURIN WEIGHTS_FOLDER OUT_FOLDER [FILE_GLOB]
#
# Environment: BATCHES (default 1,32), PRECISION (default fp32; another one is part of the packages' names),
# SANITIZE=NAME runs compute-sanitizer on that file's kernels (batch 1).
set -euo pipefail
burin=$1 weights=$2 out=$3 glob=${4:-*}
batches=${BATCHES:-1,32} precision=${PRECISION:-fp32}
suffix=
[[ $precision == fp32 ]] || suffix=-$precision
mkdir -p "$out"
failed=0
for file in "$weights"/$glob.safetensors; do
  weights_name=$(basename "$file" .safetensors)
  name=$weights_name$suffix
  package=$out/$name.burin
  echo "== $name"
  start=$SECONDS
  "$burin" compile "$file" -o "$package" --batch "$batches" --arch sm_90 --precision "$precision" || { failed=1; continue; }
  echo "compiled in $((SECONDS - start)) s"
  "$burin" inspect "$package" > "$out/$name.inspect.txt"
  "$burin" verify "$package" --against "$file" --device cuda:0 > "$out/$name.verify.txt" || failed=1
  tail -n 1 "$out/$name.verify.txt"
  "$burin" bench "$package" --baseline cudnn --json "$out/$name.bench.json" > "$out/$name.bench.txt" || failed=1
  cat "$out/$name.bench.txt"
  if [[ ${SANITIZE:-} == "$weights_name" ]]; then
    for tool in memcheck racecheck; do
      echo "compute-sanitizer $tool"
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$burin" verify "$package" --against "$file" --device cuda:0 \
        --batch 1 > "$out/$name.$tool.txt" 2>&1 || failed=1
      tail -n 2 "$out/$name.$tool.txt"
    done
  fi
done
exit "$failed"
