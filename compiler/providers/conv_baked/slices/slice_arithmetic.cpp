#include "compiler/providers/conv_baked/slices/slice_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/element_type.h"

namespace burin {

using llvm::Value;

namespace {

// The same half twice: one for each image.
std::int64_t pair_of(float weight) {
  const std::int64_t half = to_half(ElementType::f16, weight);
  return half << 16 | half;
}

}  // namespace

SliceArithmetic::SliceArithmetic(SliceParts& parts)
    : parts_(parts),
      tap_(parts.holes.piece("tap")),
      tap_if_(parts.holes.piece("tap_if")),
      low_(parts.holes.piece("low")),
      high_(parts.holes.piece("high")),
      add_(parts.holes.piece("add")),
      pair_start_(parts.holes.piece("pair_start")),
      pair_first_(parts.holes.piece("pair_first")),
      pair_tap_(parts.holes.piece("pair_tap")) {}

void SliceArithmetic::begin_slice(const std::vector<int>& group) {
  group_ = &group;
  running_.assign(group.size(), {});
}

void SliceArithmetic::begin_body() { sums_.assign(kSumSlots, nullptr); }

void SliceArithmetic::end_body(HoleBody& body) {
  for (int slot = 0; slot < kSumSlots; ++slot) {
    if (sums_[slot] != nullptr) body.CreateStore(sums_[slot], parts_.sum_address(body, slot));
  }
}

Value*& SliceArithmetic::sum(HoleBody& body, int slot) {
  Value*& value = sums_[slot];
  if (value == nullptr) value = parts_.load_sum(body, slot);
  return value;
}

void SliceArithmetic::multiply_add(HoleBody& body, int j, LoadedActivation& activation, float weight) {
  switch (parts_.plan.precision) {
    case Precision::fp32:
    case Precision::tf32:  // which may round, and need not
      return add_single(body, parts_.sum_slot(j, 0), activation.word, activation.inside, weight, "");
    case Precision::fp16:
    case Precision::bf16:
      if (activation.low == nullptr) {
        const llvm::DebugLoc location = body.getCurrentDebugLocation();
        body.SetCurrentDebugLocation({});
        activation.low = body.splice(low_, {activation.word});
        activation.high = body.splice(high_, {activation.word});
        body.SetCurrentDebugLocation(location);
      }
      add_single(body, parts_.sum_slot(j, 0), activation.low, activation.inside, weight, "");
      return add_single(body, parts_.sum_slot(j, 1), activation.high, activation.inside, weight, "h");
    case Precision::fp16x2:
      return add_pair(body, j, activation.word, weight);
  }
}

void SliceArithmetic::add_single(HoleBody& body, int slot, Value* activation, Value* inside, float weight,
                                 const char* suffix) {
  Value*& total = sum(body, slot);
  Value* factor = llvm::ConstantFP::get(parts_.f32, weight);
  total = inside != nullptr ? body.splice(tap_if_, {inside, total, activation, factor})
                            : body.splice(tap_, {total, activation, factor});
  // LLVM counts on: k17.1, k17.2
  total->setName(fmt::format("k{}{}.", (*group_)[slot / parts_.plan.word_images()], suffix));
}

void SliceArithmetic::add_pair(HoleBody& body, int j, Value* activations, float weight) {
  RunningSum& state = running_[j];
  const bool full = parts_.plan.promote_every > 0 && state.terms == parts_.plan.promote_every;
  if (full) promote(body, j);
  Value*& pair = sum(body, parts_.running_slot(j));
  Value* factors = parts_.word(pair_of(weight));
  pair = full ? body.splice(pair_first_, {activations, factors}) : body.splice(pair_tap_, {pair, activations, factors});
  pair->setName(fmt::format("k{}.", (*group_)[j]));
  ++state.terms;
}

void SliceArithmetic::make_room(HoleBody& body, const std::vector<int>& terms) {
  const int most = parts_.plan.promote_every;
  if (parts_.plan.precision != Precision::fp16x2 || most == 0) return;
  begin_body();
  for (std::size_t j = 0; j < terms.size(); ++j) {
    if (terms[j] == 0 || running_[j].terms == 0 || running_[j].terms + terms[j] <= most) continue;
    promote(body, static_cast<int>(j));
    sum(body, parts_.running_slot(static_cast<int>(j))) = body.splice(pair_start_, {});
  }
  end_body(body);
}

void SliceArithmetic::may_have_been_skipped(const std::vector<RunningSum>& before) {
  for (std::size_t j = 0; j < running_.size(); ++j) running_[j].terms = std::max(running_[j].terms, before[j].terms);
}

// A thread that jumps over this goes on with the FP16 sums that it has; its FP32 sums are then still complete but for
// these.
void SliceArithmetic::promote(HoleBody& body, int j) {
  const llvm::DebugLoc location = body.getCurrentDebugLocation();
  body.SetCurrentDebugLocation({});
  RunningSum& state = running_[j];
  for (const int image : {0, 1}) {
    Value* part = body.splice(image == 0 ? low_ : high_, {sum(body, parts_.running_slot(j))});
    const int slot = parts_.sum_slot(j, image);
    // The first takes the place of the zero that was there.
    sums_[slot] = state.promoted ? body.splice(add_, {sum(body, slot), part}) : part;
  }
  state = {.terms = 0, .promoted = true};
  body.SetCurrentDebugLocation(location);
}

}  // namespace burin
