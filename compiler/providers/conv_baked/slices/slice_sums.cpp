#include "compiler/providers/conv_baked/slices/slice_sums.h"

#include <algorithm>

#include "ir/saturate.h"

namespace burin {

using llvm::Function;
using llvm::Value;

namespace {

Function* clear(SliceParts& parts, int sums) {
  HoleBody body(parts.holes, "clear");
  const auto start_at = [&](int slot, Value* zero) { body.CreateStore(zero, parts.sum_address(body, slot)); };
  const bool pairs = parts.plan.precision == Precision::fp16x2;
  Value* zero = body.splice("start", {});
  Value* zeros = pairs ? body.splice("pair_start", {}) : nullptr;
  for (int j = 0; j < sums; ++j) {
    for (int image = 0; image < parts.plan.word_images(); ++image) start_at(parts.sum_slot(j, image), zero);
    if (pairs) start_at(parts.running_slot(j), zeros);
  }
  return body.finish();
}

// visit(j, image) for each sum of these accumulators.
template <typename Visit>
void for_each_sum(const SliceParts& parts, AddedRange range, Visit visit) {
  for (int j = range.first; j < range.end; ++j) {
    for (int image = 0; image < parts.plan.word_images(); ++image) visit(j, image);
  }
}

// The FP32 sum that a thread has when its multiply-adds are done, where `body` asks for it.
Value* final_sum(SliceParts& parts, HoleBody& body, const RunningSum& running, int j, int image) {
  const auto fp32_sum = [&] { return parts.load_sum(body, parts.sum_slot(j, image)); };
  if (parts.plan.precision != Precision::fp16x2 || running.terms == 0) return fp32_sum();
  Value* part = body.splice(image == 0 ? "low" : "high", {parts.load_sum(body, parts.running_slot(j))});
  return running.promoted ? body.splice("add", {fp32_sum(), part}) : part;
}

// Where a sum of all threads is exchanged.
std::int64_t partial_bytes(const SliceParts& parts, int j, int image) {
  return std::int64_t{parts.sum_slot(j, image)} * parts.plan.threads * kWordBytes;
}

// Where the value of all threads is kept for a pool; of two images, the first one's.
std::int64_t value_bytes(const SliceParts& parts, int j) {
  return std::int64_t{j} * parts.plan.value_pitch() * parts.plan.threads * kWordBytes;
}

// What other blocks will read: all sums but the block's own, by the piece that is called as the hole is.
Function* pass_on(SliceParts& parts, llvm::StringRef hole, int sums, const AddedRange& own,
                  const std::vector<RunningSum>& running) {
  HoleBody body(parts.holes, hole);
  for_each_sum(parts, {0, sums}, [&](int j, int image) {
    if (own.has(j)) return;
    Value* sum = final_sum(parts, body, running[j], j, image);
    const std::int64_t bytes = partial_bytes(parts, j, image);
    const bool in_cluster = parts.plan.reduction == Reduction::cluster;
    body.splice(hole, {body.argument(1), in_cluster ? parts.word(bytes) : parts.wide(bytes), sum});
  });
  return body.finish();
}

Function* gather(SliceParts& parts, int sums) {
  HoleBody body(parts.holes, "gather");
  for_each_sum(parts, {0, sums}, [&](int j, int image) {
    const int slot = parts.sum_slot(j, image);
    Value* sum = body.splice(
        "gather", {body.argument(1), parts.wide(partial_bytes(parts, j, image)), parts.load_sum(body, slot)});
    body.CreateStore(sum, parts.sum_address(body, slot));
  });
  return body.finish();
}

// The sums of some of the own channels. All loads come first, since they take long.
void collect_some(SliceParts& parts, HoleBody& body, int split, const AddedRange& some,
                  const std::vector<RunningSum>& running) {
  Function* load = parts.holes.piece("collect");
  Function* add = parts.holes.piece("add");
  std::vector<Value*> partials;
  for_each_sum(parts, some, [&](int j, int image) {
    Value* place = parts.word(partial_bytes(parts, j, image));
    for (int other = 0; other < parts.plan.splits; ++other) {
      partials.push_back(other == split
                             ? final_sum(parts, body, running[j], j, image)
                             : body.splice(load, {body.argument(1), place, body.argument(2), parts.word(other)}));
    }
  });
  auto partial = partials.begin();
  for_each_sum(parts, some, [&](int j, int image) {
    Value* sum = *partial++;
    for (int other = 1; other < parts.plan.splits; ++other) sum = body.splice(add, {sum, *partial++});
    body.CreateStore(sum, parts.sum_address(body, parts.sum_slot(j, image)));
  });
}

// Takes as many channels at once as the registers of the sums hold: those that were left for other blocks are free.
Function* collect(SliceParts& parts, int split, const AddedRange& own, const std::vector<RunningSum>& running) {
  HoleBody body(parts.holes, "collect");
  const auto at_once = static_cast<int>(
      ceil_div(parts.plan.accumulator_registers(), std::int64_t{parts.plan.splits} * parts.plan.sums_per_channel()));
  for (int first = own.first; first < own.end; first += at_once) {
    collect_some(parts, body, split, {first, std::min(first + at_once, own.end)}, running);
  }
  return body.finish();
}

// Whether the accumulators j to j + 3 are the channels of one block.
bool side_by_side(const std::vector<int>& group, int j, int end) {
  if (j + 4 > end || group[j] % 4 != 0) return false;
  for (int i = 1; i < 4; ++i) {
    if (group[j + i] != group[j] + i) return false;
  }
  return true;
}

constexpr int kMarkBits = 32;  // accumulators whose marks stand in one word

// Which of a thread's outputs are live: a bit for each accumulator, in the words of the array `live`.
class LiveBits {
 public:
  explicit LiveBits(SliceParts& parts) : parts_(parts), words_(parts.plan.mark_words(), nullptr) {}

  // `bits`: of the accumulators from j on, as a piece gave them.
  void add(llvm::IRBuilder<>& builder, int j, int count, Value* bits) {
    if (!parts_.plan.marks) return;
    for (int i = 0; i < count; ++i) {
      Value* bit = count == 1 ? bits : builder.CreateAnd(builder.CreateLShr(bits, i), 1);
      Value*& word = words_[static_cast<std::size_t>((j + i) / kMarkBits)];
      bit = builder.CreateShl(bit, (j + i) % kMarkBits);
      word = word == nullptr ? bit : builder.CreateOr(word, bit);
    }
  }

  void store(llvm::IRBuilder<>& builder, Value* live) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == nullptr) continue;
      builder.CreateStore(words_[i], builder.CreateConstInBoundsGEP1_32(parts_.i32, live, static_cast<unsigned>(i)));
    }
  }

 private:
  SliceParts& parts_;
  std::vector<Value*> words_;  // null: none of its accumulators is the block's
};

// The map's bytes of the block's own channels. A warp holds the bits of 32 channels, each thread that of one.
Function* marks(SliceParts& parts, const std::vector<int>& group, const AddedRange& own) {
  HoleBody body(parts.holes, "marks");
  Value *cell = body.argument(0), *lane = body.argument(1), *bits = nullptr;
  for (int j = own.first; j < own.end; ++j) {
    if (bits == nullptr || j % kMarkBits == 0) {
      bits = body.splice("mark_word", {parts.word(j / kMarkBits)});
    }
    body.splice("mark", {cell, lane, bits, parts.word(j % kMarkBits), parts.wide(group[j])});
  }
  return body.finish();
}

// One store: accumulators whose channels lie side by side, and where they go; with a pool one of them, where its
// residual is.
struct Store {
  int first = 0, count = 1;
  Value* offset = nullptr;
};

std::vector<Store> stores_of(const SliceParts& parts, const std::vector<int>& group, const AddedRange& own) {
  const ConvShape& shape = parts.layer.shape;
  const std::int64_t plane = static_cast<std::int64_t>(shape.conv_h()) * shape.conv_w();
  const int together = channels_together(parts.plan.output_layout);
  std::vector<Store> stores;
  for (int j = own.first; j < own.end; j += stores.back().count) {
    const bool one_store = together == 4 && !parts.plan.outputs && side_by_side(group, j, own.end);
    const int count = one_store ? 4 : 1;
    const std::int64_t word = group[j] / together * plane * together + group[j] % together;
    stores.push_back({j, count, parts.wide(word * kWordBytes)});
  }
  return stores;
}

// The assembler moves no load across a store, which may be to the same place for all it knows. So residuals are loaded
// in batches, of as many words as registers are left beside the sums.
int residuals_at_once(const SliceParts& parts) {
  constexpr int kLeast = 4, kMost = 32;
  const int left = parts.plan.max_registers - parts.plan.accumulator_registers() - kMinRegisterOverhead;
  return std::clamp(left, kLeast, kMost);
}

// Outputs, or where the layer pools, values that are kept for it.
class OutputBuilder {
 public:
  OutputBuilder(SliceParts& parts, const std::vector<int>& group, const std::vector<RunningSum>& running)
      : parts_(parts),
        group_(group),
        running_(running),
        body_(parts.holes, parts.plan.outputs ? "keep" : "outputs"),
        live_(parts) {}

  Function* build(const std::vector<Store>& stores) {
    const int at_once = residuals_at_once(parts_);
    for (std::size_t begin = 0, end = 0; begin < stores.size(); begin = end) {
      std::vector<Value*> residuals;
      int loaded = 0;
      for (; end < stores.size() && (end == begin || loaded + stores[end].count <= at_once); ++end) {
        residuals.push_back(residual(stores[end]));
        loaded += stores[end].count;
      }
      for (std::size_t i = begin; i < end; ++i) {
        if (parts_.plan.outputs) {
          keep(stores[i].first, residuals[i - begin]);
          continue;
        }
        live_.add(body_, stores[i].first, stores[i].count, store(stores[i], residuals[i - begin]));
      }
    }
    live_.store(body_, body_.argument(2));
    return body_.finish();
  }

 private:
  bool pairs() const { return parts_.plan.word_images() == 2; }
  Value* pixel() const { return body_.argument(1); }
  Value* sum(int j, int image = 0) { return final_sum(parts_, body_, running_[j], j, image); }

  Value* residual(const Store& store) {
    if (parts_.layer.shape.epilogue.residual) {
      const char* piece = store.count == 4 ? "residual4" : pairs() ? "residual_pair" : "residual";
      return body_.splice(piece, {pixel(), store.offset});
    }
    llvm::Type* type = pairs() ? parts_.i32 : parts_.f32;
    return llvm::Constant::getNullValue(store.count == 4 ? llvm::FixedVectorType::get(type, 4) : type);
  }

  Value* bias(int j) const {
    return llvm::ConstantFP::get(parts_.f32, parts_.layer.bias.empty() ? 0.0F : parts_.layer.bias[group_[j]]);
  }

  void keep(int j, Value* residual) {
    Value *place = body_.argument(2), *offset = parts_.word(value_bytes(parts_, j));
    if (pairs()) {
      body_.splice("keep_pair", {sum(j), sum(j, 1), residual, place, offset, bias(j)});
    } else {
      body_.splice("keep", {sum(j), residual, place, offset, bias(j)});
    }
  }

  // The bits that say which are live.
  Value* store(const Store& store, Value* residual) {
    const int j = store.first;
    if (store.count == 4) {
      return body_.splice("output4", {sum(j), sum(j + 1), sum(j + 2), sum(j + 3), residual, pixel(), store.offset,
                                      bias(j), bias(j + 1), bias(j + 2), bias(j + 3)});
    }
    if (pairs()) {
      return body_.splice("output_pair", {sum(j), sum(j, 1), residual, pixel(), store.offset, bias(j)});
    }
    return body_.splice("output", {sum(j), residual, pixel(), store.offset, bias(j)});
  }

  SliceParts& parts_;
  const std::vector<int>& group_;
  const std::vector<RunningSum>& running_;
  HoleBody body_;
  LiveBits live_;
};

// The channels of the block's own accumulators.
Function* numbers(SliceParts& parts, const std::vector<int>& group, const AddedRange& own) {
  HoleBody body(parts.holes, "numbers");
  for (int j = own.first; j < own.end; ++j) {
    body.splice("number", {body.argument(0), parts.word((j - own.first) * kWordBytes), parts.word(group[j])});
  }
  return body.finish();
}

}  // namespace

AddedRange added_here(const SliceParts& parts, const SliceProgram& program) {
  const auto size = static_cast<int>(parts.group(program).size());
  if (parts.plan.reduction != Reduction::cluster) return {0, size};
  const int added = parts.plan.added_channels(program.group);
  return {std::min(program.split * added, size), std::min((program.split + 1) * added, size)};
}

void build_sums(SliceParts& parts, const SliceProgram& program, const std::vector<RunningSum>& running,
                HoleBodies& bodies) {
  const std::vector<int>& group = parts.group(program);
  const auto sums = static_cast<int>(group.size());
  const AddedRange own = added_here(parts, program);
  const std::vector<RunningSum> none(group.size());
  bodies.emplace_back("clear", clear(parts, sums));
  bodies.emplace_back(
      parts.plan.outputs ? "keep" : "outputs",
      OutputBuilder(parts, group, parts.plan.splits > 1 ? none : running).build(stores_of(parts, group, own)));
  if (parts.plan.outputs) bodies.emplace_back("numbers", numbers(parts, group, own));
  if (parts.plan.marks) bodies.emplace_back("marks", marks(parts, group, own));
  if (parts.plan.reduction == Reduction::cluster) {
    bodies.emplace_back("leave", pass_on(parts, "leave", sums, own, running));
    bodies.emplace_back("collect", collect(parts, program.split, own, running));
  } else if (parts.plan.splits > 1) {
    bodies.emplace_back("publish", pass_on(parts, "publish", sums, {}, running));
    bodies.emplace_back("gather", gather(parts, sums));
  }
}

}  // namespace burin
