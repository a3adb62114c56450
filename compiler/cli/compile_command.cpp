// burin compile, and burin tune, which goes by measurements: a model or weights in, a package out.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>

#include "compiler/choose/choose.h"
#include "compiler/cli/arguments.h"
#include "compiler/cli/cache_arguments.h"
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/files.h"
#include "compiler/cli/inspect_rows.h"
#include "compiler/cli/npy_tensor.h"
#include "compiler/cli/table.h"
#include "compiler/cli/tensor_files.h"
#include "compiler/cli/tuning_report.h"
#include "compiler/compile.h"
#include "compiler/execute/edited_kernel.h"
#include "compiler/execute/executor.h"
#include "compiler/execute/reused_memory.h"
#include "compiler/functions/user_operators.h"
#include "compiler/import/names.h"
#include "compiler/measure/tune_on_gpu.h"
#include "compiler/verify/verification.h"
#include "ir/arch.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/text.h"

namespace burin {
namespace {

struct CompileArguments {
  const CLI::App* command = nullptr;  // says what was given
  std::string input;
  std::optional<std::string> output;
  std::optional<std::string> archs, layout;
  std::vector<std::string> calibrate, activations;
  std::string batches = "1";
  bool no_ptx = false;
  bool no_verify = false;
  bool no_siblings = false;
  bool no_libraries = false;
  std::optional<std::string> budget, memory_limit;
  ImportArguments import;
  CacheArguments cache;
  CompileSettings settings;  // those that options set as they are
  CompileOptions options;    // those that only the tool has
};

const std::vector<std::string> kStages(std::begin(kStageNames), std::end(kStageNames));

// "model.safetensors.index.json" -> "model.burin", in the current folder.
std::string default_output(const std::string& input) {
  std::string name = std::filesystem::path(input).filename().string();
  for (const std::string_view ending : {".json", ".index", ".safetensors", ".npz", ".npy", ".onnx"}) {
    if (has_ending(name, ending)) name.resize(name.size() - ending.size());
  }
  return name + ".burin";
}

// What `burin doctor` shows as the default: the first GPU's architecture where burin knows it.
std::vector<std::string> default_archs() {
  const std::optional<std::string> native = native_arch();
  if (!native) {
    print_note(fmt::format("no GPU found: compiling for {} (--arch chooses others)", kArchWithoutGpu));
    return {kArchWithoutGpu};
  }
  const ArchSpec* runs = arch_for_gpu(*native);
  if (runs == nullptr) {
    fail(ErrorKind::unsupported, "the GPU of this machine is {}, for which burin has no code; --arch chooses others",
         *native);
  }
  if (runs->name != *native) {
    print_note(fmt::format("no machine code for {} yet: compiling for {}, whose PTX the driver compiles for the GPU",
                           *native, runs->name));
  }
  return {std::string(runs->name)};
}

std::vector<std::string> resolve_archs(const std::string& text) {
  std::vector<std::string> archs;
  for (const std::string& item : split_list("--arch", text)) {
    std::string arch = item;
    if (item == "native") {
      const std::optional<std::string> native = native_arch();
      if (!native) fail(ErrorKind::device, "--arch native: no GPU found; name one, such as sm_90");
      arch = *native;
    }
    check_arch(arch);
    if (std::find(archs.begin(), archs.end(), arch) == archs.end()) archs.push_back(arch);
  }
  return archs;
}

void check_stages(const CompileOptions& options) {
  if (!options.stop_after) return;
  check_choice("--stop-after", *options.stop_after, kStages);
  if (!options.dump_dir)
    fail(ErrorKind::usage, "--stop-after {} writes no package, so it needs --dump-dir to have a result",
         *options.stop_after);
}

double tuning_seconds(const CompileArguments& arguments) {
  return parse_duration("--budget", arguments.budget.value_or(fmt::format("{}m", kDefaultTuningMinutes)));
}

// "64MiB", "1.5GB", "200000B": a number and its unit.
std::int64_t parse_memory(const std::string& text) {
  const std::map<std::string, double> units = {{"B", 1},         {"kB", 1e3},      {"MB", 1e6},     {"GB", 1e9},
                                               {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto unit = units.find(text.substr(end));
  const std::optional<double> number = parse_number<double>(text.substr(0, end));
  const double bytes = unit == units.end() ? 0 : number.value_or(0) * unit->second;
  if (bytes >= 1 && bytes <= static_cast<double>(kMaxMemoryLimit)) return static_cast<std::int64_t>(bytes);
  fail(ErrorKind::usage, "--memory-limit '{}': is no size such as 64MiB, 500kB or 1.5GB, of at most {} bytes", text,
       kMaxMemoryLimit);
}

bool tunes(const CompileArguments& arguments) { return arguments.settings.tune > 0; }

// Options that would do nothing beside others.
void check_effects(const CompileArguments& arguments) {
  const CLI::App& command = *arguments.command;
  const CompileOptions& options = arguments.options;
  const std::string stop = options.stop_after.value_or("");
  if (!options.makes_package()) {
    refuse_given(command, {"--output", "--no-ptx", "--no-verify", "--flip"},
                 fmt::format("--stop-after {} writes no package", stop));
  }
  if (stop == "layer" || stop == "pattern") {
    refuse_given(command,
                 {"--plan", "--kernels", "--linear-storage", "--calibrate", "--max-error", "--activations",
                  "--activation-sparsity", "--memory-limit", "--objective"},
                 fmt::format("--stop-after {} ends before there is a plan", stop));
  }
  if (!arguments.settings.activation_sparsity.empty()) {
    refuse_given(command, {"--activations"}, "--activation-sparsity says what zeros there are; give one of them");
  }
  if (!options.from_file) refuse_given(command, {"--no-verify"}, "it is for --from, and nothing was edited");
  const std::vector<std::string> of_cache = {"--cache", "--cache-limit"};
  arguments.cache.check(command);
  for (const std::string option : {"--dump-dir", "--stop-after"}) {
    if (command.count(option) == 0 || tunes(arguments)) continue;  // times are taken from it all the same
    refuse_given(command, of_cache, fmt::format("{} makes every kernel anew, and uses no cache", option));
  }
}

// What cannot be written is said before the work.
void check_outputs(const CompileArguments& arguments, const std::string& output) {
  const CompileOptions& options = arguments.options;
  std::vector<std::string> inputs = {arguments.input};
  for (const std::optional<std::string>& file : {options.from_file, arguments.import.options.geometry_file}) {
    if (file) inputs.push_back(*file);
  }
  for (const std::vector<std::string>* files : {&arguments.calibrate, &arguments.activations}) {
    for (const std::string& file : *files) {
      inputs.push_back(file);
      inputs.push_back(file.substr(file.find('=') + 1));  // of NAME=FILE
    }
  }
  for (const std::string& item : arguments.import.own_operators) inputs.push_back(item.substr(item.find('=') + 1));
  if (options.makes_package()) {
    check_output_file(arguments.output ? "--output" : "--output, by default", output, inputs);
  }
  if (options.dump_dir) check_output_folder("--dump-dir", *options.dump_dir);
}

// What ends before there is a plan leaves nothing to tune.
void check_tuning(const CompileArguments& arguments) {
  if (!tunes(arguments)) return;
  (void)tuning_seconds(arguments);
  const std::optional<std::string>& stop = arguments.options.stop_after;
  if (stop == "layer" || stop == "pattern") {
    fail(ErrorKind::usage, "tune chooses plans, and --stop-after {} ends before there are any", *stop);
  }
  if (!arguments.settings.tune_providers.empty()) {
    refuse_given(*arguments.command, {"--kernels"}, "--providers says whose kernels are measured; give one of them");
  } else if (arguments.command->count("--providers") > 0) {
    fail(ErrorKind::usage, "--providers '': names no provider");
  }
  if (arguments.no_libraries) {
    for (const std::string_view name : split(arguments.settings.tune_providers, ',')) {
      const std::optional<Library> library =
          library_of(name.starts_with("linear") ? std::string(name) : fmt::format("conv_{}", name));
      if (!library) continue;
      fail(ErrorKind::usage, "--providers {} asks for calls of {}, and --no-libraries for none",
           arguments.settings.tune_providers, title_of(*library));
    }
  }
  if (arguments.settings.tune_anew) check_anew(arguments.cache);
}

// The plan of the only kernel says in what it computes.
void check_open_precision(const CompileArguments& arguments, const CompileOptions& options) {
  if (!options.from_file || !options.from_op.empty()) return;
  if (!leaves_open(parse_precisions(arguments.settings.precision))) return;
  fail(ErrorKind::usage, "--precision {} has no effect here: --from {} is of the only kernel, and has a precision",
       arguments.settings.precision, *options.from_file);
}

void check_tuned_layers(const CompileArguments& arguments, const Network& network) {
  const auto is_linear = [](const Operator& op) { return std::holds_alternative<Linear>(op.kind); };
  if (!tunes(arguments) || !network.layers.empty() || std::ranges::any_of(network.operators, is_linear)) return;
  fail(ErrorKind::usage, "tune measures kernels of convolutions and fully connected layers, and {} has none",
       arguments.input);
}

// What a limit of memory, or the least memory, costs.
std::string choice_text(const NetworkChoice& choice, const Manifest& manifest) {
  std::string text = manifest.memory_limit ? fmt::format("within {} ({} bytes)", bytes_text(*manifest.memory_limit),
                                                         *manifest.memory_limit)
                                           : std::string("with the least memory");
  text += fmt::format(": {} us by estimate, {:.2f} times the fastest choice's {} us", microseconds_text(choice.us),
                      choice.fastest_us > 0 ? choice.us / choice.fastest_us : 1, microseconds_text(choice.fastest_us));
  if (choice.least_us < choice.us) {
    text += fmt::format("; the search ended early, and none can be under {} us", microseconds_text(choice.least_us));
  }
  return text + "\n";
}

std::string summarise(const std::string& output, const Manifest& manifest, int cached,
                      const std::optional<NetworkChoice>& choice) {
  std::vector<std::string> forms;
  for (const Kernel& kernel : manifest.kernels) {
    for (const KernelBinary& binary : kernel.binaries) {
      const std::string form = binary.kind == BinaryKind::ptx ? "PTX" : fmt::format("{} cubin", binary.arch);
      if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    }
  }
  const std::size_t kernels = manifest.kernels.size();
  std::string text =
      fmt::format("{}: {} kernel{}{}, {}, {}\n", output, kernels, kernels == 1 ? "" : "s",
                  cached > 0 ? fmt::format(" ({} from the cache)", cached) : "",
                  bytes_text(static_cast<long long>(std::filesystem::file_size(output))), fmt::join(forms, ", "));
  if (holds_layers(manifest)) return text;
  for (const Program& program : manifest.programs) {
    text += fmt::format("batch {}: {} steps, arena of {}, {} without sharing\n", program.batch, program.steps.size(),
                        bytes_text(program.arena_bytes), bytes_text(program.naive_bytes));
  }
  if (!manifest.batches.empty()) {
    const auto ratio = [](const BatchEstimate& batch) { return batch.own_us > 0 ? batch.us / batch.own_us : 1; };
    const BatchEstimate& worst = *std::ranges::max_element(manifest.batches, {}, ratio);
    const std::size_t programs = manifest.programs.size();
    text += fmt::format(
        "{} batch sizes on {} program{}: at most {:.2f} times what a program of its own takes, by estimate, with {} "
        "image{}\n",
        manifest.batches.size(), programs, programs == 1 ? "" : "s", ratio(worst), worst.images,
        worst.images == 1 ? "" : "s");
  }
  text += fmt::format("device memory: {}\n", memory_text(device_memory(manifest, std::nullopt).sum));
  return text + (choice ? choice_text(*choice, manifest) : "");
}

// --from FILE, or NAME=FILE of an operator or a layer. Both may hold a '='.
void parse_from(CompileOptions& options, const Network& network) {
  const std::string text = *options.from_file;
  std::vector<std::string> names;
  for (const Operator& op : network.operators) names.push_back(op.name);
  for (const ConvLayer& layer : network.layers) names.push_back(layer.name);
  const auto found = std::ranges::find_if(names, [&](const std::string& name) { return text.starts_with(name + "="); });
  const std::size_t end = found != names.end() ? found->size() : text.find('=');
  if (end == std::string::npos || (found == names.end() && std::filesystem::exists(text))) return;
  options.from_op = text.substr(0, end);  // of what a pass adds, the model has no name: the pipeline knows
  options.from_file = text.substr(end + 1);
}

// What is wrong with the kernel of an operator; empty: nothing is.
std::string fault_of_kernel(const Package& package, const Network& imported, const std::string& op, int batch,
                            const DeviceChoice& device, std::uint64_t seed, HostLaunchers launchers) {
  HostFunctions functions;
  for (const Kernel& kernel : package.manifest.kernels) {
    for (const KernelFunction& called : kernel.functions) {
      functions[called.function.symbol()] = called.function.value;
    }
  }
  const std::unique_ptr<Executor> executor =
      make_executor(device, package, 0, std::move(launchers), std::move(functions));
  const VerifyOptions options{.batch = batch, .seed = seed, .images = {}, .steps = true, .layer = op};
  const Network reference = reference_of(imported, package.manifest, op);
  for (const VerifiedProgram& result : verify_programs(package, reference, options, *executor).results) {
    if (!result.fault.empty()) return result.fault;
    if (const StepResult* failed = result.first_failed()) {
      return describe_worst(*failed, failed->shape, result.images);
    }
    if (!result.step_fault.empty()) return result.step_fault;
    for (const OutputResult& output : result.outputs) {
      if (!output.passed) return output.fault.empty() ? "the outputs are wrong" : output.fault;
    }
  }
  return {};
}

// What a person edited is verified before it is packed: on the host executor, or, of edited PTX, on the first GPU.
// Throws Error(verification) when it does not compute what `model`, as it was imported, says.
void verify_edited(const CompileResult& result, const Network& model, const CompileOptions& options) {
  const Package& package = result.package;
  constexpr int kMostImages = 4;  // more tell no more, and the host takes its time
  const std::string& edited = *options.from_file;
  const auto kernel = std::ranges::find_if(package.manifest.kernels, [&](const Kernel& made) {
    return options.from_op.empty() || made.op == options.from_op;
  });
  BURIN_CHECK(kernel != package.manifest.kernels.end(), "no kernel was made of {}", edited);
  const bool on_host = !kernel->edited || result.edited_modules.contains(kernel->symbol);
  if (!on_host && !native_arch()) {
    print_note(fmt::format("{}: not verified: PTX runs on a GPU only, and none was found", edited));
    return;
  }
  const DeviceChoice device = device_for(on_host ? "host" : "cuda");
  const int batch = std::min(options.batches.front(), kMostImages);
  const std::uint64_t seed = std::random_device()();
  std::optional<EditedKernel> sandboxed;
  HostLaunchers launchers;
  if (const auto module = result.edited_modules.find(kernel->symbol); module != result.edited_modules.end()) {
    sandboxed.emplace(edited, module->second, *kernel);
    launchers[kernel->symbol] = [&](const HostLaunchArguments& arguments) { sandboxed->run(arguments); };
  }
  const std::string fault = fault_of_kernel(package, model, kernel->op, batch, device, seed, std::move(launchers));
  if (!fault.empty()) {
    fail(ErrorKind::verification,
         "{} does not compute what the weights say: {}; no package written (--no-verify writes it all the same)",
         edited, fault);
  }
  print_note(
      fmt::format("{}: verified on {}, batch {}, seed {}", edited, on_host ? "host" : "the first GPU", batch, seed));
}

// The images that an option gives, for each input of the network, or of each of its layers.
std::vector<CalibrationInput> read_images(const std::string& option, const std::vector<std::string>& given,
                                          const Network& network, ElementType io) {
  if (given.empty()) return {};
  std::vector<std::string> names;
  for (const int input : network.inputs) names.push_back(network.tensors[static_cast<std::size_t>(input)].name);
  const std::vector<std::string> files = files_of({option, "input"}, given, names, network.source);
  std::vector<CalibrationInput> inputs;
  int images = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    NpyTensor tensor = read_npy(files[i], io);
    const std::vector<std::int64_t>& shape = network.tensors[static_cast<std::size_t>(network.inputs[i])].shape;
    const int held = images_of(tensor, files[i], fmt::format("the input '{}'", names[i]), shape);
    if (i > 0 && held != images) {
      fail(ErrorKind::bad_input, "{}: holds {} images, but {} holds {}", files[i], held, files[0], images);
    }
    images = held;
    if (!std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); })) {
      fail(ErrorKind::bad_input, "{} {}: the images of the input '{}' hold NaN or infinity", option, files[i],
           names[i]);
    }
    inputs.push_back({names[i], std::move(tensor.values)});
  }
  return inputs;
}

CompileSettings settings_of(const CompileArguments& arguments) {
  CompileSettings settings = arguments.settings;
  if (arguments.archs) settings.archs = resolve_archs(*arguments.archs);
  BatchList batches = parse_batch_list(arguments.batches);
  settings.batches = std::move(batches.sizes);
  settings.batch_spans = std::move(batches.spans);
  // A plan that is fed back has layouts of its own.
  if (!arguments.options.from_file) settings.layout = arguments.layout;
  settings.ptx = !arguments.no_ptx;
  settings.siblings = !arguments.no_siblings;
  settings.libraries = !arguments.no_libraries;
  if (arguments.memory_limit) settings.memory_limit = parse_memory(*arguments.memory_limit);
  if (tunes(arguments)) settings.tune_seconds = tuning_seconds(arguments);
  settings.cache = arguments.cache.folder();
  settings.cache_bytes = arguments.cache.limit_bytes();
  return settings;
}

CompileResult compile_with_progress(Network network, const CompileOptions& options, const CompileSettings& settings) {
  std::optional<ProgressBar> calibrating, tuning, compiling;
  const PipelineWatch watch = {
      [&](const CalibrateProgress& state) {
        if (!calibrating) calibrating.emplace("calibrating");
        calibrating->update(state.done, state.total, state.what);
        calibrating->finished(fmt::format("{} ({} of at most {})", state.what, state.done, state.total));
      },
      [&](const TuneProgress& state) {
        calibrating.reset();
        compiling.reset();
        if (!tuning) tuning.emplace("tuning");
        std::string what = fmt::format("{} b{}, plan {}/{}", state.layer, state.batch, state.plans_done, state.plans);
        if (state.best_us > 0) what += fmt::format(", best {} us", microseconds_text(state.best_us));
        tuning->update(state.kernels_done, state.kernels, what);
        tuning->finished(what);
      },
      [&](const CompileProgress& state) {
        calibrating.reset();
        tuning.reset();
        if (!compiling) compiling.emplace("compiling");
        compiling->update(state.done, state.total, state.what, state.work_done);
        // Until the first kernel is made, what is told of is planning.
        compiling->finished(state.done == 0 ? state.what
                                            : fmt::format("{} ({} of {})", state.what, state.done, state.total));
      }};
  return run_pipeline(std::move(network), options, settings, watch);
}

// Whether compiling runs the reference, to compare with it or to count zeros.
bool is_computed(const CompileArguments& arguments) {
  const bool measures_error =
      leaves_open(parse_precisions(arguments.settings.precision)) || !arguments.calibrate.empty();
  const bool counts_zeros = !arguments.activations.empty();
  return measures_error || counts_zeros || tunes(arguments) || (arguments.options.from_file && !arguments.no_verify);
}

int compile(const CompileArguments& arguments) {
  check_stages(arguments.options);
  check_tuning(arguments);
  check_effects(arguments);
  CompileSettings settings = settings_of(arguments);
  check_calibration(settings, !arguments.calibrate.empty());
  CompileOptions options = options_of(settings, arguments.options);
  options.zero_threshold = arguments.import.options.zero_threshold;
  if (arguments.layout) options.layout = parse_layout(*arguments.layout);
  refuse_package("INPUT", arguments.input);
  const std::string output = arguments.output.value_or(default_output(arguments.input));
  check_outputs(arguments, output);
  const ImportOptions import = arguments.import.checked();
  Network network = arguments.import.import(arguments.input, import);
  if (!arguments.archs) options.archs = default_archs();
  if (options.from_file) parse_from(options, network);
  check_open_precision(arguments, options);
  check_options(network, options);
  settings.calibration = read_images("--calibrate", arguments.calibrate, network, options.io);
  settings.activations = read_images("--activations", arguments.activations, network, options.io);
  check_tuned_layers(arguments, network);
  if (tunes(arguments)) keep_freed_memory();
  if (import.operators != nullptr) {
    auto& operators = dynamic_cast<UserOperators&>(*import.operators);
    operators.compile_for_device(lowest_arch(options.archs));
    if (is_computed(arguments)) operators.compile_for_host();
  }
  const std::optional<Network> imported =
      options.from_file && !arguments.no_verify ? std::optional(network) : std::nullopt;
  network.notes.clear();  // printed already; the pipeline would hand them on
  const CompileResult result = compile_with_progress(std::move(network), options, settings);
  for (const std::string& note : result.notes) print_note(note);
  if (result.stopped_early) {
    print_data(fmt::format("{}: stopped after stage '{}'; no package written\n", *options.dump_dir,
                           options.stop_after.value_or("")));
    return 0;
  }
  if (imported) verify_edited(result, *imported, options);
  write_package(result.package, output);
  if (tunes(arguments)) print_data(tuning_summary(result.package.manifest));
  print_data(summarise(output, result.package.manifest, result.cached, result.choice));
  return 0;
}

}  // namespace

namespace {

// What is measured, and for how long.
void add_tuning_options(CLI::App& command, CompileArguments& arguments) {
  arguments.settings.tune = kDefaultTuningPlans;
  add_option(
      command, "--budget TIME", arguments.budget,
      fmt::format("How long tuning takes in all, e.g. 90s, 5m, 1h (default {}m): after three quarters of it no other "
                  "kernel is measured; what takes most of the time comes first, and a later run goes on",
                  kDefaultTuningMinutes));
  add_option(command, "--plans N", arguments.settings.tune,
             fmt::format("Candidates for each convolution and fully connected layer, and as many steps from the best "
                         "(default {})",
                         kDefaultTuningPlans))
      ->check(whole_number(1, kMaxTuningPlans));
  add_option(command, "--providers LIST", arguments.settings.tune_providers,
             fmt::format("Whose candidates are measured (default: all): {}, {}", fmt::join(kernel_kind_names(), ", "),
                         fmt::join(linear_kind_names(), ", ")));
  add_anew_option(command, arguments.settings.tune_anew);
}

// A stage of one kernel that a person edited.
void add_feedback_options(CLI::App& command, CompileArguments& arguments) {
  command
      .add_option(
          "--from", arguments.options.from_file,
          "Go on from an edited stage file of one kernel: a plan, .ll or .ptx; NAME=FILE where there are several")
      ->type_name("[NAME=]FILE");
  command.add_flag("--no-verify", arguments.no_verify,
                   "With --from: do not check the edited stage against the weights");
}

std::shared_ptr<CompileArguments> add_command(CLI::App& app, Action& action, const std::string& name,
                                              const std::string& help) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App* command = app.add_subcommand(name, help);
  arguments->command = command;
  add_option(*command, "INPUT", arguments->input,
             "A model: .onnx, which gives a whole network; or weights: .safetensors, its .index.json, .npz, .npy");
  add_option(*command, "-o,--output FILE", arguments->output, "The package (default: INPUT's name with .burin, here)");
  add_option(*command, "--arch LIST", arguments->archs,
             "Machine code for these, e.g. sm_80,sm_90 or native (default: native)");
  add_option(*command, "--plan LIST", arguments->settings.plan,
             "Choices not left to the provider: tile=1x14x14,groups=16,...; with --kernels dense: splits=2,...");
  add_option(*command, "--kernels LIST", arguments->settings.kernels,
             fmt::format("What computes the convolutions: auto (default: what is predicted to be faster), "
                         "{}; or NAME=KIND for one",
                         fmt::join(kernel_kind_names(), ", ")));
  add_option(*command, "--linear-storage NAME", arguments->settings.linear_storage,
             "Network: the weights of fully connected layers in memory: fp32 (default), or fp16, rounded; "
             "arithmetic is FP32");
  add_option(*command, "--io NAME", arguments->settings.io,
             "Network: what its inputs and outputs are, in NCHW: fp32 (default), fp16 or bf16");
  add_option(*command, "--memory-limit SIZE", arguments->memory_limit,
             "Network: device memory that code, weights, arena and scratch may take, e.g. 64MiB; the fastest choice of "
             "kernels within it");
  add_option(*command, "--objective NAME", arguments->settings.objective,
             "Network: time (default), or memory: the kernels that take least of it");
  add_option(
      *command, "--precision LIST", arguments->settings.precision,
      "fp32 (default); fp16, bf16: half tensors, FP32 arithmetic; fp16x2: half tensors and arithmetic, "
      "sums go over to FP32 every so many terms; tf32: FP32, but inputs and weights may be rounded to TF32 where "
      "they are multiplied; auto: fp16, and FP32 where --max-error asks for it; or "
      "NAME=PRECISION for one layer");
  add_option(*command, "--max-error E", arguments->settings.max_error,
             fmt::format("With --precision auto: how far half precision may move the outputs, as a share of their "
                         "size (default {:g})",
                         kDefaultMaxError));
  command
      ->add_option("--calibrate", arguments->calibrate,
                   "Inputs that half precision is measured on, [N,C,H,W] as .npy; NAME=FILE for each of several "
                   "(default with --precision auto: random ones)")
      ->type_name("[NAME=]FILE")
      ->expected(1)
      ->take_all();
  command
      ->add_option(
          "--activations", arguments->activations,
          "Inputs on which zeros of feature maps are counted, as --calibrate: kernels that skip zeros are then "
          "candidates for convolutions")
      ->type_name("[NAME=]FILE")
      ->expected(1)
      ->take_all();
  add_option(
      *command, "--activation-sparsity SHARE", arguments->settings.activation_sparsity,
      fmt::format("The same without inputs, as if every convolution read such a share of zeros: 0.8, or 0.8:blobs; "
                  "patterns: {}",
                  known_names<ZeroPattern>()));
  add_option(*command, "--layout NAME", arguments->layout,
             "How inputs, outputs and residuals lie in memory: nchw (default), nchw4 (4 channels side by side); "
             "half tensors: n2chw (2 images side by side; default), n8c8hw (8 of 8 channels), nchw8 (8 channels of "
             "one), nhwc8 (all channels of a pixel); tf32: n4c8hw, nhwc4");
  add_option(*command, "--batch LIST", arguments->batches,
             "Batch sizes to plan for, e.g. 1,32 (default 1); 1..32: as few programs as keep each of them fast");
  command->add_flag("--skip-dead-tiles", arguments->settings.skip_dead_tiles,
                    "Kernels skip channels that hold nothing but zeros in a tile, and mark those of their output "
                    "(activity maps)");
  command->add_flag(
      "--no-libraries", arguments->no_libraries,
      "No kernel calls cuDNN or cuBLASLt where tune finds it to be faster; the package runs the same everywhere");
  command->add_flag("--no-siblings", arguments->no_siblings,
                    "Model: convolutions that read the same tensor stay what they are, also where one is faster");
  command->add_flag("--flip", arguments->settings.flip,
                    "Find for each layer the share of zero weights from which on the best kernel that gains by them is "
                    "estimated to be faster than the best dense one; planning takes longer");
  arguments->import.add_to(*command);
  add_option(*command, "--dump-dir DIR", arguments->options.dump_dir, "Write each layer's stages to DIR/LAYER/");
  add_option(*command, "--stop-after STAGE", arguments->options.stop_after,
             fmt::format("Stop after a stage: {}", fmt::join(kStages, ", ")));
  add_option(*command, "--jobs N", arguments->settings.jobs, "Kernels at once (default: one for each processor)")
      ->check(whole_number(0, kMaxJobs));
  arguments->cache.add_to(*command);
  command->add_flag(
      "--no-ptx", arguments->no_ptx,
      "Machine code alone where there is an assembler: half the size, but no other GPUs than --arch says");
  command->callback([arguments, &action] { action = [arguments] { return compile(*arguments); }; });
  return arguments;
}

}  // namespace

void add_compile_command(CLI::App& app, Action& action) {
  const auto arguments = add_command(app, action, "compile",
                                     "Compile a network (an ONNX model), or layers (their weights), into a package");
  add_feedback_options(*app.get_subcommand("compile"), *arguments);
}

void add_tune_command(CLI::App& app, Action& action) {
  const auto arguments =
      add_command(app, action, "tune",
                  "Compile with what is the fastest on this machine's GPU: candidates of all kinds are measured");
  add_tuning_options(*app.get_subcommand("tune"), *arguments);
}

}  // namespace burin
