// Multiply-adds behind branches on the channels' bits.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/providers/conv_baked/slices/slice_taps.h"

namespace burin {

using llvm::Function;
using llvm::Value;

namespace {

constexpr int kMaskBits = 32;  // channels of a word

// The bits of the channels that a stage reads. A word is loaded where it is first asked for, which must be on the way
// that all threads take.
class LiveChannels {
 public:
  LiveChannels(SliceParts& parts, int first_word) : parts_(parts), first_word_(first_word) {}

  // Whether any channel of the loads' is live. All bits of a block of four, with filling channels none of which is.
  Value* any(HoleBody& body, std::span<const LoadedTap> loads) {
    std::map<int, std::uint32_t> bits;
    const int together = channels_together(parts_.plan.input_layout);
    for (const LoadedTap& load : loads) {
      const int end = std::min(load.c + together, parts_.layer.shape.in_channels);
      for (int c = load.c; c < end; ++c) bits[c / kMaskBits - first_word_] |= std::uint32_t{1} << (c % kMaskBits);
    }
    Value* found = nullptr;
    for (const auto& [word, mask] : bits) {
      Value* part = body.CreateAnd(load_word(body, word), parts_.word(mask));
      found = found == nullptr ? part : body.CreateOr(found, part);
    }
    return body.CreateICmpNE(found, parts_.word(0));
  }

 private:
  Value* load_word(HoleBody& body, int word) {
    Value*& value = words_[word];
    if (value == nullptr) {
      value = body.splice("live_word", {parts_.word(word)});
      value->setName(fmt::format("live{}", word + first_word_));
    }
    return value;
  }

  SliceParts& parts_;
  int first_word_;
  std::map<int, Value*> words_;
};

std::vector<std::span<const LoadedTap>> by_channel(std::span<const LoadedTap> loads) {
  std::vector<std::span<const LoadedTap>> regions;
  for (std::size_t first = 0; first < loads.size();) {
    std::size_t end = first;
    while (end < loads.size() && loads[end].c == loads[first].c) ++end;
    regions.push_back(loads.subspan(first, end - first));
    first = end;
  }
  return regions;
}

// Counts the terms that the loads add to each accumulator of the slice.
std::vector<int> terms_of(std::span<const LoadedTap> loads, std::size_t accumulators) {
  std::vector<int> terms(accumulators, 0);
  for (const LoadedTap& load : loads) {
    for (const AccumulatorTap& use : load.uses) ++terms[static_cast<std::size_t>(use.accumulator)];
  }
  return terms;
}

}  // namespace

template <typename Add>
void TapBuilder::if_live(Walk& walk, Value* live, const std::string& name, Add add) {
  HoleBody& body = walk.body;
  llvm::BasicBlock* region = llvm::BasicBlock::Create(parts_.holes.context(), name, body.function());
  llvm::BasicBlock* next = llvm::BasicBlock::Create(parts_.holes.context(), "after_" + name, body.function());
  const std::vector<RunningSum> before = arithmetic_.running();
  body.CreateCondBr(live, region, next);
  body.SetInsertPoint(region);
  add();
  body.CreateBr(next);
  next->moveAfter(body.GetInsertBlock());
  body.SetInsertPoint(next);
  arithmetic_.may_have_been_skipped(before);
}

void TapBuilder::multiply_live(Walk& walk) {
  HoleBody& body = walk.body;
  const std::span<const LoadedTap> loads = walk.stage.loads;
  LiveChannels live(parts_, first_live_word_);
  for (const LoadedTap& load : loads) {
    if (load.outside != 0) inside(walk, load.outside);
  }
  const std::vector<std::span<const LoadedTap>> regions = by_channel(loads);
  const auto add_regions = [&] {
    std::size_t first = 0;
    for (const std::span<const LoadedTap>& region : regions) {
      arithmetic_.make_room(body, terms_of(region, group_->size()));
      if_live(walk, live.any(body, region), fmt::format("channel{}", region.front().c), [&] {
        arithmetic_.begin_body();
        multiply_run(walk, first, first + region.size());
        arithmetic_.end_body(body);
      });
      first += region.size();
    }
  };
  if (regions.size() < 2) return add_regions();
  arithmetic_.make_room(body, terms_of(loads, group_->size()));
  if_live(walk, live.any(body, loads), "stage", add_regions);
}

void TapBuilder::multiply_live_directly(Walk& walk) {
  HoleBody& body = walk.body;
  const std::span<const LoadedTap> loads = walk.stage.loads;
  LiveChannels live(parts_, first_live_word_);
  load_first(walk, 0, loads.size());
  for (std::size_t n = 0; n < loads.size(); ++n) {
    if (n + ahead() < loads.size()) load(walk, n + ahead());
    body.SetCurrentDebugLocation({});
    const std::span<const LoadedTap> one = loads.subspan(n, 1);
    arithmetic_.make_room(body, terms_of(one, group_->size()));
    if_live(walk, live.any(body, one), fmt::format("channel{}", one.front().c), [&] {
      arithmetic_.begin_body();
      add_uses(walk, n);
      body.SetCurrentDebugLocation({});
      arithmetic_.end_body(body);
    });
  }
}

}  // namespace burin
