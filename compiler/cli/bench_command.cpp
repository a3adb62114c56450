// burin bench: how long a package's kernels take on a GPU, and cuDNN beside them in the same run.
#include <algorithm>
#include <cctype>

#include "compiler/cli/arguments.h"
#include "compiler/cli/bench_rows.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/network_bench.h"
#include "compiler/cli/npy_tensor.h"
#include "compiler/cli/table.h"
#include "compiler/cli/tensor_files.h"
#include "compiler/execute/executor.h"
#include "compiler/import/names.h"
#include "compiler/measure/layer_times.h"
#include "ir/error.h"
#include "ir/text.h"
#include "runtime/bench/cudnn_baseline.h"

namespace burin {
namespace {

struct BenchArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string package;
  std::string device = "cuda:0";
  std::optional<std::string> batches, layer, baseline, json, dead, activation_sparsity;
  std::vector<std::string> activations;
  bool no_overlap = false;  // of networks
  BenchOptions options;
};

// What all rows read: nothing of them where random values do.
struct GivenActivations {
  std::optional<SyntheticZeros> zeros;
  std::vector<float> images;  // of the only layer's input, in NCHW, one behind the other
};

// Images of the input of the only layer that is measured.
std::vector<float> read_layer_images(const std::vector<std::string>& given, const std::vector<BenchRow>& rows) {
  const Kernel& kernel = *rows.front().kernel;
  for (const BenchRow& row : rows) {
    if (row.kernel->op == kernel.op) continue;
    fail(ErrorKind::usage,
         "--activations {}: are the input of one layer, and '{}' and '{}' are measured; --layer names it",
         given.front(), kernel.op, row.kernel->op);
  }
  if (!kernel.is_convolution()) {
    fail(ErrorKind::usage, "--activations {}: is for convolutions, and '{}' is none", given.front(), kernel.op);
  }
  const std::string what = fmt::format("layer '{}'", kernel.op);
  const std::string file = files_of({"--activations", "input"}, given, {kernel.op + ".input"}, what).front();
  NpyTensor tensor = read_npy(file);
  const ConvShape& shape = kernel.layer->shape;
  images_of(tensor, file, what + "'s input", {shape.in_channels, shape.in_h, shape.in_w});
  return std::move(tensor.values);
}

std::string ratio_text(const std::optional<double>& ratio) { return ratio ? fmt::format("{:.2f}", *ratio) : "-"; }

std::string time_text(const std::optional<CudnnTime>& time) { return time ? microseconds_text(time->median_us) : "-"; }

std::string spread_text(const Measurement& m) { return times_text({m.p10_us, m.p90_us, m.p99_us}); }

// The geometric mean of the convolutions' ratios to cuDNN in `mode`; empty where none is compared with it.
std::string mean_text(const std::vector<BenchRow>& rows, CudnnMode mode) {
  std::vector<double> ratios;
  bool compared = false;
  for (const BenchRow& row : rows) {
    if (!row.kernel->is_convolution()) continue;
    compared = compared || row.compared_with(mode);
    if (const std::optional<double> ratio = row.ratio(mode)) ratios.push_back(*ratio);
  }
  if (!compared) return "";
  return ratios.empty() ? "-" : fmt::format("{:.2f}", geometric_mean(ratios));
}

// Columns of modes that no row is compared with stay empty, and are not shown.
std::string print_table(const std::vector<BenchRow>& rows, bool dead) {
  std::vector<std::string> columns = {"layer",    ">batch",       "code",        ">warm us", ">p10/p90/p99",
                                      ">cold us", ">p10/p90/p99", ">chained us", ">model us"};
  if (dead) columns.insert(columns.end(), {">dead", ">skipped", ">without/cold"});
  columns.emplace_back("cuDNN's calls");
  const std::size_t own_columns = columns.size();
  for (const CudnnMode mode : kCudnnModes) columns.push_back(fmt::format(">cuDNN {} us", to_string(mode)));
  for (const CudnnMode mode : kCudnnModes) columns.push_back(fmt::format(">{}/cold", to_string(mode)));
  Table table(columns);
  bool compared = false, others = false;
  for (const BenchRow& row : rows) {
    std::vector<std::string> cells = {row.kernel->op,
                                      fmt::format("{}", row.batch),
                                      row.times.loaded_from,
                                      microseconds_text(row.times.warm.median_us),
                                      spread_text(row.times.warm),
                                      microseconds_text(row.times.cold.median_us),
                                      spread_text(row.times.cold),
                                      microseconds_text(row.times.chained.median_us),
                                      row.batch == row.kernel->planned_batch && row.kernel->predicted_us > 0
                                          ? microseconds_text(row.kernel->predicted_us)
                                          : std::string("-")};
    if (dead) {
      const auto cell = [&](const std::string& text) { cells.push_back(row.dead ? text : "-"); };
      cell(fmt::format("{:g}", row.dead.value_or(0)));
      cell(fmt::format("{:.2f}", row.times.skipped));
      cell(row.times.cold.median_us > 0 ? fmt::format("{:.2f}", row.without_us / row.times.cold.median_us) : "-");
    }
    cells.push_back(row.baseline.calls);
    for (const CudnnMode mode : kCudnnModes)
      cells.push_back(row.compared_with(mode) ? time_text(row.baseline[mode]) : "");
    for (const CudnnMode mode : kCudnnModes)
      cells.push_back(row.compared_with(mode) ? ratio_text(row.ratio(mode)) : "");
    compared = compared || (!row.modes.empty() && row.kernel->is_convolution());
    others = others || !row.kernel->is_convolution();
    table.add(std::move(cells));
  }
  if (compared) {
    std::vector<std::string> footer = {others ? "geometric mean of convolutions" : "geometric mean"};
    footer.resize(own_columns + kCudnnModes.size());
    for (const CudnnMode mode : kCudnnModes) footer.push_back(mean_text(rows, mode));
    table.add_footer(std::move(footer));
  }
  return table.print();
}

nlohmann::ordered_json to_json(const std::optional<CudnnTime>& time) {
  if (!time) return nullptr;
  return {{"median_us", time->median_us}, {"p10_us", time->p10_us}, {"p90_us", time->p90_us},
          {"algorithm", time->algorithm}, {"layout", time->layout}, {"graph_replay", time->graph_replay}};
}

// "cudnn_fp32"
std::string json_key(CudnnMode mode) {
  std::string key = fmt::format("cudnn_{}", to_string(mode));
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key;
}

std::string print_json(const std::vector<BenchRow>& rows, const BenchArguments& arguments, const DeviceInfo& device,
                       const std::optional<std::string>& cudnn_version) {
  nlohmann::ordered_json document = bench_document(arguments.package, device);
  document["copies"] = arguments.options.copies;
  document["input_buffers"] = kInputBuffers;
  if (arguments.activation_sparsity) document["activation_sparsity"] = *arguments.activation_sparsity;
  if (!arguments.activations.empty()) document["activations"] = arguments.activations;
  document["rows"] = nlohmann::ordered_json::array();
  if (cudnn_version) document["cudnn"] = *cudnn_version;
  for (const BenchRow& row : rows) {
    nlohmann::ordered_json entry = {{"layer", row.kernel->op},
                                    {"symbol", row.kernel->symbol},
                                    {"kind", row.kernel->kind},
                                    {"shape", describe(row.task)},
                                    {"precision", row.kernel->precision},
                                    {"input_layout", to_string(row.kernel->form.input().layout)},
                                    {"output_layout", to_string(row.kernel->form.output().layout)},
                                    {"batch", row.batch},
                                    {"planned_batch", row.kernel->planned_batch},
                                    {"predicted_us", row.kernel->predicted_us},
                                    {"loaded_from", row.times.loaded_from},
                                    {"dead", known_json(row.dead)},
                                    {"skipped", row.times.skipped},
                                    {"warm", measurement_json(row.times.warm)},
                                    {"cold", measurement_json(row.times.cold)},
                                    {"chained", measurement_json(row.times.chained)}};
    if (row.kernel->is_convolution()) {
      entry["nonzeros"] = row.kernel->layer->nonzeros;
      add_sizes(entry, {*row.kernel, described_code(*row.kernel, device.arch())});
    }
    for (const CudnnMode mode : row.modes) entry[json_key(mode)] = to_json(row.baseline[mode]);
    if (!row.modes.empty()) {
      entry["cudnn_calls"] = row.baseline.calls;
      entry["cudnn_note"] = row.baseline.note;
    }
    document["rows"].push_back(std::move(entry));
  }
  return json_output(document);
}

// Says once what can be done without a GPU: there is no use in asking for the host executor.
DeviceChoice gpu_to_measure_on(const std::string& text, const std::string& package) {
  const std::string without = fmt::format(
      "burin inspect {} shows the predicted times, and burin verify checks the package without a GPU (--device host)",
      package);
  if (text == "host") {
    fail(ErrorKind::usage,
         "--device host: bench measures on a GPU, and the host executor's times say nothing of it; {}", without);
  }
  try {
    return choose_device(text == "auto" ? "cuda" : text);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device || native_arch()) throw;  // there is a GPU, but not this one
  }
  fail(ErrorKind::device, "bench measures on a GPU, and none was found (burin doctor says what is missing); {}",
       without);
}

int bench_package(const BenchArguments& arguments) {
  if (arguments.baseline) check_choice("--baseline", *arguments.baseline, {"cudnn"});
  // Complains before anything takes time.
  const std::vector<int> batches = arguments.batches ? parse_batches(*arguments.batches) : std::vector<int>{};
  if (arguments.json && *arguments.json != "-") check_output_file("--json", *arguments.json, {arguments.package});
  GivenActivations given;
  if (arguments.activation_sparsity) given.zeros = parse_synthetic_zeros(*arguments.activation_sparsity);
  const std::initializer_list<std::string> of_inputs = {"--activations", "--activation-sparsity", "--dead"};
  for (const std::string& option : of_inputs) {
    if (arguments.command->count(option) == 0) continue;
    for (const std::string& other : of_inputs) {
      if (other != option) refuse_given(*arguments.command, {other}, option + " says what kernels read");
    }
  }
  const Package package = read_given_package(arguments.package);
  const bool by_layer = arguments.layer || arguments.baseline || arguments.dead || given.zeros;
  if (!holds_layers(package.manifest) && !by_layer) {
    refuse_given(*arguments.command, {"--copies"}, "a network's steps evict each other's code; it is for layers");
    return bench_network_package(
        {arguments.package, gpu_to_measure_on(arguments.device, arguments.package).ordinal, batches,
         arguments.options.samples, !arguments.no_overlap, arguments.json, arguments.activations},
        package);
  }
  if (arguments.no_overlap) {
    fail(ErrorKind::usage, "--no-overlap is for whole networks, and this measures layers by themselves");
  }
  // What is no convolution is there to be compared.
  const RowsOf rows_of = arguments.baseline && !arguments.dead ? RowsOf::all_that_libraries_do : RowsOf::convolutions;
  std::vector<BenchRow> rows = choose_rows(package.manifest, arguments.layer, batches, rows_of);
  if (arguments.dead) rows = with_dead_inputs(rows, *arguments.dead);
  if (!arguments.activations.empty() && !rows.empty()) given.images = read_layer_images(arguments.activations, rows);

  const DeviceChoice choice = gpu_to_measure_on(arguments.device, arguments.package);
  const Device device = Device::open(choice.ordinal);
  BenchOptions options = arguments.options;
  options.load = tool_load_options();
  const Bench bench(device, package, options);
  std::unique_ptr<Cudnn> cudnn;
  if (arguments.baseline) {
    cudnn = std::make_unique<Cudnn>(device, tool_candidates(Library::cudnn));
  }
  {
    ProgressBar progress("measuring");
    int done = 0;
    double without_us = 0;
    for (BenchRow& row : rows) {
      progress.update(done++, static_cast<int>(rows.size()), row.kernel->op);
      std::vector<float> values;  // random ones, unless images are given
      if (!given.images.empty()) {
        values = repeated(given.images, row.kernel->layer->shape.input_elements() * row.batch);
      }
      row.times = bench.time(*row.kernel, row.batch, {.dead = row.dead, .zeros = given.zeros, .values = values});
      if (!row.dead) without_us = row.times.cold.median_us;
      row.without_us = without_us;
      progress.finished(fmt::format("{} b{} ({} of {})", row.kernel->op, row.batch, done, rows.size()));
      if (!cudnn || row.dead) continue;
      MeasureOptions measure_options;
      measure_options.samples = arguments.options.samples;
      row.modes = modes_for(*row.kernel);
      row.baseline = cudnn->measure(row.task, row.batch, row.modes, bench.stream(), measure_options);
    }
  }
  for (const std::string& note : bench.notes()) print_note(note);
  const std::optional<std::string> version = cudnn ? std::optional<std::string>(cudnn->version()) : std::nullopt;
  if (arguments.json && write_document(*arguments.json, print_json(rows, arguments, device.info(), version))) return 0;
  print_data(
      fmt::format("{} on {} ({}){}; medians of CUDA-graph replays; cold: {} copies of the code in turn; chained: "
                  "so, too,\nand as the steps of a network follow each other\n",
                  arguments.package, device.info().name, device.info().arch(),
                  version ? ", cuDNN " + *version : std::string(), arguments.options.copies));
  print_data(print_table(rows, arguments.dead.has_value()));
  for (const BenchRow& row : rows) {
    if (!row.baseline.note.empty())
      print_note(fmt::format("{}, batch {}: {}", row.kernel->op, row.batch, row.baseline.note));
  }
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure a package's network on a GPU, or its layers by themselves, beside cuDNN if asked");
  arguments->command = command;
  add_option(*command, "PACKAGE", arguments->package, "A .burin file");
  add_option(*command, "--device DEVICE", arguments->device, "cuda:N (default cuda:0)");
  add_option(*command, "--batch LIST", arguments->batches,
             "Batch sizes, e.g. 1,32 (default: what each kernel was tuned for)");
  add_option(*command, "--layer GLOB", arguments->layer,
             "Only layers whose name matches (*, ?, [..]); of a network: these by themselves");
  add_option(*command, "--baseline NAME", arguments->baseline,
             "cudnn: its best algorithm by measurement, in the same run; FP32 kernels beside FP32 and TF32, "
             "half kernels beside FP16 or BF16 and TF32; pools, softmax and copies beside its calls for them");
  add_option(*command, "--dead LIST", arguments->dead,
             "Time each kernel also with activity maps and inputs of which these shares of the (cell, channel) "
             "blocks are zero, e.g. 0,0.5,0.9");
  command
      ->add_option("--activations", arguments->activations,
                   "What the network, or the only layer that is measured, reads, [N,C,H,W] as .npy, in place of random "
                   "values; again and again where a batch has more images; NAME=FILE for each of several inputs")
      ->type_name("[NAME=]FILE")
      ->expected(1)
      ->take_all();
  add_option(*command, "--activation-sparsity SHARE", arguments->activation_sparsity,
             fmt::format("Layers by themselves, with zeros among their random inputs: 0.8, or 0.8:blobs; patterns: {}",
                         known_names<ZeroPattern>()));
  command->add_flag("--no-overlap", arguments->no_overlap,
                    "Network: no kernel is launched before those that it waits for have ended altogether");
  add_option(*command, "--json FILE", arguments->json,
             "Write all figures to FILE, too (-: to stdout instead of the table)");
  add_option(*command, "--samples N", arguments->options.samples, "Timed graph replays for each figure (default 100)")
      ->check(whole_number(1, 100000));
  add_option(*command, "--copies N", arguments->options.copies, "Copies of the code for the cold times (default 8)")
      ->check(whole_number(1, 64));
  command->callback([arguments, &action] { action = [arguments] { return bench_package(*arguments); }; });
}

}  // namespace burin
