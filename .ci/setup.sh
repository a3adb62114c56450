#!/usr/bin/env bash
# setup.sh [models] [browser]: installs what building and testing burin needs and what is missing: Debian packages by
# apt, and, where no CUDA toolkit is found, the assembler (nvJitLink, ptxas) and NVRTC from Python wheels into .venv of
# the source tree; with `models`, there too, the Python packages that make and run the model zoo; with `browser`, one
# without a window, which opens the pages of burin report. A second run finds everything there and does nothing. Without
# the CUDA pieces burin still builds and passes its tests; packages then hold PTX only. Without the packages for models,
# or the browser, the tests that need them are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  make cmake ninja-build g++ ccache pkg-config git ca-certificates
  clang-19 lld-19 llvm-19-dev libclang-rt-19-dev clang-format-19
  libfmt-dev libcli11-dev nlohmann-json3-dev libzip-dev zlib1g-dev libzstd-dev libseccomp-dev libonnx-dev libprotobuf-dev
  protobuf-compiler catch2
  python3 python3-venv xz-utils unzip
)
browsers=(chromium-headless-shell chromium chromium-browser google-chrome)  # test/cli/browser.py looks for the same
wheels=(nvidia-nvjitlink-cu12 nvidia-cuda-nvcc-cu12 nvidia-cuda-nvrtc-cu12)

note() { echo "setup: $*" >&2; }

missing_of() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = "install ok installed" ] || echo "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    note "no apt here: expecting the equivalents of: $*"
    return
  fi
  local missing
  mapfile -t missing < <(missing_of "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      note "these packages are missing and neither root nor sudo is at hand to install them: ${missing[*]}"
      exit 1
    fi
    as_root=(sudo)
  fi
  note "installing ${missing[*]}"
  # The lists may be older than the packages they name, so a failure is tried once more with fresh lists.
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends
                 -o Dpkg::Use-Pty=0 "${missing[@]}")
  "${install[@]}" >/dev/null 2>&1 || { "${as_root[@]}" apt-get update -q && "${install[@]}"; }
}

# True where something that turns PTX into machine code is installed system-wide.
cuda_toolkit_found() {
  command -v ptxas >/dev/null && return 0
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}" "${CUDA_PATH:-/usr/local/cuda}" /usr/local/cuda; do
    [ -x "$folder/bin/ptxas" ] && return 0
    compgen -G "$folder/lib64/libnvJitLink.so*" >/dev/null && return 0
  done
  return 1
}

# install_wheels STAMP pip-arguments: into .venv, once; the stamp there says what was installed.
install_wheels() {
  local stamp=.venv/$1 wanted
  shift
  wanted=$(printf '%s\n' "$@"; if [ "$1" = -r ]; then cat "$2"; fi)
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  note "fetching $* into .venv"
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  { [ -x .venv/bin/pip ] || "$python" -m venv .venv; } &&
    .venv/bin/pip install --quiet --disable-pip-version-check --retries 1 --timeout 30 "$@" &&
    echo "$wanted" >"$stamp"
}

install_cuda_wheels() {
  cuda_toolkit_found && return 0
  install_wheels cuda-wheels "${wheels[@]}" ||
    note "the CUDA pieces could not be had; packages will hold PTX only, which the driver compiles when it loads them"
}

install_model_packages() {
  install_wheels model-packages -r examples/models/requirements.txt ||
    note "the Python packages for models could not be had; the tests that need them will be skipped"
}

install_browser() {
  local browser
  for browser in "${browsers[@]}"; do
    command -v "$browser" >/dev/null && return 0
  done
  # In a shell of its own: where it fails, the tests are skipped, and nothing else is.
  (install_packages "${browsers[0]}") || note "no browser could be had; the tests of burin report's pages will be skipped"
}

install_packages "${packages[@]}"
install_cuda_wheels
for part in "$@"; do
  case "$part" in
    models) install_model_packages ;;
    browser) install_browser ;;
    *) note "usage: setup.sh [models] [browser]"; exit 2 ;;
  esac
done
