// Tests of very many cases take every so-manieth of them, and all where BURIN_EVERY_CASE is set.
#pragma once

#include <cstdlib>

namespace burin_test {

inline bool is_taken(int number, int of_so_many) {
  static const bool takes_all = std::getenv("BURIN_EVERY_CASE") != nullptr;
  return takes_all || number % of_so_many == 0;
}

}  // namespace burin_test
