#include "compiler/calibrate/calibrate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "compiler/calibrate/graph_rounding.h"
#include "compiler/reference.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::size_t kNamedTensors = 6;  // in one message
constexpr std::size_t kReasonNameBytes = 64;

std::string describe(const Overflow& overflow, std::size_t name_bytes = kPrintableBytes) {
  return fmt::format("{}'{}' reaches {:.6g}", overflow.of_weights ? "a weight of " : "",
                     printable(overflow.tensor, name_bytes), overflow.largest);
}

std::string end_of(ElementType element) {
  return fmt::format("{:g}, the largest number of {}", largest_of(element),
                     element == ElementType::f16 ? "FP16" : "BF16");
}

// What the package keeps, which has no room for every name.
std::string reason_of(const Overflow& overflow) {
  return fmt::format("{}, beyond {}", describe(overflow, kReasonNameBytes), end_of(overflow.element));
}

// Convolutions and fully connected layers.
std::int64_t layers(const Network& network) {
  return std::ranges::count_if(network.operators, [](const Operator& op) {
    return std::holds_alternative<Convolution>(op.kind) || std::holds_alternative<Linear>(op.kind);
  });
}

class Calibration {
 public:
  Calibration(const Network& network, const CompileOptions& options, const CalibrateOptions& asked,
              const CompiledGraphs& compiled, const std::function<void(const CalibrateProgress&)>& progress)
      : network_(network), options_(options), asked_(asked), compiled_(compiled), progress_(progress) {}

  Calibrated run() {
    result_.precisions = options_.precisions;
    const SampleImages images = sample_images(network_, asked_.inputs, "--calibrate");
    if (network_.separate) {
      for (const Operator& op : network_.operators) {
        const Network graph = network_of(network_, op);
        choose(graph, images_of(graph, network_, images), fmt::format("layer '{}'", op.name));
      }
    } else {
      const std::string what = "the network";
      std::vector<std::string> ranked;
      if (leaves_open(asked_.precisions)) ranked = choose(network_, images, what);
      hold_as_compiled(images, what, ranked);
    }
    check_overflows();
    result_.note = note(images.count);
    return std::move(result_);
  }

 private:
  bool is_open(const std::string& layer) const { return !asked_.precisions.of(layer).has_value(); }

  void keep(const std::string& layer, const std::string& reason) {
    result_.precisions.of_layers[layer] = Precision::fp32;
    result_.kept.try_emplace(layer, reason);
  }

  // Decides for the layers of a graph. Those that it leaves open, in the order in which they would be kept next.
  std::vector<std::string> choose(const Network& graph, const SampleImages& images, const std::string& what) {
    plan_steps(graph, images);
    const StoredHalves stored = network_.separate ? StoredHalves::as_compiled : StoredHalves::where_possible;
    const GraphRounding rounding(graph, options_, images, stored, [&] { step(what); });
    for (const Overflow& overflow : rounding.overflows()) {
      for (const std::string& layer : overflow.layers) {
        if (is_open(layer)) keep(layer, reason_of(overflow));
      }
    }
    if (network_.separate) {
      note_overflows(rounding);
      if (!beyond_.empty()) return {};  // all that overflow are named together
    }
    return keep_worst(rounding, what);
  }

  // Notes what overflows in precisions that were asked for.
  void note_overflows(const GraphRounding& rounding) {
    for (const Overflow& overflow : rounding.overflows()) {
      const auto is_it = [&](const Overflow& known) {
        return known.tensor == overflow.tensor && known.of_weights == overflow.of_weights &&
               known.element == overflow.element;
      };
      const bool left_open =
          std::ranges::all_of(overflow.layers, [&](const std::string& layer) { return is_open(layer); });
      if (!left_open && std::ranges::none_of(beyond_, is_it)) beyond_.push_back(overflow);
    }
  }

  // Keeps those of the `ranked` layers that overflow in a graph that is compiled; what was joined is none of them.
  // Returns whether there are any.
  bool keep_overflows(const GraphRounding& rounding, const std::vector<std::string>& ranked) {
    bool kept = false;
    for (const Overflow& overflow : rounding.overflows()) {
      for (const std::string& layer : overflow.layers) {
        if (result_.kept.contains(layer) || std::ranges::find(ranked, layer) == ranked.end()) continue;
        keep(layer, reason_of(overflow));
        kept = true;
      }
    }
    return kept;
  }

  // Measures the graph that is compiled, and keeps more layers in FP32, of those that are `ranked`, until it is within
  // the bound as well.
  void hold_as_compiled(const SampleImages& images, const std::string& what, const std::vector<std::string>& ranked) {
    for (std::size_t kept = 0, more = 1;;) {
      const ProgramGraphs graphs = compiled_(result_.precisions);
      bool overflows = false;
      plan_measuring(images);
      result_.error = 0;
      for (const ProgramGraphs::Shared& shared : graphs.shared_by(options_.batches)) {
        CompileOptions options = options_;
        options.precisions = result_.precisions;
        options.batches = shared.batches;
        const GraphRounding rounding(*shared.graph, options, images, StoredHalves::as_compiled, [&] { step(what); });
        note_overflows(rounding);
        overflows = keep_overflows(rounding, ranked) || overflows;
        if (beyond_.empty()) result_.error = std::max(result_.error, rounding.error(result_.precisions));
      }
      if (!beyond_.empty()) return;
      if (overflows) continue;
      if (result_.error <= asked_.max_error || !leaves_open(asked_.precisions)) return;
      if (kept == ranked.size()) fail_bound(what, result_.error);
      for (std::size_t i = 0; i < more && kept < ranked.size(); ++i, ++kept) {
        keep(ranked[kept], "with fewer layers in FP32 the network, as it is compiled, is beyond --max-error");
      }
      more *= 2;
    }
  }

  [[noreturn]] void fail_bound(const std::string& what, double error) const {
    fail(ErrorKind::unsupported,
         "--precision auto: {} is off by {:.1e} of its outputs with every layer in FP32 that may be, and "
         "--max-error allows {:g}{}",
         what, error, asked_.max_error,
         options_.io == ElementType::f32
             ? ""
             : fmt::format("; --io {} rounds its inputs and outputs", to_string(precision_of(options_.io))));
  }

  // The open layers that rounding moves most come first.
  std::vector<std::string> ranked(const GraphRounding& rounding) const {
    std::vector<std::string> layers;
    for (const auto& [layer, error] : rounding.layer_errors()) {
      if (is_open(layer) && !result_.kept.contains(layer)) layers.push_back(layer);
    }
    std::ranges::stable_sort(layers, std::greater(),
                             [&](const std::string& layer) { return rounding.layer_errors().at(layer); });
    return layers;
  }

  // As few of them as suffice: the error falls with each that is kept, so that their number is found by halving. The
  // others, in their order.
  std::vector<std::string> keep_worst(const GraphRounding& rounding, const std::string& what) {
    const std::vector<std::string> layers = ranked(rounding);
    const auto with_kept = [&](std::size_t count) {
      LayerPrecisions precisions = result_.precisions;
      for (std::size_t i = 0; i < count; ++i) precisions.of_layers[layers[i]] = Precision::fp32;
      return precisions;
    };
    double error = rounding.error(result_.precisions);
    std::size_t kept = 0;
    if (error > asked_.max_error && leaves_open(asked_.precisions)) {
      std::size_t too_few = 0;
      kept = layers.size();
      error = layers.empty() ? error : rounding.error(with_kept(kept));
      // The graphs that a network is compiled as have the last word.
      if (error > asked_.max_error && network_.separate) fail_bound(what, error);
      if (error > asked_.max_error) too_few = kept;
      while (kept - too_few > 1) {
        const std::size_t middle = too_few + (kept - too_few) / 2;
        const double with_middle = rounding.error(with_kept(middle));
        if (with_middle > asked_.max_error) {
          too_few = middle;
        } else {
          kept = middle;
          error = with_middle;
        }
      }
    }
    for (std::size_t i = 0; i < kept; ++i) {
      keep(layers[i], fmt::format("in {} its outputs are off by {:.1e} of their root mean square",
                                  to_string(options_.precisions.of(layers[i])), rounding.layer_errors().at(layers[i])));
    }
    result_.error = std::max(result_.error, error);
    return {layers.begin() + static_cast<std::ptrdiff_t>(kept), layers.end()};
  }

  void check_overflows() const {
    if (beyond_.empty()) return;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < std::min(beyond_.size(), kNamedTensors); ++i) texts.push_back(describe(beyond_[i]));
    if (beyond_.size() > kNamedTensors) texts.push_back(fmt::format("{} more", beyond_.size() - kNamedTensors));
    const ElementType element = beyond_.front().element;
    fail(ErrorKind::unsupported,
         "--precision {}: beyond {}: {}; --precision auto keeps such layers in FP32, and bf16 has the range of FP32",
         to_string(precision_of(element)), end_of(element), fmt::join(texts, ", "));
  }

  std::string note(int images) const {
    const std::string measured_on =
        fmt::format("{} {}image{}", images, asked_.inputs.empty() ? "random " : "", images == 1 ? "" : "s");
    const bool open = leaves_open(asked_.precisions);
    const std::string_view given = options_.precisions.any(is_half) ? "in half precision" : "in TF32";
    std::string text = fmt::format("{} is {} off by {:.1e} of its outputs, measured in float64 on {}",
                                   network_.separate ? "the worst layer" : "the network", open ? "then" : given,
                                   result_.error, measured_on);
    if (open) {
      text = fmt::format("--precision auto: {} of {} layers stay in FP32; {} (--max-error {:g})", result_.kept.size(),
                         layers(network_), text, asked_.max_error);
    }
    if (asked_.inputs.empty()) text += "; --calibrate takes real ones, which may have larger values";
    return text;
  }

  // What is announced: the passes that a graph may take, the exact one, then error(), of an open precision with all in
  // halves, with none, and by halving; then those of the graph that is compiled.
  void plan_steps(const Network& graph, const SampleImages& images) {
    const int errors =
        leaves_open(asked_.precisions) ? 2 + static_cast<int>(std::bit_width(static_cast<unsigned>(layers(graph)))) : 1;
    total_ += images.count * (1 + graphs() * errors);
    if (!network_.separate) total_ += images.count * 2 * graphs();
  }
  // The graphs that are compiled, of which each batch size may have one, take the exact pass and error() once.
  void plan_measuring(const SampleImages& images) { total_ = std::max(total_, done_ + images.count * 2 * graphs()); }
  // Batch sizes have formats of their own.
  int graphs() const { return static_cast<int>(options_.batches.size()); }

  void step(const std::string& what) {
    ++done_;
    if (progress_) progress_({done_, std::max(done_, total_), what});
  }

  const Network& network_;
  const CompileOptions& options_;
  const CalibrateOptions& asked_;
  const CompiledGraphs& compiled_;
  const std::function<void(const CalibrateProgress&)>& progress_;
  Calibrated result_;
  std::vector<Overflow> beyond_;  // in a precision that was asked for
  int done_ = 0, total_ = 0;
};

}  // namespace

Calibrated calibrate(const Network& network, const CompileOptions& options, const CalibrateOptions& asked,
                     const CompiledGraphs& compiled, const std::function<void(const CalibrateProgress&)>& progress) {
  return Calibration(network, options, asked, compiled, progress).run();
}

}  // namespace burin
