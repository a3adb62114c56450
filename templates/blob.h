// Embeds a file's bytes in the program: BURIN_BLOB(name, "path"), outside of all namespaces; BURIN_BLOB_TEXT(name) are
// those bytes. Whoever uses it names the file among OBJECT_DEPENDS, and compiles by itself.
#pragma once

#include <string_view>

#define BURIN_BLOB(name, path)                                                                                   \
  __asm__(".section .rodata\n.balign 16\n.globl burin_blob_" #name "_begin\nburin_blob_" #name                   \
          "_begin:\n.incbin \"" path "\"\n.globl burin_blob_" #name "_end\nburin_blob_" #name "_end:\n.text\n"); \
  extern "C" const char burin_blob_##name##_begin[];                                                             \
  extern "C" const char burin_blob_##name##_end[];

#define BURIN_BLOB_TEXT(name) std::string_view(burin_blob_##name##_begin, burin_blob_##name##_end)
