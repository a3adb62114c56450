#!/usr/bin/env bash
# make_all.sh FOLDER [options of make.py]: writes all networks of the zoo into FOLDER and, where $BURIN_SHARED (default
# ../shared) holds the archive of pruned weights, those with real weights beside them.
set -euo pipefail
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
shift
python=$source_tree/.venv/bin/python
archive=${BURIN_SHARED:-$source_tree/../shared}/data/pruned-weights.tar.xz
"$python" "$source_tree/examples/models/make.py" --out "$out" "$@"
if [ ! -f "$archive" ]; then
  echo "$archive is not there: no models with real weights"
  exit
fi
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar -xJf "$archive" -C "$unpacked"
"$python" "$source_tree/examples/models/make.py" --out "$out" --real "$unpacked"
