
#include "ir/limits.h"
#include "ir/package/names.h"
#include "test/catch.h"

using namespace burin;

TEST_CASE("package paths are relative and plain") {
  for (const char* good : {"a", "a/b.ptx", "kernels/burin_conv1.sm_90.cubin", "..a/b..", "a b", "\xc3\xa9.f32"}) {
    INFO(good);
    CHECK(is_package_path(good));
  }
  for (const char* bad : {"", "/", "/etc/passwd", "..", "../a", "a/..", "a/../b", ".", "./a", "a/./b", "a//b", "a/",
                          "a\\b", "a\nb", "\x7f", "\xff", "manifest.json"}) {
    INFO(bad);
    CHECK_FALSE(is_package_path(bad));
  }
  CHECK(is_package_path(std::string(kMaxPackagePathBytes, 'a')));
  CHECK_FALSE(is_package_path(std::string(kMaxPackagePathBytes + 1, 'a')));
  CHECK_FALSE(is_package_path(std::string("a\0b", 3)));
}

TEST_CASE("symbols are C identifiers") {
  for (const char* good : {"a", "_", "burin_conv1_b32", "A9"}) CHECK(is_symbol(good));
  for (const char* bad : {"", "9a", "a.b", "a-b", "a b", "\xc3\xa9", "$a"}) CHECK_FALSE(is_symbol(bad));
  CHECK_FALSE(is_symbol(std::string(kMaxSymbolBytes + 1, 'a')));
}
