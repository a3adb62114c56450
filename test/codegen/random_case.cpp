#include "test/codegen/random_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/program_tasks.h"
#include "compiler/providers/conv_baked/plan/grouping.h"
#include "compiler/providers/conv_baked/plan/planner.h"
#include "ir/baked_plan_pool.h"
#include "ir/derive_form.h"
#include "ir/error.h"
#include "test/codegen/hand_plan.h"
#include "test/ir/random_layers.h"

using namespace burin;

namespace burin_test {
namespace {

constexpr std::int64_t kMostWork = 3'000'000;  // multiply-adds and copies of a run: the host checks each access
constexpr double kUsualNonzeros = 1'500;       // the assembler's time grows with them
constexpr double kMostNonzeros = 12'000;       // a few layers have so many
constexpr int kMostBatch = 40;
constexpr std::array<double, 6> kDensities = {0.02, 0.05, 0.1, 0.3, 0.7, 1};

int extent_for(Random& random, int kernel, int dilation, int pads, int most) {
  const int least = std::max(1, (kernel - 1) * dilation + 1 - pads);
  return least + random.integer(0, std::max(0, most - least));
}

ConvShape draw_shape(Random& random) {
  ConvShape shape;
  if (random.chance(0.2)) {  // depthwise, with one or two outputs per input
    shape.groups = random.integer(2, 32);
    shape.in_channels = shape.groups;
    shape.out_channels = shape.groups * random.integer(1, 2);
  } else {
    shape.groups = random.chance(0.25) ? random.integer(2, 5) : 1;
    shape.in_channels = shape.groups * random.integer(1, shape.groups > 1 ? 10 : 40);
    shape.out_channels = shape.groups * random.integer(1, shape.groups > 1 ? 10 : 70);
  }
  const bool pointwise = random.chance(0.1);
  const int most_kernel = pointwise ? 1 : random.chance(0.15) ? 11 : random.chance(0.5) ? 3 : 7;
  shape.kernel_h = random.integer(1, most_kernel);
  shape.kernel_w = random.chance(0.6) ? shape.kernel_h : random.integer(1, most_kernel);
  shape.stride_h = random.chance(0.5) ? 1 : random.integer(1, 4);
  shape.stride_w = random.chance(0.7) ? shape.stride_h : random.integer(1, 4);
  shape.dilation_h = random.chance(0.7) ? 1 : random.integer(2, 4);
  shape.dilation_w = random.chance(0.7) ? shape.dilation_h : random.integer(1, 4);
  if (random.chance(0.03)) {  // the inputs of one pixel may not fit a block's shared memory
    shape.kernel_h = shape.kernel_w = random.integer(5, 9);
    shape.dilation_h = shape.dilation_w = random.integer(24, 48);
  }
  const int most_pad = random.chance(pointwise ? 0.7 : 0.3) ? 0 : random.chance(0.2) ? 9 : 3;
  shape.pad = {random.integer(0, most_pad), random.integer(0, most_pad), random.integer(0, most_pad),
               random.integer(0, most_pad)};
  shape.in_h = extent_for(random, shape.kernel_h, shape.dilation_h, shape.pad.top + shape.pad.bottom, 24);
  shape.in_w = extent_for(random, shape.kernel_w, shape.dilation_w, shape.pad.left + shape.pad.right, 30);
  shape.epilogue.bias = random.chance(0.5);
  const auto activation = static_cast<Activation>(random.integer(0, 5));
  shape.epilogue.function = function_of(activation, static_cast<float>(2 * random.real() - 0.5));
  add_residual(shape, random);
  return shape;
}

double work_of(const ConvShape& shape, double nonzeros) {
  return nonzeros * shape.out_h() * shape.out_w() +
         4.0 * static_cast<double>(shape.input_elements() + shape.output_elements());
}

// Empties some filters, and some input channels of the filters that read them.
void empty_some(ConvLayer& layer, Random& random) {
  const ConvShape& shape = layer.shape;
  const double filters = random.chance(0.2) ? random.real() : 0, channels = random.chance(0.2) ? random.real() : 0;
  std::vector<bool> no_channel(static_cast<std::size_t>(shape.in_channels));
  for (std::size_t c = 0; c < no_channel.size(); ++c) no_channel[c] = random.chance(channels);
  const int taps = shape.kernel_h * shape.kernel_w;
  for (int k = 0; k < shape.out_channels; ++k) {
    const bool no_filter = random.chance(filters);
    for (int c = 0; c < shape.channels_per_group(); ++c) {
      if (!no_filter && !no_channel[static_cast<std::size_t>(shape.input_channel(k, c))]) continue;
      float* start = layer.weights.data() + (std::ptrdiff_t{k} * shape.channels_per_group() + c) * taps;
      std::fill(start, start + taps, 0.0F);
    }
  }
}

void draw_layer(RandomCase& drawn, Random& random) {
  const bool large = random.chance(0.02);
  double density = kDensities[static_cast<std::size_t>(random.integer(0, static_cast<int>(kDensities.size()) - 1))];
  if (random.chance(0.03) && !large) density = 0;
  drawn.batch = random.integer(1, large || random.chance(0.5) ? 5 : kMostBatch);
  ConvShape shape;
  double nonzeros = 0;
  const auto fits = [&] {
    const bool enough = large ? nonzeros > kUsualNonzeros && nonzeros <= kMostNonzeros : nonzeros <= kUsualNonzeros;
    return enough && work_of(shape, nonzeros) * drawn.batch <= kMostWork;
  };
  do {
    shape = draw_shape(random);
    nonzeros = static_cast<double>(shape.weight_elements()) * density;
  } while (!fits());
  drawn.layer = make_layer(fmt::format("random_{}", drawn.index), shape, density, drawn.seed ^ drawn.index);
  empty_some(drawn.layer, random);
}

// The value of each key of --plan that is drawn; a key that is not drawn is left to the planner.
std::vector<std::string> draw_constraints(const ConvLayer& layer, const SparsePattern& pattern, Precision precision,
                                          Random& random) {
  const ConvShape& shape = layer.shape;
  std::vector<std::string> items;
  const auto add = [&](const char* key, const std::string& value) {
    if (random.chance(0.4)) items.push_back(fmt::format("{}={}", key, value));
  };
  const bool may_be_direct = shape.kernel_h == 1 && shape.kernel_w == 1 && shape.pad == Padding{};
  add("staging", may_be_direct && random.chance(0.5) ? "direct" : random.chance(0.5) ? "bulk" : "shared");
  const int images = random.integer(1, 4);
  const OutputTile outputs = {random.integer(1, std::min(shape.out_h(), 16)),
                              random.integer(1, std::min(shape.out_w(), 32))};
  const PixelTile tile = pixel_tile(outputs, images, shape);
  add("tile", fmt::format("{}x{}x{}", tile.images, tile.rows, tile.cols));
  const std::vector<GroupOption> options = group_options(shape, pattern);
  const auto option = static_cast<std::size_t>(random.integer(0, static_cast<int>(options.size()) - 1));
  add("groups", std::to_string(options[option].groups));
  add("splits", std::to_string(random.integer(1, 8)));
  add("reduction", random.chance(0.5) ? "cluster" : "last_block");
  if (random.chance(0.3)) {
    add("cluster", fmt::format("{}x{}", random.integer(1, 4), random.integer(1, 3)));
  }
  add("stage", std::to_string(random.integer(1, 16)));
  add("buffers", std::to_string(random.integer(1, 4)));
  add("barrier", std::to_string(random.chance(0.3) ? 0 : random.integer(1, 500)));
  add("ahead", std::to_string(random.integer(1, kMaxLoadAhead)));
  if (precision == Precision::fp16x2) add("promote", std::to_string(random.chance(0.3) ? 0 : random.integer(1, 64)));
  return items;
}

std::string join(const std::vector<std::string>& items) { return fmt::format("{}", fmt::join(items, ",")); }

// Whether the planner finds a plan that keeps the constraints. An error of any other kind is for whoever compiles it.
bool can_be_kept(const RandomCase& drawn, const SparsePattern& pattern, const std::vector<std::string>& items) {
  try {
    PlanRequest request{drawn.planned_batch, drawn.archs, parse_plan_constraints(join(items))};
    request.precision = drawn.precision;
    (void)make_plan(drawn.layer, pattern, request);
  } catch (const Error& error) {
    return error.kind() != ErrorKind::usage;
  }
  return true;
}

// What its provider proposes.
std::vector<Candidate> provider_candidates(const RandomCase& drawn, const std::string& arch, int count) {
  CompileOptions options;
  options.archs = {arch};
  options.precisions = {drawn.precision};
  options.layout = drawn.asked_layout();
  const Operator op{.name = drawn.layer.name, .kind = Convolution{}, .inputs = {}, .output = 0};
  const Task task = task_of(op, drawn.layer, drawn.planned_batch, options);
  return find_provider(drawn.provider())->propose(task, {.count = count});
}

// One of its best plans.
void draw_provider_plan(RandomCase& drawn, Random& random, const std::string& arch) {
  constexpr int kMostCandidates = 40;
  const Provider& provider = *find_provider(drawn.provider());
  const std::vector<Candidate> candidates = provider_candidates(drawn, arch, kMostCandidates);
  if (candidates.empty() || random.chance(0.2)) return;
  const auto chosen = static_cast<std::size_t>(random.integer(0, static_cast<int>(candidates.size()) - 1));
  drawn.source = PlanSource::constrained;
  drawn.constraints = provider.brief(candidates[chosen].plan);
}

void draw_plan(RandomCase& drawn, Random& random, const std::string& arch) {
  drawn.planned_batch = random.chance(0.4) ? drawn.batch : random.chance(0.5) ? 1 : random.integer(2, kMostBatch);
  drawn.archs = {arch};
  if (drawn.precision == Precision::tf32 || drawn.on_warpgroups) return draw_provider_plan(drawn, random, arch);
  const bool four_together = random.chance(0.2);
  if (arch != "sm_75" && random.chance(0.1)) drawn.archs = {"sm_75", arch};  // the plan and the PTX serve both
  const double which = random.real();
  const ConvShape& shape = drawn.layer.shape;
  if (which < 0.3) {
    drawn.source = PlanSource::constrained;
    const SparsePattern pattern = analyse(drawn.layer);
    std::vector<std::string> items = draw_constraints(drawn.layer, pattern, drawn.precision, random);
    while (!items.empty() && !can_be_kept(drawn, pattern, items)) {
      items.erase(items.begin() + random.integer(0, static_cast<int>(items.size()) - 1));
    }
    drawn.constraints = join(items);
    if (items.empty()) drawn.source = PlanSource::planner;
  } else if (which < 0.55 && std::max(shape.dilation_h, shape.dilation_w) <= 4) {  // so that small tiles fit
    drawn.source = PlanSource::by_hand;
    drawn.archs = {arch};
    drawn.plan = plan_by_hand(drawn.layer, random_hand_plan(drawn.layer, random, arch, drawn.precision), arch);
    drawn.plan.batch = drawn.planned_batch;
  }
  // Patches with zeros around the image are copied from nchw alone; other staging needs sm_90.
  if (four_together && drawn.precision == Precision::fp32 && drawn.source == PlanSource::planner &&
      drawn.archs == std::vector<std::string>{"sm_90"}) {
    drawn.layout = TensorLayout::nchw4;
  }
}

// Neighbouring seeds and indices give unrelated streams (splitmix64).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15ULL + index;
  for (const std::uint64_t factor : {0xBF58476D1CE4E5B9ULL, 0x94D049BB133111EBULL}) z = (z ^ (z >> 29)) * factor;
  return z ^ (z >> 32);
}

// The convolution alone is left, without what follows its pool.
void remove_pool(ConvLayer& layer) {
  layer.shape.epilogue.pool.reset();
  layer.shape.epilogue.then.reset();
  layer.filters.clear();
  layer.filter_bias.clear();
}

// A pool of the outputs, which of conv_warpgroup_rows may filter, where the provider has a kernel with it. From a
// stream of its own, so that the layer is the same in every precision.
void draw_pool(RandomCase& drawn, const std::string& arch) {
  constexpr std::uint64_t kStream = 0x706F6F6C;
  Random random(mixed(drawn.seed ^ kStream, drawn.index));
  ConvShape& shape = drawn.layer.shape;
  const bool is_baked = drawn.provider() == kBakedProvider;
  if (!random.chance(0.4)) return;
  const bool filters = drawn.on_warpgroups && random.chance(0.6);
  constexpr int kMostPixels = 256;
  shape.epilogue.residual_last = false;  // no layer has both
  do {
    Pool pool;
    pool.kind = random.chance(0.5) ? PoolKind::max : PoolKind::average;
    const bool whole = random.chance(0.3);
    pool.kernel_h = whole ? shape.conv_h() : random.integer(1, std::min(shape.conv_h(), 7));
    pool.kernel_w = whole ? shape.conv_w() : random.integer(1, std::min(shape.conv_w(), 7));
    pool.stride_h = random.integer(1, 4);
    pool.stride_w = random.chance(0.7) ? pool.stride_h : random.integer(1, 4);
    if (random.chance(0.5)) {
      pool.pad = {random.integer(0, pool.kernel_h - 1), random.integer(0, pool.kernel_h - 1),
                  random.integer(0, pool.kernel_w - 1), random.integer(0, pool.kernel_w - 1)};
    }
    pool.round_up = !filters && random.chance(0.4);
    pool.count_padding = !filters && random.chance(0.4);
    shape.epilogue.pool = pool;
  } while (!verify(shape).empty() || pixel_tile({1, 1}, 1, shape).pixels() > kMostPixels);
  if (filters) {
    const auto then = static_cast<Activation>(random.integer(0, 5));
    add_filters(drawn.layer, *shape.epilogue.pool, drawn.seed ^ drawn.index, function_of(then, 0.5F));
  }
  if (is_baked || !provider_candidates(drawn, arch, 1).empty()) return;
  remove_pool(drawn.layer);
}

// From a stream of its own, so that the rest of a case does not depend on it.
Precision draw_precision(std::uint64_t seed, std::uint64_t index) {
  Random random(mixed(~seed, index));
  if (random.chance(0.5)) return Precision::fp32;
  constexpr std::array kOthers = {Precision::fp16, Precision::bf16, Precision::fp16x2, Precision::tf32};
  return kOthers[static_cast<std::size_t>(random.integer(0, static_cast<int>(kOthers.size()) - 1))];
}

// In TF32, half of them in n4c8hw. From a stream of its own.
void draw_lines(RandomCase& drawn, const std::string& arch) {
  constexpr std::uint64_t kStream = 0x6C696E65;
  Random random(mixed(drawn.seed ^ kStream, drawn.index));
  if (drawn.precision == Precision::tf32 && arch == "sm_90" && random.chance(0.5)) drawn.layout = TensorLayout::n4c8hw;
}

// In TF32, half of those that stay in nchw, and of these a third in places; of halves two in five, most of them in
// places. Where there are places, channels are last in half of them. From a stream of its own.
void draw_warpgroups(RandomCase& drawn, const std::string& arch) {
  constexpr std::uint64_t kStream = 0x726F7773;
  Random random(mixed(drawn.seed ^ kStream, drawn.index));
  if (arch != "sm_90") return;
  if (drawn.precision == Precision::tf32 && drawn.layout == TensorLayout::nchw) {
    drawn.on_warpgroups = random.chance(0.5);
    if (drawn.on_warpgroups && random.chance(1.0 / 3)) drawn.layout = TensorLayout::nhwc4;
  } else if (drawn.precision == Precision::fp16 || drawn.precision == Precision::bf16) {
    drawn.on_warpgroups = random.chance(0.4);
    if (drawn.on_warpgroups && random.chance(0.7)) {
      drawn.layout = random.chance(0.5) ? TensorLayout::nchw8 : TensorLayout::nhwc8;
    }
  }
}

// Who has no kernel on warpgroups is baked, or in TF32 in nchw.
void keep_possible(RandomCase& drawn, const std::string& arch) {
  const bool is_tf32 = drawn.precision == Precision::tf32;
  if (!drawn.on_warpgroups || (is_tf32 && drawn.layout == TensorLayout::nchw)) return;
  if (!provider_candidates(drawn, arch, 1).empty()) return;
  drawn.on_warpgroups = is_tf32;
  drawn.layout = TensorLayout::nchw;
}

// Factors that are rounded, and columns of dead channels left out, of a layer that the provider can compute so.
void draw_dead_channels(RandomCase& drawn, Random& random) {
  constexpr std::array kRounding = {Precision::fp16, Precision::bf16, Precision::tf32};
  RandomCase on_tensor_cores = drawn;
  on_tensor_cores.precision = kRounding[static_cast<std::size_t>(random.integer(0, 2))];
  remove_pool(on_tensor_cores.layer);
  if (provider_candidates(on_tensor_cores, "sm_90", 1).empty()) return;
  drawn = std::move(on_tensor_cores);
  drawn.source = PlanSource::constrained;
  drawn.constraints = "skip_dead=1,sparse=0";
}

// The planner's plan, and zeros, also none and all. From a stream of its own.
void draw_zeros(RandomCase& drawn, const std::string& arch) {
  constexpr std::uint64_t kStream = 0x7A65726F;
  Random random(mixed(drawn.seed ^ kStream, drawn.index));
  constexpr std::array kShares = {0.0, 0.3, 0.6, 0.8, 0.9, 0.97, 1.0};
  constexpr std::array kPatterns = {ZeroPattern::random, ZeroPattern::channels, ZeroPattern::blobs, ZeroPattern::dead};
  const auto one_of = [&](const auto& all) {
    return all[static_cast<std::size_t>(random.integer(0, static_cast<int>(all.size()) - 1))];
  };
  drawn.zeros = SyntheticZeros{one_of(kPatterns), one_of(kShares)};
  drawn.source = PlanSource::planner;
  drawn.constraints.clear();
  drawn.layout = TensorLayout::nchw;
  if (arch == "sm_90" && random.chance(0.5)) draw_dead_channels(drawn, random);
}

// A convolution of step 1 with nearly all of its weights, as both providers take it.
ConvShape draw_dense_shape(Random& random) {
  ConvShape shape;
  shape.in_channels = random.integer(1, random.chance(0.4) ? 8 : 60);
  shape.out_channels = random.integer(1, 70);
  const bool is_square = random.chance(0.6);
  shape.kernel_h = random.chance(0.5) ? 3 : random.integer(3, 15);
  shape.kernel_w = is_square ? shape.kernel_h : random.integer(3, 15);
  const auto pad = [&](int kernel) { return random.integer(0, random.chance(0.5) ? 0 : kernel / 2); };
  shape.pad = {pad(shape.kernel_h), pad(shape.kernel_h), pad(shape.kernel_w), pad(shape.kernel_w)};
  shape.in_h = extent_for(random, shape.kernel_h, 1, shape.pad.top + shape.pad.bottom, 30);
  shape.in_w = extent_for(random, shape.kernel_w, 1, shape.pad.left + shape.pad.right, 30);
  shape.epilogue.bias = random.chance(0.5);
  const auto activation = static_cast<Activation>(random.integer(0, 5));
  shape.epilogue.function = function_of(activation, static_cast<float>(2 * random.real() - 0.5));
  if (random.chance(0.4)) shape.epilogue.pool = random_pool(random);
  add_residual(shape, random);
  return shape;
}

// One of the provider's best plans, for a layer that it computes. From a stream of its own.
void draw_transformed(RandomCase& drawn, const std::string& arch) {
  constexpr std::uint64_t kStream = 0x7472616E73;
  Random random(mixed(drawn.seed ^ kStream, drawn.index));
  do {
    drawn.transformed = random.chance(0.6) ? "conv_winograd" : "conv_fft";
    ConvShape shape = draw_dense_shape(random);
    if (drawn.transformed == "conv_winograd") shape.kernel_h = shape.kernel_w = 3;
    const double density = random.chance(0.6) ? 1 : 0.5 + 0.5 * random.real();
    drawn.batch = random.integer(1, random.chance(0.7) ? 5 : kMostBatch);
    const double weights = density * static_cast<double>(shape.weight_elements());
    if (!verify(shape).empty() || work_of(shape, weights) * drawn.batch > kMostWork) continue;
    drawn.layer = make_layer(fmt::format("random_{}", drawn.index), shape, density, drawn.seed ^ drawn.index);
    drawn.planned_batch = random.chance(0.5) ? drawn.batch : random.integer(1, kMostBatch);
  } while (drawn.layer.weights.empty() || provider_candidates(drawn, arch, 1).empty());
  draw_provider_plan(drawn, random, arch);
}

}  // namespace

std::string_view option_of(CaseKind kind) {
  switch (kind) {
    case CaseKind::usual:
      return "";
    case CaseKind::zero_skip:
      return " --zero-skip";
    case CaseKind::transformed:
      return " --transformed";
  }
  return "?";
}

std::string_view to_string(PlanSource source) {
  switch (source) {
    case PlanSource::planner:
      return "planner";
    case PlanSource::constrained:
      return "constrained";
    case PlanSource::by_hand:
      return "by hand";
  }
  return "?";
}

std::optional<TensorLayout> RandomCase::asked_layout() const {
  const bool needs_no_saying = (!on_warpgroups && !zeros) || precision == Precision::tf32;
  const bool is_default = layout == TensorLayout::nchw && needs_no_saying;
  return is_default ? std::nullopt : std::optional(layout);
}

double RandomCase::non_finite() const { return index % 4 == 3 ? 0.01 : 0; }

std::string RandomCase::provider() const {
  if (!transformed.empty()) return transformed;
  if (zeros) return precision == Precision::fp32 ? "conv_zero_skip" : "conv_gathered_rows";
  if (layout == TensorLayout::n4c8hw) return "conv_warpgroup_tf32";
  if (on_warpgroups) return "conv_warpgroup_rows";
  return std::string(precision == Precision::tf32 ? "conv_gathered_rows" : kBakedProvider);
}

std::string RandomCase::arguments() const {
  const std::string given = precision_was_given ? fmt::format(" --precision {}", burin::to_string(precision)) : "";
  const CaseKind kind = zeros ? CaseKind::zero_skip : transformed.empty() ? CaseKind::usual : CaseKind::transformed;
  return fmt::format("--seed {} --only {}{}", seed, index, kind == CaseKind::usual ? given : option_of(kind));
}

std::string RandomCase::describe() const {
  const Epilogue& epilogue = layer.shape.epilogue;
  const auto nonzeros = std::count_if(layer.weights.begin(), layer.weights.end(), [](float w) { return w != 0; });
  std::string text =
      fmt::format("{}, {} nonzeros{}{}, {}, {}, tuned for batch {}, run with {}, on {}, plan {}",
                  burin::describe(layer.shape), nonzeros, epilogue.bias ? ", bias" : "",
                  epilogue.residual_last ? ", residual last"
                  : epilogue.residual    ? ", residual"
                                         : "",
                  epilogue.function ? burin::describe(*epilogue.function) : "no function", burin::to_string(precision),
                  planned_batch, batch, fmt::join(archs, "+"), to_string(source));
  if (non_finite() > 0) text += fmt::format(", {:g} NaN or infinite", non_finite());
  if (zeros) text += fmt::format(", {:g} zeros, {}", zeros->share, burin::to_string(zeros->pattern));
  if (!transformed.empty()) text += ", " + transformed;
  if (source == PlanSource::constrained) text += " " + constraints;
  if (source == PlanSource::by_hand) text += ": " + burin::describe(plan);
  return text;
}

RandomCase draw_case(std::uint64_t seed, std::uint64_t index, const std::string& arch,
                     std::optional<Precision> precision, CaseKind kind) {
  if (kind != CaseKind::usual) precision = Precision::fp32;
  Random random(mixed(seed, index));
  RandomCase drawn;
  drawn.seed = seed;
  drawn.index = index;
  drawn.precision_was_given = precision.has_value();
  drawn.precision = precision ? *precision : draw_precision(seed, index);
  if (kind == CaseKind::transformed) {
    drawn.archs = {arch};
    draw_transformed(drawn, arch);
    return drawn;
  }
  draw_layer(drawn, random);
  draw_lines(drawn, arch);
  draw_warpgroups(drawn, arch);
  draw_pool(drawn, arch);
  keep_possible(drawn, arch);
  draw_plan(drawn, random, arch);
  if (kind == CaseKind::zero_skip) draw_zeros(drawn, arch);
  return drawn;
}

}  // namespace burin_test
