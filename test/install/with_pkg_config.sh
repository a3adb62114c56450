#!/usr/bin/env bash
# with_pkg_config.sh PREFIX SCRATCH PACKAGE CC CXX: builds and runs the consumers with what pkg-config says of the burin
# that is installed in PREFIX.
set -euo pipefail
prefix=$1 scratch=$2 package=$3 cc=$4 cxx=$5
sources=$(dirname "$0")/consumers
library=$(dirname "$(find "$prefix" -name libburin_runtime.so)")
export PKG_CONFIG_PATH=$library/pkgconfig
export LD_LIBRARY_PATH=$library
mkdir -p "$scratch"
pkg-config --atleast-version=0.1 burin
# The words that pkg-config prints are options, each by itself.
read -ra compile <<<"$(pkg-config --cflags burin)"
read -ra link <<<"$(pkg-config --libs burin)"
read -ra link_static <<<"$(pkg-config --libs --static burin)"
link_static=("${link_static[@]/#-lburin_runtime/-l:libburin_runtime.a}")

"$cxx" -std=c++20 "$sources/app.cpp" "${compile[@]}" "${link[@]}" -o "$scratch/app"
"$scratch/app" "$package"
"$cxx" -std=c++20 "$sources/app.cpp" "${compile[@]}" "${link_static[@]}" -o "$scratch/app_static"
LD_LIBRARY_PATH= "$scratch/app_static" "$package"
"$cc" -std=c11 "$sources/app.c" "${compile[@]}" "${link[@]}" -o "$scratch/app_c"
"$scratch/app_c"
"$cc" -std=c11 "$sources/app.c" "${compile[@]}" "${link_static[@]}" -o "$scratch/app_c_static"
LD_LIBRARY_PATH= "$scratch/app_c_static"
