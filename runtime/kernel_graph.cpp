#include "runtime/kernel_graph.h"

#include "ir/error.h"

namespace burin {
namespace {

constexpr std::string_view kWhile = "while making the graph of a network";

// The graph that is being put together; instantiation copies what it needs of it.
class GraphBuilder {
 public:
  explicit GraphBuilder(const DeviceState& device) : driver_(*device.driver) {
    if (driver_.cuGraphAddKernelNode == nullptr) {
      const int has = device.info.driver_version;
      fail(ErrorKind::device,
           "networks need a driver for CUDA 12.0 or newer, and this one is for CUDA {}.{}: update the NVIDIA driver",
           has / 1000, has % 1000 / 10);
    }
    check(driver_, driver_.cuGraphCreate(&graph_, 0), "cuGraphCreate", kWhile);
  }
  ~GraphBuilder() {
    if (graph_ != nullptr) driver_.cuGraphDestroy(graph_);
  }
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  CUgraph graph() const { return graph_; }

  void add(const KernelLaunch& launch) {
    auto parameters = launch.parameters();
    const LaunchGeometry& geometry = launch.code->kernel->form.launch;
    KernelNodeParameters node;
    node.function = launch.code->function;
    node.grid_x = launch.grid.tiles;
    node.grid_y = launch.grid.slices;
    node.block_x = static_cast<unsigned>(geometry.threads);
    node.shared_bytes = static_cast<unsigned>(geometry.shared_bytes);
    node.parameters = parameters.data();
    CUgraphNode& handle = nodes_.emplace_back();
    const CUresult result = driver_.cuGraphAddKernelNode(&handle, graph_, nullptr, 0, &node);
    if (result != kCudaSuccess) {
      fail_driver(driver_, result, "cuGraphAddKernelNode", "while adding " + launch.what());
    }
  }

  void connect(const std::vector<GraphEdge>& edges) {
    connect(edges, false);
    connect(edges, true);
  }

 private:
  // The edges of one kind. All of one call are alike: some drivers take the first one's data for every edge of it.
  void connect(const std::vector<GraphEdge>& edges, bool programmatic) {
    std::vector<CUgraphNode> from, to;
    for (const GraphEdge& edge : edges) {
      if (edge.programmatic != programmatic) continue;
      from.push_back(nodes_[static_cast<std::size_t>(edge.from)]);
      to.push_back(nodes_[static_cast<std::size_t>(edge.to)]);
    }
    if (from.empty()) return;
    if (!programmatic) {
      check(driver_, driver_.cuGraphAddDependencies(graph_, from.data(), to.data(), from.size()),
            "cuGraphAddDependencies", kWhile);
      return;
    }
    BURIN_CHECK(driver_.cuGraphAddDependenciesWithData != nullptr, "edges that this driver does not know");
    const GraphEdgeData kind{kGraphPortProgrammatic, 0, kGraphDependencyProgrammatic, {}};
    const std::vector<GraphEdgeData> data(from.size(), kind);
    check(driver_, driver_.cuGraphAddDependenciesWithData(graph_, from.data(), to.data(), data.data(), from.size()),
          "cuGraphAddDependenciesWithData", kWhile);
  }

  const DriverTable& driver_;
  CUgraph graph_ = nullptr;
  std::vector<CUgraphNode> nodes_;
};

}  // namespace

bool may_begin_early(const KernelLaunch& launch) {
  const LoadedCode& code = *launch.code;
  return code.device->driver->cuGraphAddDependenciesWithData != nullptr && awaits_launch(code);
}

KernelGraph::KernelGraph(const std::shared_ptr<const DeviceState>& device, const std::vector<KernelLaunch>& launches,
                         const std::vector<GraphEdge>& edges)
    : executable_(nullptr, Release{device}) {
  const ContextScope scope(*device);
  const DriverTable& driver = *device->driver;
  GraphBuilder builder(*device);
  for (const KernelLaunch& launch : launches) builder.add(launch);
  builder.connect(edges);
  CUgraphExec made = nullptr;
  check(driver, driver.cuGraphInstantiateWithFlags(&made, builder.graph(), 0), "cuGraphInstantiateWithFlags", kWhile);
  executable_.reset(made);
  // Otherwise the first launch would do it.
  check(driver, driver.cuGraphUpload(made, nullptr), "cuGraphUpload", kWhile);
  check(driver, driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize", kWhile);
}

void KernelGraph::launch(CUstream_st* stream) const {
  call(*executable_.get_deleter().device, &DriverTable::cuGraphLaunch, "cuGraphLaunch", "while launching a network",
       executable_.get(), stream);
}

}  // namespace burin
