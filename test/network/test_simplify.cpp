// Passes on random graphs: whatever they do, the outputs stay.
#include "compiler/network/passes.h"

#include <map>

#include "test/catch.h"
#include "test/network/pass_checks.h"
#include "test/network/random_graphs.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr std::uint64_t kGraphs = 330;

struct NamedPass {
  const char* name;
  Rewritten (*run)(Network);
};
constexpr NamedPass kPasses[] = {
    {"drop_unread", drop_unread},
    {"drop_identities", drop_identities},
    {"nest_concats", nest_concats},
    {"sink_transposes", sink_transposes},
    {"name_functions", name_functions},
    {"fold_pad", fold_pad},
    {"lift_functions", lift_functions},
    {"fold_affine", fold_affine},
    {"fuse_epilogues", fuse_epilogues},
    {"merge_picks", merge_picks},
    {"order_channels", order_channels},
    {"remove_dead_channels", remove_dead_channels},
    {"fuse_pools", [](Network network) { return fuse_pools(std::move(network), {}); }},
    {"merge_siblings", [](Network network) { return merge_siblings(std::move(network), {}); }},
    {"fuse_excitations", [](Network network) { return fuse_excitations(std::move(network), {}); }},
    {"fuse_depthwise", [](Network network) {
       const auto always = [](const ConvLayer&, const ConvLayer&, const ConvLayer&) { return true; };
       return fuse_depthwise(std::move(network), always);
     }}};

}  // namespace

TEST_CASE("simplify: random graphs are legal and of all operators") {
  std::map<std::string_view, int> kinds;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Network network = random_graph(seed);
    INFO("seed " << seed << "\n" << print(network));
    CHECK(verify(network).empty());
    for (const Operator& op : network.operators) ++kinds[kind_name(op.kind)];
  }
  CHECK(kinds.size() == std::variant_size_v<OperatorKind> - 3);  // all but those that no importer makes
}

TEST_CASE("simplify: each pass alone keeps the outputs of random graphs, and finds work") {
  for (const NamedPass& pass : kPasses) {
    int changed = 0;
    for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
      INFO(pass.name << ", seed " << seed);
      const Network network = random_graph(seed);
      const Rewritten result = pass.run(network);
      check_same(network, result.network);
      if (result.changes == 0) CHECK(print(result.network) == print(network));
      changed += result.changes > 0 ? 1 : 0;
    }
    INFO(pass.name << " changed " << changed << " graphs");
    CHECK(changed >= 30);
  }
}

TEST_CASE("simplify: each pass after those before it keeps the outputs") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    Network network = random_graph(seed);
    for (const NamedPass& pass : kPasses) {
      INFO(pass.name << ", seed " << seed);
      const Network before = network;
      network = pass.run(std::move(network)).network;
      check_same(before, network);
    }
  }
}

TEST_CASE("simplify: all together, and a second time nothing is left to do") {
  int fewer = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    INFO("seed " << seed);
    const Network network = random_graph(seed);
    const Network simple = simplify(network);
    check_same(network, simple);
    // Views are no work: where convolutions became one, each that was has one.
    const auto is_view = [](const Operator& op) { return std::holds_alternative<ChannelView>(op.kind); };
    const auto views = static_cast<std::size_t>(std::ranges::count_if(simple.operators, is_view));
    CHECK(simple.operators.size() - views <= network.operators.size());
    fewer += simple.operators.size() < network.operators.size() ? 1 : 0;
    std::size_t passes = 0;
    const Network again = simplify(simple, [&](const std::string& pass, const Network&, int changes) {
      INFO(pass);
      CHECK(changes == 0);
      ++passes;
    });
    CHECK(passes == std::size(kPasses));
    CHECK(print(again) == print(simple));
  }
  CHECK(fewer >= 200);
}

TEST_CASE("simplify: separate layers stay what they are, with their dead channels") {
  Network network;
  for (const char* name : {"sparse", "dead", "added"}) {
    network.layers.push_back(burin_test::make_layer(name, burin_test::small_shape(), 0.5));
  }
  ConvLayer& dead = network.layers[1];  // a filter without a nonzero, and a channel that no filter reads
  const auto filter = static_cast<std::ptrdiff_t>(dead.weights.size()) / dead.shape.out_channels;
  std::fill(dead.weights.begin(), dead.weights.begin() + filter, 0.0F);
  for (int out = 0; out < dead.shape.out_channels; ++out) {
    std::fill_n(dead.weights.begin() + out * filter, dead.shape.kernel_h * dead.shape.kernel_w, 0.0F);
  }
  network.layers[2].shape.epilogue.residual = true;
  separate_layers(network);
  REQUIRE(verify(network) == std::vector<std::string>{});
  const Network same = simplify(network, [](const std::string&, const Network&, int changes) { CHECK(changes == 0); });
  CHECK(same.separate);
  CHECK(print(same) == print(network));
  REQUIRE(same.layers.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(same.layers[i].shape == network.layers[i].shape);
    CHECK(same.layers[i].weights == network.layers[i].weights);
    CHECK(same.layers[i].bias == network.layers[i].bias);
  }
}

TEST_CASE("simplify: a residual block with batch normalization is three convolutions") {
  GraphBuilder graph;
  const int x = graph.input({2, 6, 6});
  int y =
      graph.add("relu1", Elementwise{}, {graph.add("bn1", kAffine2, {graph.convolution(conv("conv1", 2, 2), {x})})});
  y = graph.add("bn2", kAffine2, {graph.convolution(conv("conv2", 2, 2, {.kernel = 3, .pad = 1}), {y})});
  const int down = graph.add("bn3", kAffine2, {graph.convolution(conv("down", 2, 2), {x})});
  y = graph.add("relu2", Elementwise{}, {graph.add("sum", Combine{}, {y, down})});
  const Network network = graph.finish({graph.add("dropout", Identity{}, {y})});
  std::vector<std::string> log;
  const Network result = simplify(network, [&](const std::string& pass, const Network&, int changes) {
    log.push_back(pass + " " + std::to_string(changes));
  });
  check_same(network, result);
  CHECK(kinds(result) == "convolution convolution convolution");
  CHECK(result.operators[2].name == "conv2");  // the other may run beside conv1
  CHECK(result.operators[2].inputs.size() == 2);
  CHECK(log == std::vector<std::string>{"drop_unread 0", "drop_identities 1", "nest_concats 0", "sink_transposes 0",
                                        "name_functions 0", "fold_pad 0", "lift_functions 0", "fold_affine 3",
                                        "fuse_epilogues 3", "merge_picks 0", "order_channels 0",
                                        "remove_dead_channels 0", "fuse_pools 0", "merge_siblings 0",
                                        "fuse_excitations 0", "fuse_depthwise 0"});
}
