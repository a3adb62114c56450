#include <catch2/catch.hpp>

#include "ir/limits.h"
#include "ir/package/names.h"

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

TEST_CASE("architecture names") {
  for (const char* good : {"sm_75", "sm_90", "sm_90a", "sm_100", "compute_80"}) CHECK(is_arch_name(good));
  for (const char* bad :
       {"", "sm", "sm_", "_90", "sm_a", "sm_9x0", "SM_90", "sm_90ab", "sm_90 ", "sm_11111111111111"}) {
    INFO(bad);
    CHECK_FALSE(is_arch_name(bad));
  }
}

TEST_CASE("UTF-8 is checked to the letter") {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(is_utf8(good));
  }
  // lone continuation, overlong forms, surrogate, beyond U+10FFFF, cut short
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x90\x80", "a\xff"}) {
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("printable cuts and cleans what messages show") {
  CHECK(printable("plain \xc3\xa9") == "plain \xc3\xa9");
  CHECK(printable("a\x1b[31m\n\xff") == "a?[31m??");
  CHECK(printable(std::string(100, 'x')) == std::string(80, 'x') + "...");
}
