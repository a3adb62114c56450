#include "compiler/cli/network_bench.h"

#include <filesystem>

#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/npy_tensor.h"
#include "compiler/cli/table.h"
#include "compiler/cli/tensor_files.h"
#include "compiler/execute/executor.h"
#include "compiler/measure/network_times.h"
#include "ir/error.h"
#include "ir/package/atomic_file.h"
#include "ir/package/manifest_index.h"

namespace burin {
namespace {

NetworkBench::StepRow describe_step(const ManifestIndex& kernels, const NetworkRun& run, int index) {
  const Step& step = run.step(index);
  NetworkBench::StepRow row{step.name, step.kind, step.kernel, "", run.part_of(index), {}, step.options};
  const NetworkPart& part = run.schedule().parts[static_cast<std::size_t>(row.part)];
  const bool as_planned = part.images == part.program_batch;
  row.kernel = run.library_call(index);  // what runs, of a kernel that could be either
  const Kernel* kernel = kernels.find_kernel(row.symbol);
  if (row.kernel.empty() && kernel != nullptr) row.kernel = kernel->plan_short;
  if (!row.options.empty() && as_planned && row.options.front().us > 0) row.predicted_us = row.options.front().us;
  return row;
}

double images_per_second(const NetworkBench& bench) {
  constexpr double kMicroseconds = 1e6;
  const double us = bench.times.back_to_back.mean_us;
  return us > 0 ? bench.batch / us * kMicroseconds : 0;
}

std::string percentiles(const Measurement& m) { return times_text({m.median_us, m.p90_us, m.p99_us}); }

std::string print_summary(const std::vector<NetworkBench>& benches) {
  Table table({">batch", "runs as", ">latency us p50/p90/p99", ">with host us p50/p90/p99", ">back to back us",
               ">images/s", ">sum of steps us", ">arena"});
  for (const NetworkBench& bench : benches) {
    const std::string prefix = fmt::format("batch {} runs as ", bench.batch);
    std::string parts = bench.schedule;
    if (parts.starts_with(prefix)) parts.erase(0, prefix.size());
    if (parts == fmt::format("{}", bench.batch)) parts.clear();  // one program, as it was compiled
    table.add({fmt::format("{}", bench.batch), parts, percentiles(bench.times.latency),
               percentiles(bench.times.host_latency), microseconds_text(bench.times.back_to_back.mean_us),
               with_separators(static_cast<long long>(images_per_second(bench))),
               microseconds_text(bench.times.sum_of_steps_us()), bytes_text(bench.arena_bytes)});
  }
  return table.print();
}

std::string share_text(double us, double all) { return all > 0 ? fmt::format("{:.1f} %", 100 * us / all) : "-"; }

std::string print_steps(const NetworkBench& bench) {
  Table table({">step", "operator", "kind", "kernel", ">us", ">p10/p90", ">share", ">model us"});
  const double all = bench.times.sum_of_steps_us();
  double predicted = 0;
  for (std::size_t i = 0; i < bench.steps.size(); ++i) {
    const NetworkBench::StepRow& row = bench.steps[i];
    const Measurement& m = bench.times.steps[i];
    predicted += row.predicted_us.value_or(0);
    table.add({fmt::format("{}", i), row.op, row.kind, row.kernel + runner_up_text(row.options),
               microseconds_text(m.median_us), times_text({m.p10_us, m.p90_us}), share_text(m.median_us, all),
               row.predicted_us ? microseconds_text(*row.predicted_us) : ""});
  }
  table.add_footer({"", fmt::format("{} steps", bench.steps.size()), "", "", microseconds_text(all), "",
                    share_text(all, all), predicted > 0 ? microseconds_text(predicted) : ""});
  return table.print();
}

nlohmann::ordered_json to_json(const NetworkBench& bench) {
  nlohmann::ordered_json entry = {{"batch", bench.batch},
                                  {"schedule", bench.schedule},
                                  {"arena_bytes", bench.arena_bytes},
                                  {"scratch_bytes", bench.scratch_bytes},
                                  {"latency", measurement_json(bench.times.latency)},
                                  {"host_latency", measurement_json(bench.times.host_latency)},
                                  {"back_to_back", measurement_json(bench.times.back_to_back)},
                                  {"images_per_second", images_per_second(bench)},
                                  {"sum_of_steps_us", bench.times.sum_of_steps_us()},
                                  {"empty_interval", measurement_json(bench.times.empty)},
                                  {"steps", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < bench.steps.size(); ++i) {
    const NetworkBench::StepRow& row = bench.steps[i];
    entry["steps"].push_back({{"step", i},
                              {"operator", row.op},
                              {"kind", row.kind},
                              {"part", row.part},
                              {"symbol", row.symbol},
                              {"kernel", row.kernel},
                              {"options", options_json(row.options)},
                              {"time", measurement_json(bench.times.steps[i])},
                              {"predicted_us", known_json(row.predicted_us)}});
  }
  return entry;
}

// The values of each input of the network, one image after the other.
std::vector<std::vector<float>> read_network_images(const std::vector<std::string>& given, const Manifest& manifest) {
  std::vector<std::vector<float>> images;
  if (given.empty()) return images;
  const std::vector<const Buffer*> inputs = manifest.programs.front().inputs();
  std::vector<std::string> names;
  for (const Buffer* input : inputs) names.push_back(input->tensor);
  const std::vector<std::string> files = files_of({"--activations", "input"}, given, names, "the network");
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ElementType element = inputs[i]->format.is_loose() ? inputs[i]->format.element : ElementType::f32;
    NpyTensor tensor = read_npy(files[i], element);
    images_of(tensor, files[i], fmt::format("the network's input '{}'", names[i]), inputs[i]->shape);
    images.push_back(std::move(tensor.values));
  }
  return images;
}

}  // namespace

nlohmann::ordered_json measurement_json(const Measurement& m) {
  return {{"median_us", m.median_us},
          {"p10_us", m.p10_us},
          {"p90_us", m.p90_us},
          {"p99_us", m.p99_us},
          {"min_us", m.min_us},
          {"launches_per_graph", m.launches_per_graph},
          {"samples", m.samples_us.size()}};
}

nlohmann::ordered_json bench_document(const std::string& package, const DeviceInfo& device) {
  return {{"package", package},
          {"package_bytes", std::filesystem::file_size(package)},
          {"device", device.name},
          {"arch", device.arch()},
          {"driver", device.driver_version}};
}

bool write_document(const std::string& file, const std::string& document) {
  const bool to_stdout = file == "-";
  if (to_stdout) {
    print_data(document);
  } else {
    write_file_atomically(file, document);
  }
  return to_stdout;
}

NetworkBench bench_network(const Device& device, const Stream& stream, const LoadedNetwork& network,
                           const Manifest& manifest, int batch, const NetworkOptions& options,
                           const NetworkMeasureOptions& measure_options,
                           const std::vector<std::vector<float>>& images) {
  InputValues values;  // random ones, unless images are given
  if (!images.empty()) values = [&](std::size_t input, std::int64_t count) { return repeated(images[input], count); };
  const BoundNetwork bound = bind_own_memory(device, network, batch, options, values);
  const NetworkRun& run = bound.run;
  NetworkBench bench;
  bench.batch = batch;
  bench.schedule = run.schedule().text();
  bench.arena_bytes = run.arena_bytes();
  bench.scratch_bytes = run.scratch_bytes();
  bench.times = measure_network(device, stream, run, measure_options);
  const ManifestIndex kernels(manifest);
  for (int i = 0; i < run.steps(); ++i) bench.steps.push_back(describe_step(kernels, run, i));
  stream.synchronize();
  return bench;
}

std::string print_benches(const NetworkBenchArguments& arguments, const DeviceInfo& device,
                          const std::vector<NetworkBench>& benches) {
  std::string text = fmt::format(
      "{} on {} ({}); {} samples of each figure{}\n"
      "latency: one launch of the network's graph on an idle device, between events, and until the host has seen its "
      "end;\nback to back: launches that follow each other at once\n",
      arguments.package, device.name, device.arch(), arguments.samples,
      arguments.programmatic ? "" : ", launches do not overlap");
  text += print_summary(benches);
  for (const NetworkBench& bench : benches) {
    text += fmt::format(
        "\n{}: each step between events, medians; in the network's order, one after the other: none overlaps another, "
        "as they may\nin the network; code and inputs are as cold as there; an interval without a kernel takes {} us\n",
        bench.schedule, microseconds_text(bench.times.empty.median_us));
    text += print_steps(bench);
  }
  return text;
}

std::string benches_json(const NetworkBenchArguments& arguments, const DeviceInfo& device,
                         const std::vector<NetworkBench>& benches) {
  nlohmann::ordered_json document = bench_document(arguments.package, device);
  document["samples"] = arguments.samples;
  document["programmatic"] = arguments.programmatic;
  document["network"] = nlohmann::ordered_json::array();
  for (const NetworkBench& bench : benches) document["network"].push_back(to_json(bench));
  return json_output(document);
}

int bench_network_package(const NetworkBenchArguments& arguments, const Package& package) {
  const std::vector<std::vector<float>> images = read_network_images(arguments.activations, package.manifest);
  const Device device = Device::open(arguments.ordinal);
  // Not an owner: the package outlives what is loaded of it.
  const std::shared_ptr<const Package> shared(std::shared_ptr<void>(), &package);
  const LoadedNetwork network(LoadedPackage(device, shared, arguments.package, tool_load_options()));
  const Stream stream(device);
  NetworkMeasureOptions options;
  options.samples = arguments.samples;
  std::vector<NetworkBench> benches;
  {
    ProgressBar progress("measuring");
    const std::vector<int> batches = arguments.batches.empty() ? network.batches() : arguments.batches;
    for (const int batch : batches) {
      progress.update(static_cast<int>(benches.size()), static_cast<int>(batches.size()),
                      fmt::format("batch {}", batch));
      benches.push_back(bench_network(device, stream, network, package.manifest, batch,
                                      {.programmatic = arguments.programmatic}, options, images));
      progress.finished(fmt::format("batch {} ({} of {})", batch, benches.size(), batches.size()));
    }
  }
  for (const std::string& note : network.notes()) print_note(note);
  if (arguments.json && write_document(*arguments.json, benches_json(arguments, device.info(), benches))) return 0;
  print_data(print_benches(arguments, device.info(), benches));
  return 0;
}

}  // namespace burin
