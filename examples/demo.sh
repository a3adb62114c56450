#!/usr/bin/env bash
# A first look: makes a small pruned network, compiles it, shows what was compiled and verifies it - on the GPU where
# there is one, else on the host executor. Run it through `make demo`, which builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/demo
mkdir -p "$out"

step() {
  echo
  echo "\$ $*"
  "$@"
}

step python3 examples/make_pruned_network.py "$out/small.safetensors"
step build/burin compile "$out/small.safetensors" -o "$out/small.burin" --dump-dir "$out/stages"
step build/burin inspect "$out/small.burin"
step build/burin verify "$out/small.burin" --against "$out/small.safetensors" --seed 1

cat <<END

Where to look next
  $out/stages/      each layer's stages, from its shape to the PTX, one file each
  $out/small.burin  the package, a zip file: unzip -l $out/small.burin
  examples/               C++ and C programs that load a package and launch its kernels
  docs/cli.md             every command and option
  docs/pipeline.md        how a layer becomes a kernel
  build/burin doctor      what this machine has and what is missing for what
END
