#!/usr/bin/env bash
# with_packages.sh SCRIPT [arguments]: runs a Python script with the packages of examples/models/requirements.txt: those
# of .venv in the source tree, or of $BURIN_MODELS_PYTHON. Where they are missing it says so and exits as a skipped test.
set -euo pipefail
skipped=77
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
python=${BURIN_MODELS_PYTHON:-$source_tree/.venv/bin/python}
if ! reason=$("$python" -c 'import numpy, onnx, onnxruntime, safetensors' 2>&1); then
  echo "SKIPPED: the packages for models are missing (.ci/setup.sh models installs them): ${reason##*$'\n'}"
  exit $skipped
fi
# Tests run side by side; one must not take all processors, nor leave compiled files in the source tree.
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec "$python" "$@"
