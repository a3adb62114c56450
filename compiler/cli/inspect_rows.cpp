#include "compiler/cli/inspect_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "compiler/choose/choose.h"
#include "compiler/choose/pays_from.h"
#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "compiler/make_kernel.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"
#include "ir/package/manifest_index.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

std::string arguments_text(const std::vector<const Buffer*>& arguments) {
  std::vector<std::string> texts;
  for (const Buffer* argument : arguments) {
    const TensorFormat& format = argument->format;
    texts.push_back(fmt::format("{} ({}{})", argument->tensor, shape_text(argument->shape),
                                format.is_plain() ? "" : " " + to_string(format)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string print_steps(const ProgramMemory& memory, const std::optional<std::string>& arch) {
  const Program& program = *memory.program;
  Table table({">step", "operator", "kind", "kernel", ">live", ">fill", ">regs", ">spill B", ">code", ">weights",
               ">scratch", ">dense", ">CSR", ">model us", "after"});
  double predicted = 0;
  const auto if_any = [](std::int64_t bytes) { return bytes > 0 ? bytes_text(bytes) : ""; };
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const auto& [kernel, loaded, scratch, forms] = memory.steps[i];
    const KernelBinary binary = described_code(*kernel, arch);
    predicted += kernel->predicted_us;
    table.add({fmt::format("{}", i), step.name, step.kind, kernel->plan_short + runner_up_text(step.options),
               live_text(*kernel), fill_text(*kernel), known_count(binary.registers), known_count(binary.spill_bytes),
               known_bytes(loaded.code_bytes), if_any(loaded.weight_bytes + loaded.library_bytes), if_any(scratch),
               forms ? bytes_text(forms->dense_bytes) : "", forms ? bytes_text(forms->csr_bytes) : "",
               kernel->predicted_us > 0 ? microseconds_text(kernel->predicted_us) : "",
               fmt::format("{}", fmt::join(step.after, ","))});
  }
  const MemorySum& sum = memory.sum;
  table.add_footer({"", fmt::format("{} steps", program.steps.size()), "", "", "", "", "", "", if_any(sum.code_bytes),
                    if_any(sum.weight_bytes), if_any(sum.scratch_bytes), if_any(sum.forms.dense_bytes),
                    if_any(sum.forms.csr_bytes), predicted > 0 ? microseconds_text(predicted) : "", ""});
  return table.print();
}

}  // namespace

void check_arch_of(const Package& package, const std::optional<std::string>& arch) {
  if (!arch) return;
  std::vector<std::string> archs;
  for (const Kernel& kernel : package.manifest.kernels) {
    for (const KernelBinary& binary : kernel.binaries) {
      const bool is_new = std::ranges::find(archs, binary.arch) == archs.end();
      if (binary.kind == BinaryKind::cubin && is_new) archs.push_back(binary.arch);
    }
  }
  if (std::ranges::find(archs, *arch) != archs.end()) return;
  fail(ErrorKind::usage, "--arch {}: the package has {}{}", *arch,
       archs.empty() ? "no machine code, only PTX" : fmt::format("machine code for {}", fmt::join(archs, ", ")),
       did_you_mean(*arch, archs));
}

std::string short_shape(const ConvShape& shape) {
  std::string text = fmt::format("{}x{}x{} > {}, {}x{}", shape.in_channels, shape.in_h, shape.in_w, shape.out_channels,
                                 shape.kernel_h, shape.kernel_w);
  const auto add_pair = [&text](char name, int h, int w, int usual) {
    if (h == w && h == usual) return;
    text += h == w ? fmt::format(" {}{}", name, h) : fmt::format(" {}{}x{}", name, h, w);
  };
  add_pair('s', shape.stride_h, shape.stride_w, 1);
  const Padding& pad = shape.pad;
  if (pad.top == pad.bottom && pad.left == pad.right) {
    add_pair('p', pad.top, pad.left, 0);
  } else {
    text += fmt::format(" p{},{},{},{}", pad.top, pad.bottom, pad.left, pad.right);
  }
  add_pair('d', shape.dilation_h, shape.dilation_w, 1);
  if (shape.groups != 1) text += fmt::format(" g{}", shape.groups);
  if (const std::optional<Pool>& pool = shape.epilogue.pool) {
    text += fmt::format(", {} {}x{}", to_string(pool->kind), pool->kernel_h, pool->kernel_w);
    add_pair('s', pool->stride_h, pool->stride_w, 1);
  }
  return text;
}

double InspectRow::sparsity() const {
  const std::int64_t weights = kernel.layer->shape.weight_elements();
  return weights == 0 ? 0.0 : 1.0 - static_cast<double>(kernel.layer->nonzeros) / static_cast<double>(weights);
}

namespace {

std::optional<double> live_share(const Kernel& kernel) {
  if (!kernel.layer || !kernel.layer->multiplied) return std::nullopt;
  return kernel.layer->multiplied->live_share();
}
std::optional<double> fill(const Kernel& kernel) { return kernel.layer ? kernel.layer->fill() : std::nullopt; }

}  // namespace

std::string percent_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : std::string();
}

std::string live_text(const Kernel& kernel) { return percent_text(live_share(kernel)); }
std::string fill_text(const Kernel& kernel) { return percent_text(fill(kernel)); }

void add_multiplied(nlohmann::ordered_json& entry, const Kernel& kernel) {
  entry["live_columns"] = known_json(live_share(kernel));
  entry["fill"] = known_json(fill(kernel));
}

void add_layer(nlohmann::ordered_json& entry, const InspectRow& row) {
  const KernelLayer& layer = *row.kernel.layer;
  const ConvShape& s = layer.shape;
  entry.update({{"shape", describe(s)},
                {"in_channels", s.in_channels},
                {"out_channels", s.out_channels},
                {"kernel", {s.kernel_h, s.kernel_w}},
                {"input", {s.in_h, s.in_w}},
                {"output", {s.out_h(), s.out_w()}},
                {"groups", s.groups},
                {"sparsity", row.sparsity()},
                {"nonzeros", layer.nonzeros},
                {"dead_inputs", layer.dead_inputs},
                {"dead_outputs", layer.dead_outputs}});
}

void add_sizes(nlohmann::ordered_json& entry, const InspectRow& row) {
  entry["registers"] = known_json(row.code.registers);
  entry["spill_bytes"] = known_json(row.code.spill_bytes);
  entry["code_bytes"] = known_json(row.code.code_bytes);
  const WeightForms forms = row.forms();
  entry["csr_bytes"] = forms.csr_bytes;
  entry["dense_bytes"] = forms.dense_bytes;
}

std::vector<InspectRow> rows_of_package(const Package& package, const std::optional<std::string>& layer_glob,
                                        const std::optional<std::string>& arch) {
  std::vector<InspectRow> rows;
  for (const Kernel& kernel : package.manifest.kernels) {
    if (kernel.is_convolution() && matches(layer_glob, kernel.op))
      rows.push_back({kernel, described_code(kernel, arch)});
  }
  if (rows.empty() && layer_glob) fail(ErrorKind::usage, "no layer of the package matches --layer '{}'", *layer_glob);
  return rows;
}

NetworkRows rows_of_network(const ProgramGraphs& graphs, const CompileOptions& options) {
  NetworkRows made;
  ProgressBar progress("planning");
  // Kernels are those of programs: their tensors are in the formats that follow from the batch size.
  std::map<int, Network> formatted;
  std::vector<Task> tasks;
  for (const ProgramGraphs::Shared& shared : graphs.shared_by(options.batches)) {
    std::map<std::pair<std::size_t, std::size_t>, Task>
        of_graph;  // of a layer and a batch size, in the order asked for
    for (std::size_t i = 0; i < shared.batches.size(); ++i) {
      const int batch = shared.batches[i];
      const Network& network = formatted.try_emplace(batch, in_formats(*shared.graph, options, batch)).first->second;
      for (Task& task : layer_tasks(network, options, batch)) {
        if (task.layer == nullptr) continue;
        const auto number = static_cast<std::size_t>(task.layer - network.layers.data());
        of_graph.try_emplace({number, i}, std::move(task));
      }
    }
    for (auto& [key, task] : of_graph) tasks.push_back(std::move(task));
  }
  made.rows.resize(tasks.size());
  made.choices.resize(tasks.size());
  std::mutex mutex;
  int done = 0;
  for_each_parallel(tasks.size(), options.jobs, [&](std::size_t i) {
    const Task& task = tasks[i];
    const Choice choice = cached_choice(task, options);
    made.choices[i] = {task.name, task.batch, candidates_of(choice.options, "")};
    if (options.seeks_weight_zeros) made.choices[i].weight_zeros = zero_weights_pay_from(task, options);
    const Recipe recipe = find_provider(choice.candidate.provider)->make(task, choice.candidate.plan);
    made.rows[i] = {describe_kernel(task, choice.candidate, recipe).kernel};
    const std::lock_guard lock(mutex);
    ++done;
    progress.update(done, static_cast<int>(tasks.size()), task.name);
    progress.finished(fmt::format("{} b{} ({} of {})", task.name, task.batch, done, tasks.size()));
  });
  return made;
}

std::string memory_text(const MemorySum& sum) {
  std::string text =
      fmt::format("{} (code {}, weights {}, arena {}, scratch {})", bytes_text(sum.total()), bytes_text(sum.code_bytes),
                  bytes_text(sum.weight_bytes), bytes_text(sum.arena_bytes), bytes_text(sum.scratch_bytes));
  if (sum.kernels_without_code > 0) {
    text += fmt::format(", without the code of {} kernel{}, which the driver makes", sum.kernels_without_code,
                        sum.kernels_without_code == 1 ? "" : "s");
  }
  if (sum.forms.dense_bytes > 0) {
    text += fmt::format("; the layers' weights are {} dense, {} as CSR", bytes_text(sum.forms.dense_bytes),
                        bytes_text(sum.forms.csr_bytes));
  }
  return text;
}

std::string batches_table(const Manifest& manifest) {
  Table table({">images", ">program", ">model us", ">own program us", ">times"});
  for (const BatchEstimate& batch : manifest.batches) {
    table.add({fmt::format("{}", batch.images), fmt::format("{}", batch.program), microseconds_text(batch.us),
               microseconds_text(batch.own_us),
               batch.own_us > 0 ? fmt::format("{:.2f}", batch.us / batch.own_us) : ""});
  }
  return table.print();
}

std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory) {
  const Program& first = manifest.programs.front();
  std::string text =
      fmt::format("inputs: {}; outputs: {}\n", arguments_text(first.inputs()), arguments_text(first.outputs()));
  const DeviceMemory taken = device_memory(manifest, arch);
  for (const ProgramMemory& of : taken.programs) {
    const Program& program = *of.program;
    text += fmt::format("\nbatch {}: an arena of {}; a buffer for each tensor would take {}\n", program.batch,
                        bytes_text(program.arena_bytes), bytes_text(program.naive_bytes));
    text += print_steps(of, arch);
    text += fmt::format("device memory: {}\n", memory_text(of.sum));
    if (memory) text += "\n" + print(program);
  }
  if (taken.programs.size() > 1) {
    text += fmt::format("\ndevice memory with all {} programs loaded, one at work: {}\n", taken.programs.size(),
                        memory_text(taken.sum));
  }
  if (!manifest.batches.empty()) text += "\n" + batches_table(manifest);
  return text;
}

namespace {

nlohmann::ordered_json memory_json(const MemorySum& sum) {
  return {{"code_bytes", sum.code_bytes},         {"kernels_without_code", sum.kernels_without_code},
          {"weight_bytes", sum.weight_bytes},     {"arena_bytes", sum.arena_bytes},
          {"scratch_bytes", sum.scratch_bytes},   {"total_bytes", sum.total()},
          {"dense_bytes", sum.forms.dense_bytes}, {"csr_bytes", sum.forms.csr_bytes}};
}

nlohmann::ordered_json memory_json(const StepMemory& step) {
  nlohmann::ordered_json entry = {{"code_bytes", known_json(step.loaded.code_bytes)},
                                  {"weight_bytes", step.loaded.weight_bytes + step.loaded.library_bytes},
                                  {"scratch_bytes", step.scratch_bytes}};
  entry["dense_bytes"] = step.forms ? nlohmann::ordered_json(step.forms->dense_bytes) : nlohmann::ordered_json();
  entry["csr_bytes"] = step.forms ? nlohmann::ordered_json(step.forms->csr_bytes) : nlohmann::ordered_json();
  return entry;
}

}  // namespace

nlohmann::ordered_json kernel_json(const Kernel& kernel, const std::optional<std::string>& arch) {
  nlohmann::ordered_json entry = {{"symbol", kernel.symbol},   {"operator", kernel.op},
                                  {"kind", kernel.kind},       {"provider", kernel.provider},
                                  {"plan", kernel.plan_short}, {"weight_bytes", memory_of(kernel, arch).weight_bytes}};
  add_multiplied(entry, kernel);
  for (const KernelFunction& called : kernel.functions) {
    nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
    for (const UserAttribute& attribute : called.function.attributes) attributes[attribute.name] = attribute.value;
    entry["functions"].push_back({{"name", called.function.name},
                                  {"inputs", called.function.inputs},
                                  {"attributes", attributes},
                                  {"source_hash", called.function.source_hash}});
  }
  if (const KernelBinary binary = described_code(kernel, arch); !binary.arch.empty()) {
    entry["arch"] = binary.arch;
    entry["registers"] = binary.registers;
    entry["spill_bytes"] = binary.spill_bytes;
    entry["code_bytes"] = binary.code_bytes;
  }
  return entry;
}

nlohmann::ordered_json network_json(const Manifest& manifest, const std::optional<std::string>& arch) {
  nlohmann::ordered_json document = {{"kernels", nlohmann::ordered_json::array()},
                                     {"programs", nlohmann::ordered_json::array()}};
  for (const Kernel& kernel : manifest.kernels) document["kernels"].push_back(kernel_json(kernel, arch));
  const DeviceMemory taken = device_memory(manifest, arch);
  for (const ProgramMemory& of : taken.programs) {
    nlohmann::ordered_json entry = to_json(*of.program);
    for (std::size_t i = 0; i < of.steps.size(); ++i) entry["steps"][i]["memory"] = memory_json(of.steps[i]);
    entry["device_memory"] = memory_json(of.sum);
    document["programs"].push_back(std::move(entry));
  }
  document["device_memory"] = memory_json(taken.sum);
  document["batches"] = nlohmann::ordered_json::array();
  for (const BatchEstimate& batch : manifest.batches) {
    document["batches"].push_back(
        {{"images", batch.images}, {"program", batch.program}, {"us", batch.us}, {"own_us", batch.own_us}});
  }
  document["objective"] = to_string(manifest.objective);
  document["memory_limit"] =
      manifest.memory_limit ? nlohmann::ordered_json(*manifest.memory_limit) : nlohmann::ordered_json();
  return document;
}

}  // namespace burin
