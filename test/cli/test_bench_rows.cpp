// Which kernels of a package bench measures by themselves.
#include "compiler/cli/bench_rows.h"

#include "ir/error.h"
#include "test/catch.h"
#include "test/package/sample_network.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

std::vector<std::pair<std::string, int>> names_of(const std::vector<BenchRow>& rows) {
  std::vector<std::pair<std::string, int>> names;
  for (const BenchRow& row : rows) names.emplace_back(row.kernel->op, row.batch);
  return names;
}

using Names = std::vector<std::pair<std::string, int>>;

}  // namespace

TEST_CASE("bench_rows: convolutions at the batch sizes of their kernels, and then what libraries do of the programs") {
  const Package package = network_package();
  const std::vector<BenchRow> convolutions = choose_rows(package.manifest, std::nullopt, {}, RowsOf::convolutions);
  REQUIRE_FALSE(convolutions.empty());
  for (const BenchRow& row : convolutions) {
    CHECK(row.kernel->is_convolution());
    CHECK(std::get<ConvShape>(row.task) == row.kernel->layer->shape);
  }
  const std::vector<BenchRow> all = choose_rows(package.manifest, std::nullopt, {}, RowsOf::all_that_libraries_do);
  // The copy of each program, which both do with the same kernel.
  REQUIRE(all.size() == convolutions.size() + 2);
  const Names names = names_of(all);
  CHECK(Names(names.end() - 2, names.end()) == Names{{"features", 2}, {"features", 8}});
  for (const int batch : {2, 8}) {
    const auto& moved = std::get<MovedTensor>(all[all.size() - (batch == 2 ? 2 : 1)].task);
    CHECK(moved.axes == std::vector<MovedAxis>{{batch * kSampleTensorWords, 1, 1}});
  }
}

TEST_CASE("bench_rows: other batch sizes have the kernels that the runtime would choose") {
  const Package package = network_package();
  const std::vector<BenchRow> rows =
      choose_rows(package.manifest, "features", {3, 8, 3}, RowsOf::all_that_libraries_do);
  CHECK(names_of(rows) == Names{{"features", 3}, {"features", 8}});
  CHECK_THROWS_WITH(choose_rows(package.manifest, "features", {3}, RowsOf::convolutions),
                    Contains("no layer of the package matches --layer 'features'"));
  CHECK(choose_rows(package.manifest, "conv1", {3}, RowsOf::all_that_libraries_do).size() == 1);
}

TEST_CASE("bench_rows: a convolution is compared with TF32, too, and a copy with its own type alone") {
  const Package package = network_package();
  for (const BenchRow& row : choose_rows(package.manifest, std::nullopt, {}, RowsOf::all_that_libraries_do)) {
    const std::vector<CudnnMode> own = {CudnnMode::fp32}, both = {CudnnMode::fp32, CudnnMode::tf32};
    CHECK(modes_for(*row.kernel) == (row.kernel->is_convolution() ? both : own));
  }
}
