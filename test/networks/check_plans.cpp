// burin_check_plans MODEL.onnx ...: plans the memory of each network, as it is and simplified, at two batch sizes, and
// runs the plans in float64 in several of the orders that they allow. Prints a line for each plan; exits with 1 where a
// step meets other values than the interpreter.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "compiler/import/import.h"
#include "compiler/network/memory_plan.h"
#include "compiler/network/passes.h"
#include "ir/error.h"
#include "test/network/plan_executor.h"

namespace {

constexpr int kOrders = 3;  // beside that of the plan

bool check(const burin::Network& network, const std::string& what, int batch) {
  const burin::Program plan = burin::plan_network(network, std::string(burin::kNetworkName), batch);
  const std::vector<std::string> faults = burin_test::faults_of_runs(network, plan, kOrders, 1);
  fmt::print("{}, batch {}: {} steps, an arena of {} bytes, {} without sharing: {}\n", what, batch, plan.steps.size(),
             plan.arena_bytes, plan.naive_bytes, faults.empty() ? "ok" : faults.front());
  return faults.empty();
}

bool check_model(const std::string& path) {
  const burin::Network network = burin::import_network(path);
  const burin::Network simple = burin::simplify(network);
  bool right = true;
  for (const int batch : {1, 3}) {
    right = check(network, path, batch) && right;
    right = check(simple, path + ", simplified", batch) && right;
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: burin_check_plans MODEL.onnx ...\n");
    return 2;
  }
  try {
    bool right = true;
    for (int i = 1; i < argc; ++i) right = check_model(argv[i]) && right;
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
