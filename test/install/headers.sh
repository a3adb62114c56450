#!/usr/bin/env bash
# headers.sh PREFIX CC CXX: every installed header compiles by itself, with nothing but the prefix on the include path.
set -euo pipefail
include=$1/include cc=$2 cxx=$3
cd "$include"
mapfile -t headers < <(find burin -name '*.h' -o -name '*.hpp')
[ "${#headers[@]}" -gt 10 ] || { echo "only ${#headers[@]} headers are installed" >&2; exit 1; }
{
  for header in "${headers[@]}"; do echo "#include <$header>"; done
} | "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I. -x c++ -
for header in "${headers[@]}"; do
  case $header in
    */runtime.h | */export.h) echo "#include <$header>" | "$cc" -std=c11 -Wall -Wextra -Werror -fsyntax-only -I. -x c - ;;
  esac
done
