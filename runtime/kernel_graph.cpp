#include "runtime/kernel_graph.h"

#include "ir/error.h"
#include "runtime/capture.h"

namespace burin {
namespace {

constexpr std::string_view kWhile = "while making the graph of a network";

// The graph that is being put together; instantiation copies what it needs of it.
class GraphBuilder {
 public:
  explicit GraphBuilder(const std::shared_ptr<const DeviceState>& of) : device_(of), driver_(*of->driver) {
    const DeviceState& device = *of;
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
    if (launch.call != nullptr) return add_call(launch);
    auto parameters = launch.parameters();
    const LaunchGeometry& geometry = launch.code->kernel->form.launch;
    KernelNodeParameters node;
    node.function = launch.code->module->function;
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

  // What the library enqueues, captured from a stream of our own, is a graph within the graph.
  void add_call(const KernelLaunch& launch) {
    CUstream stream = nullptr;
    check(driver_, driver_.cuStreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate", kWhile);
    const std::unique_ptr<CUstream_st, Release> owner(stream, Release{device_});
    Capture capture(driver_, stream);
    launch.call->enqueue(stream, launch.call_pointers);
    CUgraphNode& handle = nodes_.emplace_back();
    const CUresult result = driver_.cuGraphAddChildGraphNode(&handle, graph_, nullptr, 0, capture.end());
    if (result != kCudaSuccess) {
      fail_driver(driver_, result, "cuGraphAddChildGraphNode", "while adding " + launch.what());
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

  std::shared_ptr<const DeviceState> device_;
  const DriverTable& driver_;
  CUgraph graph_ = nullptr;
  std::vector<CUgraphNode> nodes_;
};

}  // namespace

bool may_begin_early(const KernelLaunch& launch) {
  const LoadedCode& code = *launch.code;
  return launch.call == nullptr && code.device->driver->cuGraphAddDependenciesWithData != nullptr &&
         awaits_launch(code);
}

GraphEdge edge_between(const std::vector<KernelLaunch>& launches, int from, int to, bool programmatic) {
  const auto launch = [&](int index) -> const KernelLaunch& { return launches[static_cast<std::size_t>(index)]; };
  return {from, to, programmatic && launch(from).call == nullptr && may_begin_early(launch(to))};
}

KernelGraph::KernelGraph(const std::shared_ptr<const DeviceState>& device, const std::vector<KernelLaunch>& launches,
                         const std::vector<GraphEdge>& edges)
    : executable_(nullptr, Release{device}) {
  const ContextScope scope(*device);
  const DriverTable& driver = *device->driver;
  GraphBuilder builder(device);
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
