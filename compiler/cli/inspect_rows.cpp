#include "compiler/cli/inspect_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/choose/choose.h"
#include "compiler/cli/console.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/import/names.h"
#include "compiler/make_kernel.h"
#include "compiler/program_tasks.h"
#include "ir/error.h"
#include "ir/package/manifest_index.h"

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

std::string print_steps(const ManifestIndex& index, const Program& program, const std::optional<std::string>& arch) {
  Table table({">step", "operator", "kind", "kernel", ">live", ">fill", ">regs", ">spill B", ">code", ">weights",
               ">model us", "after"});
  std::int64_t code = 0, weights = 0;
  double predicted = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const Kernel& kernel = index.kernel(step.kernel);
    const KernelBinary binary = described_code(kernel, arch);
    code += std::max<std::int64_t>(0, binary.code_bytes);
    weights += weight_bytes(kernel);
    predicted += kernel.predicted_us;
    table.add({fmt::format("{}", i), step.name, step.kind, kernel.plan_short + others_text(step.options),
               live_text(kernel), fill_text(kernel), known_count(binary.registers), known_count(binary.spill_bytes),
               known_bytes(binary.code_bytes), weight_bytes(kernel) == 0 ? "" : bytes_text(weight_bytes(kernel)),
               kernel.predicted_us > 0 ? microseconds_text(kernel.predicted_us) : "",
               fmt::format("{}", fmt::join(step.after, ","))});
  }
  table.add_footer({"", fmt::format("{} steps", program.steps.size()), "", "", "", "", "", "",
                    code > 0 ? bytes_text(code) : "", weights > 0 ? bytes_text(weights) : "",
                    predicted > 0 ? microseconds_text(predicted) : "", ""});
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

std::int64_t weight_bytes(const Kernel& kernel) {
  const KernelTensor* weights = kernel.form.find(TensorRole::weights);
  return weights == nullptr ? 0 : weights->run_words * kWordBytes;
}

KernelBinary described_code(const Kernel& kernel, const std::optional<std::string>& arch) {
  const auto fits = [&](const KernelBinary& binary) {
    return binary.kind == BinaryKind::cubin && (!arch || binary.arch == *arch);
  };
  const auto found = std::ranges::find_if(kernel.binaries, fits);
  return found == kernel.binaries.end() ? KernelBinary{} : *found;
}

double InspectRow::sparsity() const {
  const std::int64_t weights = kernel.layer->shape.weight_elements();
  return weights == 0 ? 0.0 : 1.0 - static_cast<double>(kernel.layer->nonzeros) / static_cast<double>(weights);
}

std::int64_t InspectRow::csr_bytes() const {
  constexpr std::int64_t kValueBytes = 4, kColumnBytes = 4, kRowPointerBytes = 4;
  const KernelLayer& layer = *kernel.layer;
  return layer.nonzeros * (kValueBytes + kColumnBytes) +
         (std::int64_t{layer.shape.out_channels} + 1) * kRowPointerBytes;
}

std::int64_t InspectRow::dense_bytes() const {
  return kernel.layer->shape.weight_elements() * static_cast<std::int64_t>(sizeof(float));
}

namespace {

std::optional<double> live_share(const Kernel& kernel) {
  if (!kernel.layer || !kernel.layer->multiplied) return std::nullopt;
  return kernel.layer->multiplied->live_share();
}
std::optional<double> fill(const Kernel& kernel) { return kernel.layer ? kernel.layer->fill() : std::nullopt; }

std::string percent_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : std::string();
}

}  // namespace

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
  entry["csr_bytes"] = row.csr_bytes();
  entry["dense_bytes"] = row.dense_bytes();
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

std::vector<InspectRow> rows_of_network(const Network& network, const CompileOptions& options) {
  std::vector<InspectRow> rows;
  ProgressBar progress("planning");
  // Kernels are those of programs: their tensors are in the formats that follow from the batch size.
  std::map<int, Network> formatted;
  std::map<std::pair<std::size_t, int>, Task> tasks;  // of a layer and a batch size
  for (const int batch : options.batches) {
    const auto [entry, is_new] = formatted.try_emplace(batch, in_formats(network, options, batch));
    const std::vector<ConvLayer>& layers = entry->second.layers;
    for (Task& task : layer_tasks(entry->second, options, batch)) {
      if (task.layer == nullptr) continue;
      const auto number = static_cast<std::size_t>(task.layer - layers.data());
      tasks.try_emplace({number, batch}, std::move(task));
    }
  }
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const std::string& name = network.layers[i].name;
    for (const int batch : options.batches) {
      progress.update(static_cast<int>(rows.size()), static_cast<int>(tasks.size()), name);
      const Task& task = tasks.at({i, batch});
      const Candidate candidate = choose(task, options).candidate;
      const Recipe recipe = find_provider(candidate.provider)->make(task, candidate.plan);
      rows.push_back({describe_kernel(task, candidate, recipe, candidate.symbol).kernel});
      progress.finished(fmt::format("{} b{} ({} of {})", name, batch, rows.size(), tasks.size()));
    }
  }
  return rows;
}

std::string print_network(const Manifest& manifest, const std::optional<std::string>& arch, bool memory) {
  const Program& first = manifest.programs.front();
  const ManifestIndex index(manifest);
  std::string text =
      fmt::format("inputs: {}; outputs: {}\n", arguments_text(first.inputs()), arguments_text(first.outputs()));
  for (const Program& program : manifest.programs) {
    text += fmt::format("\nbatch {}: an arena of {}; a buffer for each tensor would take {}\n", program.batch,
                        bytes_text(program.arena_bytes), bytes_text(program.naive_bytes));
    text += print_steps(index, program, arch);
    if (memory) text += "\n" + print(program);
  }
  return text;
}

nlohmann::ordered_json kernel_json(const Kernel& kernel, const std::optional<std::string>& arch) {
  nlohmann::ordered_json entry = {{"symbol", kernel.symbol},   {"operator", kernel.op},
                                  {"kind", kernel.kind},       {"provider", kernel.provider},
                                  {"plan", kernel.plan_short}, {"weight_bytes", weight_bytes(kernel)}};
  add_multiplied(entry, kernel);
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
  for (const Program& program : manifest.programs) document["programs"].push_back(to_json(program));
  return document;
}

}  // namespace burin
