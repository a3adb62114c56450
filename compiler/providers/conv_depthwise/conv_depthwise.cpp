// Convolution of each channel by itself, weights as data.
#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kMaxTaps = 49, kMaxThreadRows = 4;  // conv_depthwise.cu
constexpr int kMostUnrolledProducts = 150;        // conv_depthwise.cu
constexpr int kMostWindowPixels = 64;             // that one thread computes
constexpr double kWaitingThreads = 1024;          // of a multiprocessor, with large windows
constexpr double kPlaceValues = 8;                // of images or channels side by side
constexpr int kLargeFilter = 25;                  // positions of a filter; more are many

// A thread has as many outputs that share rows of the input as leave all multiprocessors full.
int choose_rows(const Task& task) {
  const ConvShape& shape = task.layer->shape;
  if (shape.stride_h >= shape.kernel_h || shape.dilation_h > 1 || shape.epilogue.pool) return 1;
  const ArchSpec& arch = arch_of(task);
  const std::int64_t full = std::int64_t{arch.multiprocessors} * arch.max_threads_per_multiprocessor;
  // A place of eight images is four times the work of a word.
  const std::int64_t rounds = shape.output_elements() * task.batch * 4 / (full * (place_words(task) == 1 ? 4 : 8));
  // Large filters of eight images at once take all registers that there are.
  constexpr int kRowsOfLargeFilter = 2;
  const bool large = place_words(task) > 1 && shape.kernel_h * shape.kernel_w > kLargeFilter;
  for (int rows = large ? kRowsOfLargeFilter : kMaxThreadRows; rows > 1; rows /= 2) {
    if (rounds >= 2 * rows && shape.out_h() >= rows) return rows;
  }
  return 1;
}

bool has_small_window(const ConvShape& shape) {
  const Pool pool = shape.epilogue.pool.value_or(Pool{});
  return std::int64_t{pool.kernel_h} * pool.kernel_w <= kMostWindowPixels;
}

// What a thread does for the window of a pool, by estimates.
struct WindowWork {
  double loads = 0;    // products count as a part of a load each
  double waiting = 0;  // clocks that no other work of the thread hides

  explicit WindowWork(const ConvShape& shape) {
    constexpr double kProduct = 0.1, kWaitOfPixel = 400;
    const Pool& pool = *shape.epilogue.pool;
    const int taps = shape.kernel_h * shape.kernel_w, pixels = pool.kernel_h * pool.kernel_w;
    const bool unrolled = taps * pixels <= kMostUnrolledProducts;
    const bool shares = unrolled && shape.dilation_h == 1 && shape.dilation_w == 1;
    const double rows = (pool.kernel_h - 1) * shape.stride_h + shape.kernel_h;
    const double cols = (pool.kernel_w - 1) * shape.stride_w + shape.kernel_w;
    loads = (shares ? rows * cols : double{1} * taps * pixels) + kProduct * taps * pixels;
    waiting = unrolled ? 0 : kWaitOfPixel * pixels;
  }
};

// Words of a channel: its weights, then its bias.
std::int64_t pitch_of(const ConvShape& shape) {
  return round_up(std::int64_t{shape.kernel_h} * shape.kernel_w + 1, kVectorWords);
}

// Lays the weights out as conv_depthwise.cu reads them.
std::vector<std::uint32_t> pack_channels(const ConvLayer& layer) {
  const auto taps = static_cast<std::size_t>(layer.shape.kernel_h * layer.shape.kernel_w);
  const auto pitch = static_cast<std::size_t>(pitch_of(layer.shape));
  std::vector<std::uint32_t> words(pitch * static_cast<std::size_t>(layer.shape.out_channels));
  for (std::size_t k = 0; k < words.size() / pitch; ++k) {
    for (std::size_t i = 0; i < taps; ++i) {
      words[k * pitch + i] = std::bit_cast<std::uint32_t>(layer.weights[k * taps + i]);
    }
    words[k * pitch + taps] = std::bit_cast<std::uint32_t>(layer.bias.empty() ? 0.0F : layer.bias[k]);
  }
  return words;
}

class ConvDepthwiseProvider : public TemplateProvider {
 public:
  ConvDepthwiseProvider() : TemplateProvider("conv_depthwise") {}

  bool is_dense() const override { return true; }

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const override {
    const ConvShape& shape = task.layer->shape;
    const int chosen = choose_rows(task);
    std::vector<int> all = {chosen};
    const bool shares_rows = shape.dilation_h == 1 && !shape.epilogue.pool;
    for (int rows = 1; rows <= kMaxThreadRows && shares_rows; rows *= 2) {
      if (rows != chosen && rows <= shape.out_h()) all.push_back(rows);
    }
    std::vector<Candidate> candidates;
    for (const int rows : all) {
      if (static_cast<int>(candidates.size()) == options.count) break;
      candidates.push_back(candidate(task, plan_of(task, rows)));
    }
    return candidates;
  }
  std::vector<std::string> choices() const override { return {"thread_rows"}; }
  // Its tensors are moved, and each thread issues the loads of its windows.
  double predict_us(const Task& task, const TemplatePlan& plan) const override {
    const ConvShape& shape = task.layer->shape;
    // Rows of the input are loaded by several threads. Of many images more is still in the L2 cache than is reckoned.
    const double moved = in_lines(task) ? 0.66 : 1.2;
    const double loads_per_clock = loads_of_multiprocessor(task);
    const ArchSpec& arch = arch_of(task);
    const int rows = plan.integers.at("thread_rows");
    const double outputs = static_cast<double>(shape.output_elements()) * task.batch;
    const double rows_read = (rows - 1) * shape.stride_h + shape.kernel_h;
    double loads = outputs * rows_read * shape.kernel_w / rows, waiting = 0;
    if (shape.epilogue.pool) {
      const WindowWork work(shape);
      loads = outputs * work.loads;
      // Threads that a multiprocessor has at once wait together.
      const double places = outputs / (place_words(task) == 1 ? 1 : kPlaceValues);
      waiting = work.waiting * std::ceil(places / (arch.multiprocessors * kWaitingThreads));
    }
    const double busy = loads / (loads_per_clock * arch.multiprocessors) + waiting;
    return launch_time_us(
        {.busy_us = clocks_us(busy, arch), .activation_bytes = moved * activation_bytes(task), .uncovered = {}}, arch);
  }
  bool knows_formats() const override { return true; }
  bool can(const Task& task) const override {
    if (task.layer == nullptr || task.activity_maps || task.precision == Precision::fp16x2 || !has_one_format(task))
      return false;
    const ConvShape& shape = task.layer->shape;
    return shape.groups > 1 && shape.channels_per_group() == 1 && shape.kernel_h * shape.kernel_w <= kMaxTaps &&
           has_small_window(shape) && !shape.epilogue.filters();
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const override {
    const int rows = chosen.integers.at("thread_rows");
    return rows > 1 && task.layer->shape.epilogue.pool ? start(task) : plan_of(task, rows);
  }
  std::vector<std::uint32_t> pack(const Task& task, const TemplatePlan&) const override {
    return pack_channels(*task.layer);
  }

 private:
  // Whether images lie side by side in places.
  static bool in_lines(const Task& task) { return has_lines(task.reads.front().layout); }

  // How many a multiprocessor takes in a clock. Filters with many positions wait for products; a place of several
  // values is one load. Those of images side by side were fitted to eight layers at batch 32, of which one has 5x5
  // filters.
  static double loads_of_multiprocessor(const Task& task) {
    constexpr double kWords = 13, kWordsOfLargeFilter = 5.5, kPlacesOfChannels = 18;
    constexpr double kHalfPlaces = 26, kFloatPlaces = 20, kManyPositionsShare = 0.56;
    constexpr int kManyPositions = 25;
    const ConvShape& shape = task.layer->shape;
    const int positions = shape.kernel_h * shape.kernel_w;
    if (place_words(task) == 1) return positions > kLargeFilter ? kWordsOfLargeFilter : kWords;
    if (!in_lines(task)) return kPlacesOfChannels;
    const double places = task.reads.front().element == ElementType::f32 ? kFloatPlaces : kHalfPlaces;
    return positions >= kManyPositions ? places * kManyPositionsShare : places;
  }

  TemplatePlan plan_of(const Task& task, int rows) const {
    const ConvShape& shape = task.layer->shape;
    TemplatePlan plan = start(task);
    set_narrow(plan);
    set_convolution(plan, shape);
    set_pool(plan, shape);
    set_integers(plan, {{"channels", shape.out_channels},
                        {"out_rows", shape.out_h()},
                        {"out_cols", shape.out_w()},
                        {"thread_rows", rows},
                        {"outputs_per_channel", shape.outputs_per_group()}});
    set_items(plan, stored_channels(task) * ceil_div(shape.out_h(), rows) * shape.out_w());
    set_word_images(plan);
    plan.weights().run_words = std::int64_t{shape.out_channels} * pitch_of(shape);
    return plan;
  }
};

}  // namespace

const Provider& conv_depthwise_provider() { return the_only<ConvDepthwiseProvider>(); }

}  // namespace burin
