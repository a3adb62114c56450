#!/usr/bin/env bash
# On a machine with a GPU: makes the layer sets of docs/performance.md, compiles them, verifies every kernel against
# float64, measures it beside cuDNN and writes OUT_FOLDER/table.md.
#
#   test/gpu/layers.sh BURIN OUT_FOLDER ITEM...
#
# An item is WHAT:SPARSITY:BATCHES[:LAYER_GLOB]. WHAT is a set of make_layers.py or a .safetensors file, whose weights
# are pruned further; SPARSITY - leaves such a file as it is:
#
#   layers.sh build/burin out anchors:0.91:1,32 vgg:0.90:1,32 dong:0.90:64 weights/resnet50.safetensors:0.95:1,32 \
#     'weights/mobilenet.safetensors:0.95:1,32:*pointwise*' weights/alexnet.safetensors:-:1,128
#
# Environment: STEPS (default "make compile verify bench table"), PRECISION (default fp32; another one is part of the
# packages' names), TOGETHER: packages compiled at once (default 2; each takes a thread for each processor),
# BENCH_OPTIONS (default "--baseline cudnn").
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
burin=$1 out=$2
shift 2
steps=" ${STEPS:-make compile verify bench table} "
precision=${PRECISION:-fp32}
suffix=
[[ $precision == fp32 ]] || suffix=-$precision
read -r -a bench_options <<< "${BENCH_OPTIONS:---baseline cudnn}"
mkdir -p "$out"
failed=0
names=()
: > "$out/compile.list"

for item in "$@"; do
  IFS=: read -r what sparsity batches glob <<< "$item"
  if [[ -z $batches ]]; then
    echo "layers.sh: error: '$item' is not WHAT:SPARSITY:BATCHES[:LAYER_GLOB]" >&2
    exit 2
  fi
  glob=${glob:-*}
  name=$(basename "$what" .safetensors)
  [[ $sparsity == - ]] || name+=-$sparsity
  [[ $glob == '*' ]] || name+=-$(tr -c 'A-Za-z0-9.\n' _ <<< "$glob")
  names+=("$name")
  if [[ $steps == *" make "* ]]; then
    source=(--set "$what")
    [[ $what != *.safetensors ]] || source=(--from "$what")
    if [[ $sparsity == - ]]; then
      cp "$what" "$out/$name.safetensors"
    else
      python3 "$here/make_layers.py" "$out/$name.safetensors" "${source[@]}" --sparsity "$sparsity" --layer "$glob"
    fi
  fi
  # A file that is taken as it is still has all its layers.
  printf '%s\0%s\0%s\0' "$name" "$batches" "$glob" >> "$out/compile.list"
done

compile_one() {
  local name=$1 start=$SECONDS
  local package=$name$suffix
  "$burin" compile "$out/$name.safetensors" -o "$out/$package.burin" --batch "$2" --layer "$3" --arch sm_90 \
    --precision "$precision" > "$out/$package.compile.txt" 2>&1 ||
    { cat "$out/$package.compile.txt" >&2; rm -f "$out/$package.burin"; return 1; }
  echo "$package: $(tail -n 1 "$out/$package.compile.txt"), $((SECONDS - start)) s"
}
export -f compile_one
export burin out precision suffix
if [[ $steps == *" compile "* ]]; then
  xargs -0 -a "$out/compile.list" -P "${TOGETHER:-2}" -n 3 bash -c 'compile_one "$@"' _ || failed=1
fi

tables=()
for weights in "${names[@]}"; do
  name=$weights$suffix
  package=$out/$name.burin
  [[ -f $package ]] || continue
  if [[ $steps == *" verify "* ]]; then
    "$burin" verify "$package" --against "$out/$weights.safetensors" --device cuda:0 > "$out/$name.verify.txt" || failed=1
    echo "$name: $(tail -n 1 "$out/$name.verify.txt")"
  fi
  if [[ $steps == *" bench "* ]]; then
    rm -f "$out/$name.bench.json"
    "$burin" inspect "$package" > "$out/$name.inspect.txt"
    "$burin" bench "$package" "${bench_options[@]}" --json "$out/$name.bench.json" > "$out/$name.bench.txt" || failed=1
    cat "$out/$name.bench.txt"
  fi
  [[ ! -f $out/$name.bench.json ]] || tables+=("$out/$name.bench.json")
done
if [[ $steps == *" table "* && ${#tables[@]} -gt 0 ]]; then
  python3 "$here/table.py" "${tables[@]}" > "$out/table.md"
  cat "$out/table.md"
fi
exit "$failed"
