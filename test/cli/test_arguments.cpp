
#include "compiler/cli/arguments.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/execute/executor.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "test/catch.h"

using namespace burin;

namespace {

ErrorKind kind_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  FAIL("no error");
  return ErrorKind::internal;
}

}  // namespace

TEST_CASE("batches_are_parsed") {
  CHECK(parse_batches("1") == std::vector<int>{1});
  CHECK(parse_batches("1,32,7") == std::vector<int>{1, 32, 7});
  CHECK(parse_batches("4,4,1,4") == std::vector<int>{4, 1});
  const BatchList list = parse_batch_list("64,1..8,12..32,1");
  CHECK(list.sizes == std::vector<int>{64, 1});
  REQUIRE(list.spans.size() == 2);
  CHECK((list.spans[0].first == 1 && list.spans[0].last == 8));
  CHECK((list.spans[1].first == 12 && list.spans[1].last == 32));
  CHECK(parse_batch_list("1..1").sizes.empty());
  for (const char* text : {"..", "1..", "..8", "8..1", "0..4", "1...4", "1..x", "1..2..3", "1..9999999"}) {
    INFO(text);
    CHECK(kind_of([&] { parse_batch_list(text); }) == ErrorKind::usage);
  }
}

TEST_CASE("bad_batches_are_usage_errors") {
  for (const char* text : {"", "0", "-1", "1,", ",1", "x", "1x", "1.5", "99999999999", "1048577"}) {
    INFO(text);
    CHECK(kind_of([&] { parse_batches(text); }) == ErrorKind::usage);
  }
}

TEST_CASE("choices_name_the_option_the_value_and_the_nearest") {
  CHECK_NOTHROW(check_choice("--stop-after", "plan", {"layer", "plan"}));
  CHECK_THROWS_WITH(check_choice("--stop-after", "pln", {"layer", "plan"}),
                    "--stop-after 'pln' is not one of layer, plan; did you mean 'plan'?");
}

TEST_CASE("devices_are_parsed") {
  CHECK(choose_device("host").host);
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda0", "cuda:1x", "Host"}) {
    INFO(text);
    CHECK(kind_of([&] { choose_device(text); }) == ErrorKind::usage);
  }
}

TEST_CASE("sizes_of_other_forms") {
  InspectRow row;
  KernelLayer& layer = row.kernel.layer.emplace();
  layer.shape.in_channels = 4;
  layer.shape.out_channels = 8;
  layer.shape.kernel_h = layer.shape.kernel_w = 3;
  layer.nonzeros = 10;
  row.kernel.provider = kBakedProvider;
  CHECK(row.forms().dense_bytes == 8 * 4 * 9 * 4);
  CHECK(row.forms().csr_bytes == 10 * 8 + 9 * 4);
  row.kernel.precision = "fp16";
  CHECK(row.forms().dense_bytes == 8 * 4 * 9 * 2);
  CHECK(row.forms().csr_bytes == 10 * 6 + 9 * 4);
  CHECK(row.sparsity() == Approx(1.0 - 10.0 / 288.0));
}
