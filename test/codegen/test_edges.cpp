// Every edge case, planned by the planner, on the host executor.

#include <set>

#include "test/catch.h"
#include "test/codegen/edge_cases.h"
#include "test/codegen/host_check.h"

using namespace burin_test;

namespace {

// For the batch it names; a plan also serves every other batch.
void check_edge(const char* name) {
  const EdgeCase& edge = edge_case(name);
  const burin::ConvLayer layer = edge.make_layer();
  REQUIRE(burin::verify(layer).empty());
  CHECK(check_planned_on_host(layer, edge.batch, {edge.batch}) == "");
}

}  // namespace

#define EDGE_CASE(name, batch, layer) \
  TEST_CASE("edge: " #name) { check_edge(#name); }
#include "test/codegen/edge_cases.def"
#undef EDGE_CASE

TEST_CASE("edge cases have names of their own") {
  std::set<std::string_view> names;
  for (const EdgeCase& edge : edge_cases()) {
    CHECK(names.insert(edge.name).second);
    CHECK(edge.make_layer().name == edge.name);
  }
}

TEST_CASE("edge: a plan for one image runs other batches") {
  for (const char* name : {"3x3", "stride_2", "depthwise", "bias_residual_silu", "one_pixel", "full_dense"}) {
    CHECK(check_planned_on_host(edge_case(name).make_layer(), 1, {3, 1, 2}) == "");
  }
}

TEST_CASE("edge: a plan for many images runs other batches") {
  for (const char* name : {"3x3", "stride_2", "depthwise", "bias_residual_silu", "one_pixel", "full_dense"}) {
    CHECK(check_planned_on_host(edge_case(name).make_layer(), 32, {5, 1, 33}) == "");
  }
}

TEST_CASE("edge: names of layers that look like ours") {
  for (const char* name :
       {"dev.x", "dev_note_slice", "dev.barrier", "piece_tap", "hole", "llvm.fma", "", "a/b \"c\"\n"}) {
    burin::ConvLayer layer = edge_case("one_nonzero").make_layer();
    layer.name = name;
    CHECK(check_planned_on_host(layer, 1, {1}) == "");
  }
}

TEST_CASE("edge: a plan for older GPUs") {
  for (const char* name : {"3x3", "11x11_stride_4", "1x7", "stride_2", "dilation_2", "asymmetric_pad", "groups_2",
                           "depthwise", "batch_7_of_small_images", "bias_residual_silu"}) {
    const EdgeCase& edge = edge_case(name);
    CHECK(check_planned_on_host(edge.make_layer(), edge.batch, {edge.batch}, "sm_75") == "");
  }
}
