#!/usr/bin/env bash
# On a machine with a GPU and cuDNN: layers at rising shares of zeros, tuned with calls of cuDNN and cuBLASLt among the
# candidates (conv_cudnn, conv_cublas), verified on the GPU, and measured beside the best that cuDNN does in either layout.
# Prints, for each layer, share and batch, what was chosen, burin's best candidate and that of each library, the baseline
# and its time over the chosen one's.
#
#   test/gpu/dense.sh BURIN OUT_FOLDER [LAYER_GLOB]
#
# Environment: SETS (default anchors), ZEROS (default "0 0.5 0.8 0.9"), BATCHES (default 1,32), PRECISIONS (default "fp32
# tf32"), TUNE (plans, default 6), BUDGET (default 10m, of each package), OPTIONS (more of burin tune: "--layout n8c8hw"),
# BURIN_CUDNN and BURIN_CUBLASLT (the libraries, where they are not on the loader's path). OUT_FOLDER keeps the packages,
# with the evidence in them (burin inspect --tuning).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
burin=$1 out=$2 glob=${3:-*}
mkdir -p "$out"
failed=0
reports=()
for set in ${SETS:-anchors}; do
  for zeros in ${ZEROS:-0 0.5 0.8 0.9}; do
    weights=$out/$set-$zeros.safetensors
    python3 "$here/make_layers.py" "$weights" --set "$set" --sparsity "$zeros" --layer "$glob"
    for precision in ${PRECISIONS:-fp32 tf32}; do
      name=$set-$zeros-$precision
      package=$out/$name.burin
      start=$SECONDS
      if ! "$burin" tune "$weights" -o "$package" --plans "${TUNE:-6}" --budget "${BUDGET:-10m}" --no-cache ${OPTIONS:-} \
        --batch "${BATCHES:-1,32}" --arch native --precision "$precision" > "$out/$name.tune.txt" 2> "$out/$name.notes.txt"; then
        tail -n 3 "$out/$name.notes.txt" >&2
        failed=1
        continue
      fi
      echo "$name: tuned and compiled in $((SECONDS - start)) s"
      "$burin" verify "$package" --against "$weights" --device cuda:0 > "$out/$name.verify.txt" 2>> "$out/$name.notes.txt" ||
        failed=1
      echo "$name: $(tail -n 1 "$out/$name.verify.txt")"
      "$burin" inspect "$package" --json > "$out/$name.inspect.json"
      "$burin" bench "$package" --baseline cudnn --json "$out/$name.bench.json" > "$out/$name.bench.txt" \
        2>> "$out/$name.notes.txt" || { failed=1; continue; }
      reports+=("$out/$name")
    done
  done
done
[[ ${#reports[@]} == 0 ]] || python3 "$here/dense_table.py" "${reports[@]}" | tee "$out/table.md"
exit "$failed"
