// Provider x ability: whatever a command, an option or a dump does for kernels, it does for those of every provider.
// docs/hacking.md has the table.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/choose/choose.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/npy_tensor.h"
#include "compiler/compile.h"
#include "compiler/make_kernel.h"
#include "compiler/measure/tune_on_gpu.h"
#include "compiler/network/reference_network.h"
#include "compiler/observer.h"
#include "compiler/study/study.h"
#include "ir/package/package.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/weights_file.h"
#include "test/import/onnx_model.h"
#include "test/package/sample_plans.h"
#include "test/runtime/fake_driver.h"
#include "test/scoped_variable.h"
#include "test/tune/fake_measurer.h"

using namespace burin_test;
using burin::CompileOptions;
using burin::Kernel;
using burin::Package;
using burin_test::Contains;

namespace {

using Strings = std::vector<std::string>;

// The file of each stage, in the order of burin::kStageNames.
constexpr std::array kStageFiles = {"10-layer.txt",      "20-pattern.txt", "30-plan.txt",   "40-template.ll",
                                    "50-specialised.ll", "60-kernel.ptx",  "70-kernel.json"};
static_assert(kStageFiles.size() == std::size(burin::kStageNames));

// Each convolution and fully connected layer is called after the provider that is asked for it, and is in half
// precision where that knows halves, so that formats are converted.
const std::string kKernels =
    "auto,conv_baked=baked,conv_dense=dense,conv_depthwise=depthwise,conv_streamed=streamed,"
    "conv_gathered=gathered,conv_gathered_rows=gathered_rows,conv_warpgroup=warpgroup,conv_cudnn=cudnn,"
    "conv_cublas=cublas,linear_cublas=linear_cublas,"
    "conv_warpgroup_rows=warpgroup_rows,conv_warpgroup_tf32=warpgroup_tf32,"
    "conv_zero_skip=zero_skip,conv_winograd=winograd,conv_fft=fft,"
    "linear_expanded=linear_expanded,linear_sparse=linear_sparse,linear=linear";

const Strings& all_providers() {
  static const Strings names = [] {
    Strings found;
    for (const burin::Provider* provider : burin::providers()) found.emplace_back(provider->name());
    return found;
  }();
  return names;
}

const Strings kWithoutGpu = {"CUDA_VISIBLE_DEVICES="};
const Strings kWithoutAssembler = {"CUDA_VISIBLE_DEVICES=", "BURIN_ASSEMBLER=none"};

bool computes_in_halves(const std::string& provider) {
  return provider == burin::kBakedProvider || provider == "conv_depthwise" || provider == "conv_gathered" ||
         provider == "conv_warpgroup";
}

// Whether libraries have a call for what the provider's kernels do here; the copy is a pad, and the conversion changes
// the type.
bool libraries_do(const std::string& provider) {
  static const std::set<std::string> kNames = {"pool", "global_average", "softmax", "softmax_channels"};
  return kNames.contains(provider);
}

bool makes_convolutions(const std::string& provider) { return provider.starts_with("conv_"); }

// x (8x8x8) -> fourteen convolutions, a normalization over channels before the last four -> pad -> LRN -> sigmoid ->
// the sum of both, less its largest channel, normalized, multiplied by itself and gated. Of the sum, on one side: pool
// -> resize -> mean -> dense fully connected layer -> softmax -> y (6); on the other: softmax over the channels ->
// three fully connected layers with few weights -> z (256).
OnnxModel model_of_every_provider() {
  constexpr int kChannels = 8;
  OnnxModel model = OnnxModel::of_image({kChannels, 8, 8});
  std::string last = "x";
  const auto conv = [&](const std::string& name, int size, int groups, std::vector<float> weights) {
    model.floats(name + "_w", {kChannels, kChannels / groups, size, size}, std::move(weights));
    model.add_node("Conv", {last, name + "_w"}, name + "_out")
        .set("pads", std::vector<std::int64_t>(4, size / 2))
        .set("group", groups)
        .node.set_name(name);
    last = name + "_out";
  };
  const auto node = [&](const std::string& op, const Strings& inputs, const std::string& name) {
    NodeMaker made = model.add_node(op, inputs, name + "_out");
    made.node.set_name(name);
    last = name + "_out";
    return made;
  };
  conv("conv_baked", 3, 1, sparse_weights(kChannels * kChannels * 9, 1));
  conv("conv_depthwise", 3, kChannels, sparse_weights(kChannels * 9, 2));
  conv("conv_dense", 1, 1, sparse_weights(kChannels * kChannels, 3));
  conv("conv_streamed", 3, 1, sparse_weights(kChannels * kChannels * 9, 4));
  conv("conv_gathered_rows", 3, 1, sparse_weights(kChannels * kChannels * 9, 6));
  conv("conv_warpgroup_rows", 3, 1, sparse_weights(kChannels * kChannels * 9, 14));
  conv("conv_gathered", 3, 1, sparse_weights(kChannels * kChannels * 9, 5));
  // It reads halves, as the convolution before it stores them and the one behind it reads them.
  node("LpNormalization", {last}, "normalize_channels").set("axis", 1).set("p", 2);
  conv("conv_warpgroup", 3, 1, sparse_weights(kChannels * kChannels * 9, 7));
  conv("conv_warpgroup_tf32", 3, 1, sparse_weights(kChannels * kChannels * 9, 13));
  conv("conv_cudnn", 3, 1, sparse_weights(kChannels * kChannels * 9, 9));
  conv("conv_cublas", 1, 1, sparse_weights(kChannels * kChannels, 15));
  conv("conv_zero_skip", 3, 1, sparse_weights(kChannels * kChannels * 9, 12));
  std::vector<float> no_zeros(kChannels * kChannels * 9);
  for (std::size_t i = 0; i < no_zeros.size(); ++i) no_zeros[i] = 0.25F * static_cast<float>(i % 7) - 0.8F;
  conv("conv_winograd", 3, 1, no_zeros);
  conv("conv_fft", 3, 1, no_zeros);
  model.integers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  model.floats("value", {}, {0.5F});
  node("Pad", {last, "pads", "value"}, "copy");
  node("LRN", {last}, "lrn").set("size", 3);
  node("Sigmoid", {"lrn_out"}, "elementwise");
  node("Add", {"lrn_out", "elementwise_out"}, "combine");
  node("ReduceMax", {"combine_out"}, "reduce").set("axes", std::vector<std::int64_t>{1});
  node("Sub", {"combine_out", "reduce_out"}, "less");
  model.floats("ones", {kChannels}, std::vector<float>(kChannels, 1.0F));
  node("InstanceNormalization", {last, "ones", "ones"}, "normalize");
  node("MatMul", {last, last}, "matmul");
  node("GlobalAveragePool", {last}, "squeezed");
  model.floats("squeeze_w", {2, kChannels, 1, 1}, sparse_weights(2 * kChannels, 10));
  model.floats("expand_w", {kChannels, 2, 1, 1}, sparse_weights(2 * kChannels, 11));
  node("Conv", {last, "squeeze_w"}, "squeeze");
  node("Relu", {last}, "features_of_means");
  node("Conv", {last, "expand_w"}, "expand");
  node("Sigmoid", {last}, "gate");
  node("Mul", {"matmul_out", last}, "gated");
  node("MaxPool", {last}, "pool")
      .set("kernel_shape", std::vector<std::int64_t>{2, 2})
      .set("strides", std::vector<std::int64_t>{2, 2});

  model.floats("scales", {4}, {1, 1, 2, 2});
  node("Resize", {"pool_out", "", "scales"}, "resample").set("mode", "linear");
  node("GlobalAveragePool", {"resample_out"}, "global_average");
  node("Flatten", {last}, "means");
  std::vector<float> dense(6 * kChannels);
  for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = 0.25F * static_cast<float>(i % 7) - 0.8F;
  model.floats("dense_w", {6, kChannels}, dense);
  node("Gemm", {last, "dense_w"}, "linear").set("transB", 1);
  model.add_node("Softmax", {last}, "y").node.set_name("softmax");

  constexpr int kFeatures = kChannels * 10 * 10, kRows = 256;
  node("Softmax", {"combine_out"}, "softmax_channels").set("axis", 1);
  node("Flatten", {last}, "features");
  std::vector<float> sparse(kRows * kFeatures, 0.0F);
  for (std::size_t i = 0; i < sparse.size(); i += 37) sparse[i] = 0.5F + 0.01F * static_cast<float>(i % 11);
  model.floats("sparse_w", {kRows, kFeatures}, sparse);
  node("Gemm", {last, "sparse_w"}, "linear_sparse").set("transB", 1);
  model.floats("called_w", {kRows, kRows}, sparse_weights(kRows * kRows, 16));
  node("Gemm", {last, "called_w"}, "linear_cublas").set("transB", 1);
  model.floats("few_w", {kRows, kRows}, sparse_weights(kRows * kRows, 8));
  model.add_node("Gemm", {last, "few_w"}, "z").set("transB", 1).node.set_name("linear_expanded");
  model.output("z");
  return model;
}

// The model and its package, with all stages dumped.
struct Compiled {
  ScratchFolder folder;
  std::string model = folder.write("m.onnx", model_of_every_provider().bytes());
  std::string package_file = folder / "p.burin", dump = folder / "dump";
  Package package;

  Strings command(const Strings& more) const {
    Strings arguments = {"compile",   model,   "--arch", "sm_90", "--precision", "fp16,conv_warpgroup_tf32=tf32",
                         "--kernels", kKernels};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Machine code takes most of the time and is only looked at where kernels are cached.
  Outcome compile(const Strings& more) const { return run_burin(command(more), kWithoutAssembler, folder.path()); }

  // A kernel of the provider; fails where there is none.
  const Kernel& kernel_of(const std::string& provider) const {
    for (const Kernel& kernel : package.manifest.kernels) {
      if (kernel.provider == provider) return kernel;
    }
    FAIL("the model has no kernel of " << provider << ": give it an operator that gets one");
    throw std::logic_error("FAIL() returned");
  }

  // Where a kernel's stages were dumped, and the file of one of them.
  std::string folder_of(const Kernel& kernel) const {
    return fmt::format("{}/{}", dump, burin::folder_name(kernel.op));
  }
  std::string stage_of(const Kernel& kernel, const std::string& file) const {
    return read_file(fmt::format("{}/{}", folder_of(kernel), file));
  }
};

// Holds a kernel of every provider; fails where one is absent.
const Compiled& compiled() {
  static Compiled made;
  if (made.package.files.empty()) {
    const Outcome outcome = made.compile({"-o", made.package_file, "--dump-dir", made.dump});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    made.package = burin::read_package(made.package_file);
  }
  std::set<std::string> found;
  for (const Kernel& kernel : made.package.manifest.kernels) found.insert(kernel.provider);
  REQUIRE(found == std::set<std::string>(all_providers().begin(), all_providers().end()));
  return made;
}

// The network's step of a kernel.
const burin::Step& step_of(const Package& package, const Kernel& kernel) {
  for (const burin::Step& step : package.manifest.programs.at(0).steps) {
    if (step.kernel == kernel.symbol) return step;
  }
  FAIL("no step launches " << kernel.symbol);
  throw std::logic_error("FAIL() returned");
}

// What stands behind a stage's text as a comment.
const std::vector<std::pair<std::string, std::string>> kEdits = {
    {"30-plan.txt", "# edited\n"}, {"50-specialised.ll", "; edited\n"}, {"60-kernel.ptx", "// edited\n"}};

// Its PTX.
std::string code_of(const Package& package, const Kernel& kernel) {
  const auto ptx = std::ranges::find(kernel.binaries, burin::BinaryKind::ptx, &burin::KernelBinary::kind);
  REQUIRE(ptx != kernel.binaries.end());
  return *package.files.at(ptx->path).content();
}

// The same package with what the fake driver takes for code.
Package with_fake_code(Package package) {
  for (Kernel& kernel : package.manifest.kernels) {
    for (const burin::KernelBinary& binary : kernel.binaries) package.files.erase(binary.path);
    kernel.binaries.clear();
    add_code(package, kernel,
             {.kind = burin::BinaryKind::cubin, .arch = "sm_90", .path = "kernels/" + kernel.symbol + ".cubin"},
             "machine code of ");
  }
  return package;
}

// burin bench in this process, where the fake driver is; the document of its --json.
nlohmann::json bench_on_fake_gpu(const Strings& more) {
  const Compiled& made = compiled();
  const std::string package = made.folder / "fake.burin", json = made.folder / "bench.json";
  burin::write_package(with_fake_code(made.package), package);
  FakeDriver driver;
  CLI::App app;
  burin::Action action;
  burin::add_bench_command(app, action);
  Strings arguments = {"bench", package, "--samples", "2", "--json", json};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ranges::reverse(arguments);  // as CLI11 takes them
  app.parse(arguments);
  REQUIRE(action() == 0);
  CHECK(driver.live().empty());
  return nlohmann::json::parse(read_file(json));
}

// Every kernel is launched and timed on the fake GPU; what it computes is the reference.
class MeasurerOnFakeGpu : public FakeMeasurer {
 public:
  explicit MeasurerOnFakeGpu(const burin::Network& network) : FakeMeasurer(network) {}

  void run(const Package& package, int batch, std::span<const float> input, std::span<const float> residual,
           std::span<float> output) override {
    gpu_.run(package, batch, input, residual, output);
    FakeMeasurer::run(package, batch, input, residual, output);
  }
  std::vector<burin::Timing> time_in_turns(std::span<const Package* const> packages, int batch,
                                           std::span<const float> input) override {
    return gpu_.time_in_turns(packages, batch, input);
  }

 private:
  burin::GpuMeasurer gpu_{Strings{"sm_90"}};
};

}  // namespace

TEST_CASE("every_provider: dump has all stages") {
  for (const std::string& provider : all_providers()) {
    INFO(provider);
    const std::filesystem::path folder = compiled().folder_of(compiled().kernel_of(provider));
    const std::string log = read_file(folder / "00-stages.txt");
    for (std::size_t i = 0; i < kStageFiles.size(); ++i) {
      INFO(kStageFiles[i]);
      REQUIRE(std::filesystem::exists(folder / kStageFiles[i]));
      CHECK(std::filesystem::file_size(folder / kStageFiles[i]) > 0);
      CHECK_THAT(log, Contains(std::string("\n") + burin::kStageNames[i] + " ") && Contains(kStageFiles[i]));
    }
    const Kernel& kernel = compiled().kernel_of(provider);
    CHECK(read_file(folder / "30-plan.txt") == kernel.plan);
    CHECK_THAT(read_file(folder / "50-specialised.ll"), Contains(kernel.symbol));
    CHECK_THAT(read_file(folder / "60-kernel.ptx"), Contains(".entry " + kernel.symbol + "("));
    CHECK(nlohmann::json::parse(read_file(folder / "70-kernel.json")).is_object());
  }
}

TEST_CASE("every_provider: stop-after leaves the stages up to it and no package") {
  const Compiled& made = compiled();
  for (std::size_t last = 0; last + 1 < kStageFiles.size(); ++last) {  // with the last stage there is a package
    const std::string stage = burin::kStageNames[last];
    INFO(stage);
    const ScratchFolder folder;
    Strings command = made.command({"--dump-dir", folder / "d", "--stop-after", stage});
    if (last < 2) {  // before there is a plan, an option that chooses one is refused
      const auto kernels = std::ranges::find(command, "--kernels");
      command.erase(kernels, kernels + 2);
      command.insert(command.end(), {"--layout", "n2chw"});  // as the kernels that were asked for have it
    }
    const Outcome outcome = run_burin(command, kWithoutAssembler, folder.path());
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("stopped after stage '" + stage + "'; no package written"));
    CHECK(folder.entries() == Strings{"d"});
    Strings expected = {"00-stages.txt"};
    expected.insert(expected.end(), kStageFiles.begin(), kStageFiles.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    for (const std::string& provider : all_providers()) {
      INFO(provider);
      const std::string op = burin::folder_name(made.kernel_of(provider).op);
      Strings files;
      for (const auto& file : std::filesystem::directory_iterator(folder / ("d/" + op))) {
        files.push_back(file.path().filename());
      }
      std::ranges::sort(files);
      CHECK(files == expected);
      for (std::size_t i = 0; i <= last && last >= 2; ++i) {  // what was dumped is what the whole way dumps
        CHECK((read_file(folder / ("d/" + op + "/" + kStageFiles[i])) ==
               read_file(made.dump + "/" + op + "/" + kStageFiles[i])));
      }
    }
  }
}

TEST_CASE("every_provider: a plan, a module and PTX go back in with --from") {
  const Compiled& made = compiled();
  const ScratchFolder folder;
  const std::string again = folder / "again.burin", cache = folder / "cache";
  const std::size_t others = made.package.manifest.kernels.size() - 1;  // that come from the cache
  REQUIRE(made.compile({"-o", again, "--cache", cache}).exit_code == 0);
  for (const std::string& provider : all_providers()) {
    INFO(provider);
    const Kernel& own = made.kernel_of(provider);
    CHECK_FALSE(step_of(made.package, own).options.empty());
    for (const auto& [stage, edit] : kEdits) {
      INFO(stage);
      // A module or PTX has its plan beside it.
      const std::string file = fmt::format("{}/edited-{}", made.folder_of(own), stage);
      write_file(file, made.stage_of(own, stage) + edit);
      const Outcome outcome =
          made.compile({"-o", again, "--cache", cache, "--from", own.op + "=" + file, "--no-verify"});
      std::filesystem::remove(file);
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      CHECK_THAT(outcome.out, Contains(fmt::format("{} kernels ({} from the cache)", others + 1, others)));
      const Package package = burin::read_package(again);
      const auto kernel = std::ranges::find(package.manifest.kernels, own.op, &Kernel::op);
      REQUIRE(kernel != package.manifest.kernels.end());
      CHECK(kernel->provider == provider);
      CHECK(step_of(package, *kernel).options.empty());  // nothing was compared: the file says what it is to be
      const bool is_plan = stage == "30-plan.txt", is_ptx = stage == "60-kernel.ptx";
      CHECK(kernel->plan == own.plan + (is_plan ? edit : ""));
      CHECK(kernel->edited == !is_plan);
      CHECK(kernel->source_hash != own.source_hash);
      // Comments change no code.
      CHECK((code_of(package, *kernel) == code_of(made.package, own) + (is_ptx ? edit : "")));
    }
  }
}

TEST_CASE("every_provider: kernels are found in the cache") {
  const Compiled made;
  const auto compile = [&](const std::string& name) {
    const Outcome outcome =
        run_burin(made.command({"-o", made.folder / name, "--cache", made.folder / "cache"}), kWithoutGpu);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
  };
  const std::string first = compile("1.burin"), second = compile("2.burin");
  std::set<std::string> found;
  const Package package = burin::read_package(made.folder / "1.burin");
  for (const Kernel& kernel : package.manifest.kernels) found.insert(kernel.provider);
  CHECK(found == std::set<std::string>(all_providers().begin(), all_providers().end()));
  const std::size_t kernels = package.manifest.kernels.size();
  CHECK_THAT(first, Contains(fmt::format("{} kernels, ", kernels)));
  CHECK_THAT(second, Contains(fmt::format("{} kernels ({} from the cache), ", kernels, kernels)));
  CHECK((read_file(made.folder / "1.burin") == read_file(made.folder / "2.burin")));
}

TEST_CASE("every_provider: a study of a convolution times what each provider and cuDNN have for it, in turns") {
  const ScopedVariable assembler("BURIN_ASSEMBLER", "none"), cudnn("BURIN_CUDNN", BURIN_FAKE_CUDNN);
  const ScopedVariable cublaslt("BURIN_CUBLASLT", BURIN_FAKE_CUBLASLT);
  burin::Study study = burin::plan_study(burin::parse_study_layer("n=2 c=8 h=6 r=3 zeros=0.8"), {}, {});
  study.source = burin::Estimate::Source::measured;
  burin::Network network;
  network.source = "study";
  network.layers = {burin::with_weights(study.base, study.seed)};
  burin::separate_layers(network);
  FakeDriver driver;
  MeasurerOnFakeGpu measurer(network);
  measurer.libraries = {{burin::Library::cudnn, "9.19.0"}};
  study.device = measurer.device();
  const burin::TimeBudget budget(0);
  burin::propose(study, {.jobs = 2}, budget, {});
  const std::size_t proposed = study.points.front().candidates.size();
  burin::measure(study, {.jobs = 2}, budget,
                 [&](const burin::Task& task, const burin::Candidate& candidate) {
                   return with_fake_code(compile_candidate(task, candidate, {}, "sm_90"));
                 },
                 measurer, {});
  CHECK(study.stopped.empty());
  const burin::StudyPoint& point = study.points.front();
  REQUIRE(point.done);
  std::set<std::string> algorithms;
  for (const burin::Ranked& ranked : burin::ranking(point, study.source)) {
    const burin::StudyCandidate& entry = point.candidates[ranked.candidate];
    algorithms.insert(entry.algorithm);
    CHECK(entry.us.value_or(0) == Approx(driver.microseconds_per_launch));
    REQUIRE(entry.memory);
    CHECK((entry.memory->library_bytes > 0) == entry.algorithm.starts_with(burin::kCudnnProvider));
  }
  CHECK(proposed >= algorithms.size());
  for (const char* name : {"conv_baked", "conv_dense", "conv_cudnn implicit_precomp_gemm", "conv_cudnn winograd"}) {
    INFO(name);
    CHECK(algorithms.contains(name));
  }
}

TEST_CASE(
    "every_provider: tuning measures candidates of convolutions and fully connected layers, and of nothing else") {
  const ScopedVariable assembler("BURIN_ASSEMBLER", "none"), cudnn("BURIN_CUDNN", BURIN_FAKE_CUDNN);
  const ScopedVariable cublaslt("BURIN_CUBLASLT", BURIN_FAKE_CUBLASLT);
  const burin::Network network = model_of_every_provider().import();
  CompileOptions options;
  options.precisions = {burin::Precision::fp16};
  options.precisions.of_layers["conv_warpgroup_tf32"] = burin::Precision::tf32;
  options.kernels = burin::parse_kernel_kinds(kKernels);
  const burin::Network prepared = prepare_graph(network, std::nullopt, graph_choices(options));
  FakeDriver driver;
  MeasurerOnFakeGpu measurer(prepared);
  const burin::TuningTasks tuning = tuning_tasks(prepared, options);
  const std::vector<burin::Task>& tasks = tuning.tasks;
  options.tuned = tune_tasks(tasks, options, {.plans = 1},
                             [&](const burin::Task& task, const burin::Candidate& candidate) {
                               return with_fake_code(compile_candidate(task, candidate, options, "sm_90"));
                             },
                             measurer, {})
                      .kernels;
  const Package package = compile_network(network, options, {}).package;
  for (const std::string& provider : all_providers()) {
    INFO(provider);
    const auto kernel = std::ranges::find(package.manifest.kernels, provider, &Kernel::provider);
    REQUIRE(kernel != package.manifest.kernels.end());
    CHECK(kernel->tuning.has_value() == (makes_convolutions(provider) || provider.starts_with("linear")));
    if (!kernel->tuning) {  // there is no other way to do what it does, or a model chooses
      for (const burin::KernelOption& option : step_of(package, *kernel).options) CHECK_FALSE(option.measured);
      continue;
    }
    CHECK(kernel->tuning->device == "Fake H200");
    REQUIRE_FALSE(kernel->tuning->candidates.empty());
    for (const burin::TuningCandidate& candidate : kernel->tuning->candidates) {
      CHECK(candidate.provider == provider);
      CHECK(candidate.fault == "");
      CHECK(candidate.us == Approx(driver.microseconds_per_launch));
      CHECK(candidate.samples == 50);
    }
    CHECK(step_of(package, *kernel).options.at(0).measured);
  }
}

TEST_CASE(
    "every_provider: bench has a row for each convolution, pool and softmax beside cuDNN, and for each step of the "
    "network") {
  const ScopedVariable cudnn("BURIN_CUDNN", BURIN_FAKE_CUDNN), cublaslt("BURIN_CUBLASLT", BURIN_FAKE_CUBLASLT);
  const nlohmann::json layers = bench_on_fake_gpu({"--baseline", "cudnn", "--copies", "1"});
  const nlohmann::json network = bench_on_fake_gpu({});
  CHECK(layers["cudnn"] == "9.19.0");
  for (const std::string& provider : all_providers()) {
    INFO(provider);
    const Kernel& kernel = compiled().kernel_of(provider);
    const auto row = std::ranges::find_if(layers["rows"], [&](const auto& r) { return r["symbol"] == kernel.symbol; });
    REQUIRE((row != layers["rows"].end()) == (makes_convolutions(provider) || libraries_do(provider)));
    if (row != layers["rows"].end()) {
      CHECK((*row)["cold"]["median_us"] > 0);
      CHECK((*row)[computes_in_halves(provider) ? "cudnn_fp16" : "cudnn_fp32"]["median_us"] > 0);
      CHECK(row->contains("cudnn_tf32") == makes_convolutions(provider));
      CHECK(row->contains("nonzeros") == makes_convolutions(provider));
      CHECK((*row)["cudnn_calls"] != "");
      CHECK((*row)["shape"] != "");
    }
    const auto& steps = network["network"][0]["steps"];
    const auto step = std::ranges::find_if(steps, [&](const auto& s) { return s["operator"] == kernel.op; });
    REQUIRE(step != steps.end());
    CHECK((*step)["time"]["median_us"] > 0);
  }
}

TEST_CASE("every_provider: the host executor runs each step, and verify --layers has a row for it") {
  const Compiled& made = compiled();
  // Each provider reads what the one before has made, 14 steps of which round: with some seeds so many
  // small errors become a larger one than verify allows for the network, though each step is right.
  const Outcome outcome = run_burin(
      {"verify", made.package_file, "--against", made.model, "--device", "host", "--layers", "--json", "--seed", "1"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  CHECK(document["passed"] == true);
  CHECK(document["code"]["same"] == static_cast<int>(made.package.manifest.kernels.size()));
  const auto& steps = document["programs"][0]["steps"];
  CHECK(steps.size() == made.package.manifest.programs.at(0).steps.size());
  for (const std::string& provider : all_providers()) {
    INFO(provider);
    const std::string symbol = made.kernel_of(provider).symbol;
    const auto step = std::ranges::find_if(steps, [&](const auto& s) { return s["kernel"] == symbol; });
    REQUIRE(step != steps.end());
    CHECK((*step)["passed"] == true);
    CHECK_FALSE(step->contains("fault"));
  }
}

TEST_CASE("every_provider: run on the host gives what the reference gives") {
  const Compiled& made = compiled();
  const std::vector<float> x = burin::random_tensor(2 * 8 * 8 * 8, 1);
  burin::write_npy(made.folder / "x.npy", {2, 8, 8, 8}, x);
  const Outcome outcome =
      run_burin({"run", made.package_file, "--device", "host", "--input", made.folder / "x.npy", "--output",
                 "y=" + (made.folder / "y.npy"), "--output", "z=" + (made.folder / "z.npy")});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto expected = burin::run_reference(burin::import_network(made.model), 2, {x});
  for (std::size_t output = 0; output < expected.size(); ++output) {
    const std::vector<float> values = burin::read_npy(made.folder / (output == 0 ? "y.npy" : "z.npy")).values;
    REQUIRE(values.size() == expected[output].size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(values[i] - expected[output][i]));
      largest = std::max(largest, std::abs(expected[output][i]));
    }
    CHECK(worst < 4e-3 * largest);  // one convolution rounds its tensors to FP16
  }
}
