// burin inspect: what a weights file holds and how it would be compiled, or what a package holds.
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "compiler/choose/choose.h"
#include "compiler/cli/arguments.h"
#include "compiler/cli/candidates.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/inspect_coverage.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/json_output.h"
#include "compiler/cli/table.h"
#include "compiler/cli/tuning_report.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "compiler/network/memory_plan.h"
#include "compiler/network/passes.h"
#include "compiler/program_graphs.h"
#include "ir/error.h"

namespace burin {
namespace {

struct InspectArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string input;
  std::string batches = "1", precision = std::string(to_string(Precision::fp32));
  std::optional<std::string> arch, layout, why;
  bool json = false;
  bool tuning = false;
  bool flip = false;
  bool simplify = false, no_siblings = false;
  bool memory = false;
  bool coverage = false;
  ImportArguments import;
};

// nchw goes without saying, and of half tensors n2chw.
bool is_usual(TensorLayout layout) { return layout == TensorLayout::nchw || layout == TensorLayout::n2chw; }

std::string layout_text(const KernelForm& form) {
  const TensorLayout input = form.input().layout, output = form.output().layout;
  if (input != output) return fmt::format("{} > {}", to_string(input), to_string(output));
  return is_usual(input) ? std::string() : std::string(to_string(input));
}

// The sums over the rows of one batch size: what the network takes.
// `rows`: of kernels for so many images.
std::vector<std::string> sum_cells(const std::vector<const InspectRow*>& rows, int batch) {
  const auto count = static_cast<int>(rows.size());
  std::int64_t nonzeros = 0, weights = 0, code = 0;
  WeightForms forms;
  double predicted = 0, tuned = 0;
  bool all_code = true, all_tuned = true;
  for (const InspectRow* row : rows) {
    const Kernel& kernel = row->kernel;
    nonzeros += kernel.layer->nonzeros;
    weights += kernel.layer->shape.weight_elements();
    predicted += kernel.predicted_us;
    all_tuned = all_tuned && kernel.tuning;
    if (kernel.tuning) tuned += chosen(*kernel.tuning).us;
    all_code = all_code && row->code.code_bytes >= 0;
    code += row->code.code_bytes;
    forms += row->forms();
  }
  const double sparsity = weights > 0 ? 1.0 - static_cast<double>(nonzeros) / static_cast<double>(weights) : 0.0;
  return {fmt::format("{} layer{}", count, count == 1 ? "" : "s"),
          "",
          fmt::format("{}", batch),
          fmt::format("{:.1f} %", 100.0 * sparsity),
          with_separators(nonzeros),
          "",
          "",
          "",
          "",
          "",
          "",
          "",
          microseconds_text(predicted),
          all_tuned ? microseconds_text(tuned) : "",
          "",
          "",
          known_bytes(all_code ? code : -1),
          bytes_text(forms.csr_bytes),
          bytes_text(forms.dense_bytes)};
}

std::string print_table(const std::vector<InspectRow>& rows) {
  Table table({"layer", "shape", ">batch", ">sparsity", ">nonzeros", ">dead in/out", "provider", "precision", "plan",
               "layout", ">live", ">fill", ">model us", ">tuned us", ">regs", ">spill B", ">code", ">CSR", ">dense"});
  std::vector<int> batches;
  std::map<int, std::vector<const InspectRow*>> rows_of;  // of a batch size
  for (const InspectRow& row : rows) {
    const Kernel& kernel = row.kernel;
    const KernelLayer& layer = *kernel.layer;
    table.add({kernel.op, short_shape(layer.shape), fmt::format("{}", kernel.planned_batch),
               fmt::format("{:.1f} %", 100.0 * row.sparsity()), with_separators(layer.nonzeros),
               fmt::format("{}/{}", layer.dead_inputs, layer.dead_outputs), kernel.provider,
               precision_text(kernel.precision), kernel.plan_short, layout_text(kernel.form), live_text(kernel),
               fill_text(kernel), kernel.predicted_us > 0 ? microseconds_text(kernel.predicted_us) : "",
               kernel.tuning ? microseconds_text(chosen(*kernel.tuning).us) : "", known_count(row.code.registers),
               known_count(row.code.spill_bytes), known_bytes(row.code.code_bytes), bytes_text(row.forms().csr_bytes),
               bytes_text(row.forms().dense_bytes)});
    std::vector<const InspectRow*>& of_batch = rows_of[kernel.planned_batch];
    if (of_batch.empty()) batches.push_back(kernel.planned_batch);
    of_batch.push_back(&row);
  }
  for (const int batch : batches) table.add_footer(sum_cells(rows_of[batch], batch));
  return table.print();
}

nlohmann::ordered_json to_json(const InspectRow& row) {
  const Kernel& kernel = row.kernel;
  const InputZeros* zeros = kernel.layer && kernel.layer->zeros ? &*kernel.layer->zeros : nullptr;
  nlohmann::ordered_json entry = {{"layer", kernel.op}, {"batch", kernel.planned_batch}};
  add_layer(entry, row);
  entry.update({{"provider", kernel.provider},
                {"precision", kernel.precision},
                {"kept_in_fp32", kernel.kept_in_fp32},
                {"input_zeros", known_json(zeros != nullptr ? std::optional(zeros->share) : std::nullopt)},
                {"skipping_pays_from", known_json(zeros != nullptr ? zeros->pays_from : std::nullopt)},
                {"plan", kernel.plan_short},
                {"input_layout", to_string(kernel.form.input().layout)},
                {"output_layout", to_string(kernel.form.output().layout)},
                {"predicted_us", kernel.predicted_us},
                {"tuning", kernel.tuning ? to_json(*kernel.tuning) : nlohmann::ordered_json()},
                {"symbol", kernel.symbol},
                {"arch", row.code.arch}});
  add_multiplied(entry, kernel);
  add_sizes(entry, row);
  return entry;
}

// Which layers calibration has kept in FP32, each once.
void print_kept(const std::vector<InspectRow>& rows) {
  Table table({"kept in fp32", "because"});
  std::set<std::string> told;
  for (const auto& [kernel, code] : rows) {
    if (!kernel.kept_in_fp32.empty() && told.insert(kernel.op).second) table.add({kernel.op, kernel.kept_in_fp32});
  }
  if (!told.empty()) print_data("\n" + table.print());
}

// What zeros the kernels were chosen for.
void print_zeros(const std::vector<InspectRow>& rows) {
  Table table({"zeros of the input", ">batch", ">share", ">skipping pays from", "chosen"});
  bool known = false;
  for (const auto& [kernel, code] : rows) {
    if (!kernel.layer || !kernel.layer->zeros) continue;
    known = true;
    const InputZeros& zeros = *kernel.layer->zeros;
    table.add({kernel.op, fmt::format("{}", kernel.planned_batch), percent_text(zeros.share),
               zeros.pays_from  ? percent_text(zeros.pays_from)
               : zeros.compared ? "no share"
                                : "not compared",
               kernel.provider});
  }
  if (known) print_data("\n" + table.print());
}

// Operators that a user gave, and which steps compute them, each once.
void print_functions(const Manifest& manifest) {
  std::map<std::string, std::vector<std::string>> steps;
  for (const Kernel& kernel : manifest.kernels) {
    for (const KernelFunction& called : kernel.functions) {
      std::vector<std::string>& names = steps[describe(called.function)];
      if (std::ranges::find(names, kernel.op) == names.end()) names.push_back(kernel.op);
    }
  }
  Table table({"operator of a user's", "in the kernels of"});
  for (const auto& [function, names] : steps) table.add({function, fmt::format("{}", fmt::join(names, ", "))});
  if (!steps.empty()) print_data("\n" + table.print());
}

void print_tuning(const std::vector<InspectRow>& rows) {
  bool tuned = false;
  for (const auto& [kernel, code] : rows) {
    if (!kernel.tuning) continue;
    tuned = true;
    print_data(fmt::format("\n{}, batch {}: {}", kernel.op, kernel.planned_batch, tuning_table(*kernel.tuning)));
  }
  if (!tuned) print_note("no kernel was tuned (burin tune)");
}

nlohmann::ordered_json graph_json(const Network& network) {
  nlohmann::ordered_json graph = {{"tensors", nlohmann::ordered_json::array()},
                                  {"operators", nlohmann::ordered_json::array()},
                                  {"inputs", network.inputs},
                                  {"outputs", network.outputs}};
  for (const Activations& tensor : network.tensors) {
    graph["tensors"].push_back({{"name", tensor.name}, {"shape", tensor.shape}});
  }
  for (const Operator& op : network.operators) {
    graph["operators"].push_back({{"name", op.name},
                                  {"kind", kind_name(op.kind)},
                                  {"inputs", op.inputs},
                                  {"output", op.output},
                                  {"text", describe(network, op)}});
  }
  return graph;
}

struct PassRecord {
  std::string pass;
  int changes = 0;
  std::size_t operators = 0;  // that it left
};

std::string print_passes(const std::vector<PassRecord>& passes) {
  Table table({"pass", ">changes", ">operators"});
  for (const PassRecord& record : passes) {
    table.add({record.pass, record.changes == 0 ? "unchanged" : with_separators(record.changes),
               with_separators(static_cast<long long>(record.operators))});
  }
  return table.print();
}

// As compile has it for each batch size.
ProgramGraphs simplified(const Network& network, const CompileOptions& options,
                         std::map<int, std::vector<PassRecord>>& passes) {
  return graphs_of_batches(network, options, [&](int batch, const GraphChoices& choices) {
    const auto record = [&](const std::string& pass, const Network& left, int changes) {
      passes[batch].push_back({pass, changes, left.operators.size()});
    };
    return simplify(network, record, choices);
  });
}

nlohmann::ordered_json passes_json(const std::vector<PassRecord>& passes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PassRecord& record : passes) {
    list.push_back({{"pass", record.pass}, {"changes", record.changes}, {"operators", record.operators}});
  }
  return list;
}

// The first option that only a graph can serve; empty without one.
std::string graph_option(const InspectArguments& arguments) {
  return arguments.simplify ? "--simplify" : arguments.memory ? "--memory" : "";
}

void check_package_options(const InspectArguments& arguments, const Package& package) {
  std::vector<std::string> of_plans = {"--batch", "--precision", "--layout", "--no-siblings", "--flip"};
  std::ranges::copy(ImportArguments::names(), std::back_inserter(of_plans));
  refuse_given(*arguments.command, of_plans, fmt::format("{} is a package, and is shown as it is", arguments.input));
  if (arguments.import.options.layer_glob) {
    refuse_given(*arguments.command, {"--memory"}, "--layer shows layers, not the network");
  }
  check_arch_of(package, arguments.arch);
  if (arguments.simplify) {
    fail(ErrorKind::usage, "--simplify: {} is a package; only an ONNX model has a graph", arguments.input);
  }
  if (arguments.memory && holds_layers(package.manifest)) {
    fail(ErrorKind::usage, "--memory: {} holds layers, not a whole network", arguments.input);
  }
}

int inspect_why(const InspectArguments& arguments) {
  std::vector<std::string> others = {"--batch",       "--precision", "--layout", "--tuning", "--simplify",
                                     "--no-siblings", "--memory",    "--layer",  "--flip"};
  std::ranges::copy(ImportArguments::names(), std::back_inserter(others));
  refuse_given(*arguments.command, others, "--why shows the candidates of a package's steps, and nothing else");
  const Package package = read_given_package(arguments.input);
  check_arch_of(package, arguments.arch);
  if (arguments.json) {
    print_data(json_output({{"input", arguments.input}, {"steps", why_json(package, *arguments.why, arguments.arch)}}));
  } else {
    print_data(print_why(package, *arguments.why, arguments.arch));
  }
  return 0;
}

int inspect(const InspectArguments& arguments) {
  if (arguments.coverage) {
    refuse_given(*arguments.command,
                 {"--arch", "--batch", "--precision", "--layout", "--tuning", "--simplify", "--no-siblings", "--memory",
                  "--why", "--layer", "--activation", "--max-extent", "--flip"},
                 "--coverage shows which operators of a model are read, and plans nothing");
    return inspect_coverage(arguments.input, arguments.import.checked(), arguments.json);
  }
  if (arguments.why) return inspect_why(arguments);
  std::string about;
  std::vector<InspectRow> rows;
  std::vector<ChoiceRow> choices;
  Network network;  // of a model or of weights
  ProgramGraphs graphs{Network()};
  std::map<int, std::vector<PassRecord>> passes;  // of each batch size
  std::vector<int> batches;
  std::vector<Program> programs;  // without kernels, one for each batch size
  Package package;
  const std::optional<std::string>& layer_glob = arguments.import.options.layer_glob;
  if (is_package(arguments.input)) {
    package = read_given_package(arguments.input);
    check_package_options(arguments, package);
    rows = rows_of_package(package, layer_glob, arguments.arch);
    choices = choices_of_package(package, layer_glob);
    about = fmt::format("{}: from {}, by burin {}", arguments.input, package.manifest.source,
                        package.manifest.tool_version);
    if (!rows.empty() && !rows.front().code.arch.empty()) about += ", code for " + rows.front().code.arch;
  } else {
    refuse_given(*arguments.command, {"--tuning"},
                 fmt::format("{} is no package, and only tune measures plans", arguments.input));
    const KernelCache cache;
    CompileOptions options;
    options.cache = &cache;
    options.seeks_weight_zeros = arguments.flip;
    const AskedPrecisions asked = parse_precisions(arguments.precision);
    if (leaves_open(asked)) {
      fail(ErrorKind::usage, "--precision {}: only compile measures what half precision costs; name a precision",
           arguments.precision);
    }
    options.precisions = unmeasured(asked);
    if (arguments.layout) options.layout = parse_layout(*arguments.layout);
    check_layout(options);
    if (arguments.arch) options.archs = {*arguments.arch};
    check_arch(options.archs.front());
    options.batches = parse_batches(arguments.batches);
    options.joins.siblings = !arguments.no_siblings;
    if (!arguments.simplify)
      refuse_given(*arguments.command, {"--no-siblings"}, "without --simplify nothing is joined");
    network = arguments.import.import(arguments.input);
    if (const std::string option = graph_option(arguments); !option.empty() && network.separate) {
      fail(ErrorKind::usage, "{}: no graph was read from {}; only an ONNX model, of which all layers are read, has one",
           option, arguments.input);
    }
    batches = options.batches;
    graphs = arguments.simplify ? simplified(network, options, passes) : ProgramGraphs(std::move(network));
    if (arguments.memory) {
      for (const int batch : batches) {
        programs.push_back(
            plan_network(in_formats(graphs.of(batch), options, batch), std::string(kNetworkName), batch));
      }
    }
    NetworkRows planned = rows_of_network(graphs, options);
    rows = std::move(planned.rows);
    choices = std::move(planned.choices);
    about = fmt::format("{}: planned for {}", arguments.input, options.archs.front());
  }
  // Whoever names layers wants to see those.
  const bool whole = !holds_layers(package.manifest) && !layer_glob;
  const bool graph = !graphs.any().operators.empty() && !graphs.any().separate;
  const std::vector<ProgramGraphs::Shared> shown =
      graph ? graphs.shared_by(batches) : std::vector<ProgramGraphs::Shared>();
  if (arguments.json) {
    nlohmann::ordered_json document = {{"input", arguments.input}, {"rows", nlohmann::ordered_json::array()}};
    for (const InspectRow& row : rows) document["rows"].push_back(to_json(row));
    document["choices"] = nlohmann::ordered_json::array();
    for (const ChoiceRow& row : choices) document["choices"].push_back(to_json(row));
    const auto add_graph = [&](nlohmann::ordered_json& entry, const ProgramGraphs::Shared& of) {
      entry["graph"] = graph_json(*of.graph);
      if (arguments.simplify) entry["passes"] = passes_json(passes[of.batches.front()]);
    };
    if (shown.size() == 1) add_graph(document, shown.front());
    for (const ProgramGraphs::Shared& of : shown.size() > 1 ? shown : std::vector<ProgramGraphs::Shared>()) {
      nlohmann::ordered_json& entry = document["graphs"].emplace_back();
      entry["batches"] = of.batches;
      add_graph(entry, of);
    }
    if (!programs.empty()) {
      document["memory"] = nlohmann::ordered_json::array();
      for (const Program& program : programs) document["memory"].push_back(to_json(program));
    }
    if (whole) document["network"] = network_json(package.manifest, arguments.arch);
    print_data(json_output(document));
  } else {
    print_data(about + "\n");
    for (const ProgramGraphs::Shared& of : shown) {
      if (shown.size() > 1) print_data(fmt::format("graph for batch {}\n\n", fmt::join(of.batches, ", ")));
      if (arguments.simplify) print_data(print_passes(passes[of.batches.front()]) + "\n");
      print_data(print(*of.graph) + "\n");
    }
    for (const Program& program : programs) print_data(print(program) + "\n");
    if (whole) print_data(print_network(package.manifest, arguments.arch, arguments.memory) + "\n");
    if (!rows.empty()) print_data(print_table(rows));
    if (!choices.empty()) print_data((rows.empty() ? "" : "\n") + print_choices(choices));
    print_kept(rows);
    print_zeros(rows);
    print_functions(package.manifest);
    if (arguments.tuning) print_tuning(rows);
  }
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a model, a weights file or a package holds");
  arguments->command = command;
  add_option(*command, "INPUT", arguments->input, "A package, an ONNX model or a weights file");
  add_option(*command, "--arch NAME", arguments->arch,
             "Weights: plan for this; package: show this cubin (default sm_90, first)");
  add_option(*command, "--batch LIST", arguments->batches, "Weights: batch sizes to plan for (default 1)");
  add_option(*command, "--precision LIST", arguments->precision,
             "Weights: precision to plan for (default fp32); NAME=PRECISION for one layer");
  add_option(
      *command, "--layout NAME", arguments->layout,
      "Weights: layout to plan for, nchw (default) or nchw4; halves: n2chw (default), n8c8hw, nchw8 or nhwc8; tf32: "
      "n4c8hw or nhwc4");
  command->add_flag("--flip", arguments->flip,
                    "Weights: for each layer the share of zero weights from which on they pay, by the models");
  command->add_flag("--tuning", arguments->tuning,
                    "Package: the plans that were measured for each kernel (burin tune)");
  add_option(*command, "--why GLOB", arguments->why,
             "Package: the candidates for the layers or operators with such names, and why each was not taken");
  command->add_flag("--simplify", arguments->simplify,
                    "Model: the graph as compilation would take it, and what was done");
  command->add_flag("--no-siblings", arguments->no_siblings, "With --simplify: as compile --no-siblings would take it");
  command->add_flag("--memory", arguments->memory,
                    "Model, or package of one: the order of its steps and where each tensor lies, for each batch size");
  command->add_flag(
      "--coverage", arguments->coverage,
      "Model: which of its operators are read, which are refused and why; exit code 4 if any is not read");
  command->add_flag("--json", arguments->json, "For machines");
  arguments->import.add_to(*command);
  command->callback([arguments, &action] { action = [arguments] { return inspect(*arguments); }; });
}

}  // namespace burin
