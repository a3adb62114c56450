#include "compiler/execute/reused_memory.h"

#include <cstdlib>  // which says whether it is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace burin {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kAtOnce = 64 << 20;  // bytes that are asked for beside what is needed
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
  mallopt(M_TOP_PAD, kAtOnce);
#endif
}

}  // namespace burin
