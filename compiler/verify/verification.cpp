#include "compiler/verify/verification.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "compiler/compile.h"
#include "compiler/dead_channels.h"
#include "compiler/import/names.h"
#include "compiler/network/operator_error.h"
#include "compiler/network/reference_network.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/package/manifest_index.h"
#include "ir/parallel_for.h"

namespace burin {
namespace {

// The seed of a random tensor is the FNV-1a of its name, batch size and number, mixed with `seed`: the same on every
// machine.
std::uint64_t seed_for(std::uint64_t seed, const std::string& name, int batch, int tensor) {
  constexpr std::uint64_t kBasis = 14695981039346656037ULL, kPrime = 1099511628211ULL;
  std::uint64_t hash = kBasis ^ (seed * 0x9E3779B97F4A7C15ULL);
  for (const char c : name + "/" + std::to_string(batch) + "/" + std::to_string(tensor)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  }
  return hash;
}

// The tensor of a map for so many images.
ActivityExtent extent_of(const Buffer& map, int batch) {
  return {batch, static_cast<int>(map.shape[0]), static_cast<int>(map.shape[1]), static_cast<int>(map.shape[2])};
}

std::string unwritten_fault(const std::vector<float>& output, int batch) {
  const auto unwritten = std::ranges::find_if(output, [](float value) { return std::isnan(value); });
  if (unwritten == output.end()) return {};
  const auto image = (unwritten - output.begin()) / (static_cast<std::ptrdiff_t>(output.size()) / batch);
  return fmt::format("image {}: an element was not written, or is NaN", image);
}

// The graph that the program was made of.
Network graph_of(const Program& program, Network network) {
  std::map<std::string_view, const Step*> steps;
  for (const Step& step : program.steps) steps.emplace(step.name, &step);
  const auto has_step = [&](const std::string& op, const ConvLayer&, const Pool&) {
    return steps.contains(op);  // a pool that has one was compiled so
  };
  const auto is_step = [&](const ConvLayer& merged, const std::vector<const ConvLayer*>&) {
    return steps.contains(merged.name);
  };
  const auto is_excitation = [&](const Network&, const Excitation& made) { return steps.contains(made.excite.name); };
  const auto is_windowed = [&](const ConvLayer& made, const ConvLayer&, const ConvLayer&) {
    return steps.contains(made.name);
  };
  // What is no step has the formats that follow from the others.
  std::map<std::string, OperatorFormats> chosen;
  for (const Step& step : program.steps) {
    if (step.is_copy()) continue;
    chosen[step.name] = {program.buffer(step.reads.front()).format, program.buffer(step.writes).format};
  }
  const auto formats = [](const Operator&, const ConvLayer&) { return OperatorFormats{}; };
  Network graph = prepare_graph(std::move(network), std::nullopt, {has_step, is_step, is_excitation, is_windowed});
  const auto set_ends = [&](const std::vector<int>& ends, const std::vector<const Buffer*>& buffers) {
    for (std::size_t i = 0; i < std::min(ends.size(), buffers.size()); ++i) {
      graph.tensors[static_cast<std::size_t>(ends[i])].format = buffers[i]->format;
    }
  };
  set_ends(graph.inputs, program.inputs());
  set_ends(graph.outputs, program.outputs());
  return assign_formats(std::move(graph), formats, chosen).network;
}

// Runs `work`; a fault of verification becomes the text.
std::string fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::verification) throw;
    return error.what();
  }
  return {};
}

int quantizing_operators(const Network& network) {
  return static_cast<int>(std::ranges::count_if(network.operators, [](const Operator& op) {
    const auto* element = std::get_if<Elementwise>(&op.kind);
    return element != nullptr && element->function == ElementFunction::quantize;
  }));
}

class Verifier {
 public:
  Verifier(const Package& package, const Network& reference, const VerifyOptions& options, Executor& executor,
           const VerifyProgress& progress)
      : manifest_(package.manifest),
        index_(package.manifest),
        reference_(reference),
        options_(options),
        executor_(executor),
        progress_(progress) {}

  Verification run() { return reference_.separate ? verify_layers() : verify_network(); }

 private:
  // Says which programs are to run, on how many images, and which of them are compared.
  std::vector<VerifiedProgram> runs_of(const std::string& name) const {
    const std::vector<const Program*>& programs = index_.programs(name);
    std::vector<VerifiedProgram> runs;
    const auto add = [&](const Program& program, int batch) {
      const int images = options_.images.value_or(reference_.separate ? batch : kComparedImages);
      runs.push_back({.program = &program, .batch = batch, .images = choose_images(batch, images, options_.seed)});
    };
    if (!options_.batch) {
      for (const Program* program : programs) add(*program, program->batch);
      return runs;
    }
    const Program& program = program_for(programs, *options_.batch);
    if (program.most_images() < *options_.batch) {
      fail(ErrorKind::usage, "--batch {}: the package's largest program is for {} images; compile it with --batch {}",
           *options_.batch, program.batch, *options_.batch);
    }
    add(program, *options_.batch);
    return runs;
  }

  // ---- layers

  Verification verify_layers() {
    Verification verification;
    std::vector<const Operator*> operators;  // of the results
    for (const Operator& op : reference_.operators) {
      if (index_.programs(op.name).empty()) {
        verification.missing.push_back(op.name);
        continue;
      }
      for (VerifiedProgram& run : runs_of(op.name)) verification.results.push_back(std::move(run));
      operators.resize(verification.results.size(), &op);
    }
    std::mutex mutex;
    int done = 0;
    for_each_parallel(operators.size(), executor_.concurrent() ? options_.jobs : 1, [&](std::size_t i) {
      VerifiedProgram& result = verification.results[i];
      const Operator& op = *operators[i];
      verify_layer(network_of(reference_, op), result);
      const std::lock_guard lock(mutex);
      ++done;
      if (progress_) progress_(done, static_cast<int>(operators.size()), fmt::format("{} b{}", op.name, result.batch));
    });
    return verification;
  }

  // The step is compared on what the program was given, with its own tolerance.
  void verify_layer(const Network& layer, VerifiedProgram& result) const {
    const Program& program = *result.program;
    const int batch = result.batch;
    const Step& step = program.steps.front();
    const Tensors inputs =
        random_inputs(program, reference_.input_std, batch, options_.seed, options_.zeros, options_.non_finite);
    Tensors outputs;
    result.fault = fault_of([&] { outputs = executor_.run(program, batch, inputs); });
    if (!result.fault.empty()) return;
    StepValues values;
    for (const Place& read : step.reads) values.reads.push_back(inputs[argument(program, read)]);
    values.output = outputs[argument(program, step.writes)];
    StepComparison comparison(layer, index_, program, batch, result.images);
    comparison.see(values);
    result.steps = comparison.results();
    for (const Buffer* output : program.outputs()) {
      const std::vector<float>& made = outputs[static_cast<std::size_t>(output->argument)];
      OutputResult& added = result.outputs.emplace_back();
      if (output->map) {
        std::vector<std::uint8_t> marks(made.begin(), made.end());
        added.fault = map_fault(*output->map, extent_of(*output, batch), marks, values.output, kUnwritten);
      } else {
        added = result.steps.front();
        // Where an output may be NaN, one that was not written cannot be told.
        const bool tells = added.fault.empty() && added.comparison.within && options_.non_finite == 0;
        if (tells) added.fault = unwritten_fault(made, batch);
      }
      added.passed = added.fault.empty() && (output->map || added.comparison.within);
    }
  }

  static std::size_t argument(const Program& program, const Place& place) {
    return static_cast<std::size_t>(program.buffer(place).argument);
  }

  // ---- a network

  Verification verify_network() {
    const Program& first = manifest_.programs.front();
    const auto is_asked_for = [&](const Step& step) { return matches(options_.layer, step.name); };
    if (std::ranges::none_of(first.steps, is_asked_for)) {
      fail(ErrorKind::usage, "no operator of the package's network matches --layer '{}'", options_.layer.value_or(""));
    }
    Verification verification;
    verification.deepest_reduction = deepest_ = deepest_reduction(reference_);
    const std::vector<Arithmetic> steps = arithmetic_of(index_, first);
    verification.rounding_share = whole_share(steps);
    verification.rounding_steps = static_cast<int>(std::ranges::count_if(
                                      steps, [](const Arithmetic& step) { return rounding_share(step) > 0; })) +
                                  quantizing_operators(reference_);
    verification.results = runs_of(first.name);
    for (VerifiedProgram& result : verification.results) verify_program(result);
    return verification;
  }

  void verify_program(VerifiedProgram& result) {
    const Program& program = *result.program;
    const Tensors inputs = random_inputs(program, reference_.input_std, result.batch, options_.seed, options_.zeros);
    Tensors outputs;
    begin(fmt::format("batch {} runs", result.batch));
    result.fault = fault_of([&] { outputs = executor_.run(program, result.batch, inputs); });
    const bool by_outputs = result.fault.empty() && compare_outputs(result, inputs, outputs);
    if (options_.steps || !by_outputs || quantizing_operators(reference_) > 0) {
      look_at_steps(result, inputs, outputs);
    }
  }

  // Where values are quantized, one that lies at the edge of a step may become either: what is then off by a step, all
  // that follows computes with. So such a network's outputs are known to a share of a step for each time that values
  // are quantized, and its operators are looked at one by one.
  double whole_share(const std::vector<Arithmetic>& steps) const {
    constexpr double kStep = 0.5 / kQuantizedSteps;
    return std::hypot(rounding_share(steps), kStep * std::sqrt(static_cast<double>(quantizing_operators(reference_))));
  }

  void begin(const std::string& what) const {
    if (progress_) progress_(0, 0, what);
  }

  // Compares every element of the compared images, measured by the largest value, and sees that nothing of the others
  // was left unwritten. Whether that says all there is to say: an output that is right only if measured by what it was
  // chosen from may be tiny beside that, so the steps have to tell.
  bool compare_outputs(VerifiedProgram& result, const Tensors& inputs, const Tensors& outputs) const {
    begin(fmt::format("batch {}, {} images in float64", result.batch, result.images.size()));
    const Tensors chosen = pick_images(inputs, result.batch, result.images);
    std::map<int, double> largest;  // of tensors
    for (const int output : reference_.outputs) largest[output] = largest[chosen_from(reference_, output)] = 0;
    const auto visit = [&](int tensor, std::span<const double> values) {
      const auto measured = largest.find(tensor);
      if (measured == largest.end()) return;
      for (const double value : values) {
        if (std::isfinite(value)) measured->second = std::max(measured->second, std::abs(value));
      }
    };
    const std::vector<std::vector<double>> expected =
        run_reference(reference_, static_cast<int>(result.images.size()), {chosen.begin(), chosen.end()}, visit);
    const double rounding = whole_share(arithmetic_of(index_, *result.program));
    bool says_all = true;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int output = reference_.outputs[i];
      const std::vector<float> made = pick_images(outputs[i], result.batch, result.images);
      const auto compared = [&](double measure) {
        return compare_within(made, expected[i], network_tolerance(deepest_, measure, rounding));
      };
      OutputResult& added = result.outputs.emplace_back();
      added.comparison = compared(largest[output]);
      if (!added.comparison.within) {
        says_all = false;
        added.comparison = compared(std::max(largest[output], largest[chosen_from(reference_, output)]));
      }
      if (added.comparison.within) added.fault = unwritten_fault(outputs[i], result.batch);
      added.passed = added.comparison.within && added.fault.empty();
      says_all = says_all && added.passed;
    }
    return says_all;
  }

  void look_at_steps(VerifiedProgram& result, const Tensors& inputs, const Tensors& outputs) {
    const std::vector<Step>& steps = result.program->steps;
    begin(fmt::format("batch {} runs step by step", result.batch));
    const Network compiled = graph_of(*result.program, reference_);
    StepComparison comparison(compiled, index_, *result.program, result.batch, result.images);
    result.stepped = true;
    result.step_fault = fault_of([&] {
      const Tensors again = executor_.run(*result.program, result.batch, inputs, [&](const StepValues& values) {
        const Step& step = steps[static_cast<std::size_t>(values.step)];
        comparison.see(values, matches(options_.layer, step.name));
        if (progress_) progress_(values.step + 1, static_cast<int>(steps.size()), step.name);
      });
      if (result.fault.empty() && !std::ranges::equal(again, outputs, same_bits)) {
        fail(ErrorKind::verification, "the steps one after the other give other outputs than the network as a whole");
      }
    });
    result.steps = comparison.results();
  }

  static constexpr std::uint8_t kUnwritten = 0xFF;  // of a map: what executors fill it with

  const Manifest& manifest_;
  ManifestIndex index_;
  const Network& reference_;
  const VerifyOptions& options_;
  Executor& executor_;
  const VerifyProgress& progress_;
  std::int64_t deepest_ = 0;
};

}  // namespace

bool VerifiedProgram::outputs_passed() const {
  return fault.empty() && std::ranges::all_of(outputs, &OutputResult::passed);
}

const StepResult* VerifiedProgram::first_failed() const {
  const auto found = std::ranges::find_if_not(steps, &StepResult::passed);
  return found == steps.end() ? nullptr : &*found;
}

bool VerifiedProgram::passed() const { return outputs_passed() && step_fault.empty() && first_failed() == nullptr; }

bool Verification::passed() const {
  return missing.empty() && (!code || code->passed()) && std::ranges::all_of(results, &VerifiedProgram::passed);
}

Tensors random_inputs(const Program& program, double input_std, int batch, std::uint64_t seed,
                      const std::optional<SyntheticZeros>& zeros, double non_finite) {
  // random_tensor() is uniform in [-1, 1], whose standard deviation is 1 / sqrt(3).
  const auto scale = static_cast<float>(input_std * std::sqrt(3.0));
  const std::vector<const Buffer*> arguments = program.inputs();
  Tensors inputs(arguments.size());
  for (const Buffer* argument : arguments) {
    if (argument->map) continue;
    std::vector<float>& input = inputs[static_cast<std::size_t>(argument->argument)];
    input = random_tensor(argument->elements() * batch, seed_for(seed, argument->tensor, batch, 0));
    for (float& value : input) value *= scale;
    if (zeros && argument->shape.size() == 3) {
      const auto extent = [&](std::size_t axis) { return static_cast<int>(argument->shape[axis]); };
      set_zeros(*zeros, input, extent(0), extent(1), extent(2), seed_for(seed, argument->tensor, batch, 1));
    }
    input = rounded(argument->format.element, std::move(input));
    if (non_finite > 0) spoil(input, non_finite, seed_for(seed, argument->tensor, batch, 2));
  }
  for (const Step& step : program.steps) {
    if (!step.input_map || program.buffer(*step.input_map).home != BufferHome::input) continue;
    constexpr double kDead = 0.5;
    const Buffer& map = program.buffer(*step.input_map);
    const ActivityExtent extent = extent_of(map, batch);
    std::vector<float>& input = inputs[static_cast<std::size_t>(program.buffer(step.reads.front()).argument)];
    kill_channels(*map.map, extent, input, kDead, seed_for(seed, map.tensor, batch, 0));
    const std::vector<std::uint8_t> marks = activity_of(*map.map, extent, input);
    inputs[static_cast<std::size_t>(map.argument)].assign(marks.begin(), marks.end());
  }
  return inputs;
}

std::vector<int> choose_images(int batch, int count, std::uint64_t seed) {
  std::set<int> chosen = {0};
  if (count > 1) chosen.insert(batch - 1);
  const auto wanted = static_cast<std::size_t>(std::min(batch, std::max(1, count)));
  if (wanted == static_cast<std::size_t>(batch)) {
    for (int image = 0; image < batch; ++image) chosen.insert(image);
  }
  for (int draw = 0; chosen.size() < wanted; ++draw) {
    chosen.insert(static_cast<int>(seed_for(seed, "images", batch, draw) % static_cast<std::uint64_t>(batch)));
  }
  return {chosen.begin(), chosen.end()};
}

Verification verify_programs(const Package& package, const Network& reference, const VerifyOptions& options,
                             Executor& executor, const VerifyProgress& progress) {
  Verification verification = Verifier(package, reference, options, executor, progress).run();
  if (options.code) verification.code = compare_code(package, options.layer, options.jobs, progress);
  return verification;
}

std::string tolerance_text(Precision precision) {
  const ElementType element = element_of(precision);
  // Powers of two: eps(fp32) is 2^-23.
  const auto power = [](double value) { return fmt::format("2^{}", std::ilogb(value)); };
  constexpr const char* kMagnitude = "sum |weight * input|";
  std::string text = fmt::format("{:g} * {} * sqrt(terms + 1) * {}", kToleranceFactor,
                                 power(epsilon_of(ElementType::f32)), kMagnitude);
  if (precision == Precision::fp16x2) {
    text += fmt::format(" + {:g} * {} * sqrt(terms of an FP16 sum + 1) * {}", kHalfToleranceFactor,
                        power(epsilon_of(ElementType::f16)), kMagnitude);
  }
  if (element != ElementType::f32) text += fmt::format(" + {} * |expected|", power(epsilon_of(element) / 2));
  return text;
}

std::string error_ratio_text(double ratio) {
  constexpr double kManyTimes = 100;
  return ratio < kManyTimes ? fmt::format("{:.3f}", ratio) : fmt::format("{:.1e}", ratio);
}

}  // namespace burin
