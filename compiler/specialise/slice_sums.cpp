#include "compiler/specialise/slice_sums.h"

#include <algorithm>

namespace burin {

using llvm::Function;
using llvm::Value;

namespace {

// The accumulators of a group whose final sums a slice computes.
struct Share {
  int first = 0, end = 0;
  bool has(int j) const { return first <= j && j < end; }
};

Share added_here(const SliceParts& parts, const SliceProgram& program) {
  const auto size = static_cast<int>(parts.group(program).size());
  if (parts.plan.reduction != Reduction::cluster) return {0, size};
  const int share = parts.plan.share_channels(program.group);
  return {std::min(program.split * share, size), std::min((program.split + 1) * share, size)};
}

Function* clear(SliceParts& parts, int sums) {
  Function* body = parts.holes.open("clear");
  llvm::IRBuilder<> builder(&body->front());
  Value* zero = parts.holes.splice(builder, parts.holes.piece("start"), {});
  for (int j = 0; j < sums; ++j) builder.CreateStore(zero, parts.sum_address(builder, body, j));
  builder.CreateRetVoid();
  return body;
}

// Where accumulator j of all threads is exchanged, in words.
std::int64_t partial_words(const SliceParts& parts, int j) { return std::int64_t{j} * parts.plan.threads; }
Value* partial_offset(const SliceParts& parts, int j) { return parts.word(partial_words(parts, j) * kWordBytes); }

Function* publish(SliceParts& parts, int sums) {
  Function* body = parts.holes.open("publish");
  llvm::IRBuilder<> builder(&body->front());
  for (int j = 0; j < sums; ++j) {
    Value* sum = parts.load_sum(builder, body, j);
    parts.holes.splice(builder, parts.holes.piece("publish"),
                       {body->getArg(1), parts.word_offset(partial_words(parts, j)), sum});
  }
  builder.CreateRetVoid();
  return body;
}

Function* gather(SliceParts& parts, int sums) {
  Function* body = parts.holes.open("gather");
  llvm::IRBuilder<> builder(&body->front());
  for (int j = 0; j < sums; ++j) {
    Value* sum = parts.holes.splice(
        builder, parts.holes.piece("gather"),
        {body->getArg(1), parts.word_offset(partial_words(parts, j)), parts.load_sum(builder, body, j)});
    builder.CreateStore(sum, parts.sum_address(builder, body, j));
  }
  builder.CreateRetVoid();
  return body;
}

// What other blocks of the cluster will read.
Function* share(SliceParts& parts, int sums, const Share& own) {
  Function* body = parts.holes.open("share");
  llvm::IRBuilder<> builder(&body->front());
  for (int j = 0; j < sums; ++j) {
    if (own.has(j)) continue;
    Value* sum = parts.load_sum(builder, body, j);
    parts.holes.splice(builder, parts.holes.piece("share"), {body->getArg(1), partial_offset(parts, j), sum});
  }
  builder.CreateRetVoid();
  return body;
}

// All loads come first: they take long, and the registers of the sums that were shared are free.
Function* collect(SliceParts& parts, int split, const Share& own) {
  Function* body = parts.holes.open("collect");
  llvm::IRBuilder<> builder(&body->front());
  Function* load = parts.holes.piece("collect");
  Function* add = parts.holes.piece("add");
  std::vector<Value*> partials;
  for (int j = own.first; j < own.end; ++j) {
    for (int other = 0; other < parts.plan.splits; ++other) {
      partials.push_back(other == split ? parts.load_sum(builder, body, j)
                                        : parts.holes.splice(builder, load,
                                                             {body->getArg(1), partial_offset(parts, j),
                                                              body->getArg(2), parts.word(other)}));
    }
  }
  auto partial = partials.begin();
  for (int j = own.first; j < own.end; ++j) {
    Value* sum = *partial++;
    for (int other = 1; other < parts.plan.splits; ++other) sum = parts.holes.splice(builder, add, {sum, *partial++});
    builder.CreateStore(sum, parts.sum_address(builder, body, j));
  }
  builder.CreateRetVoid();
  return body;
}

// Whether the accumulators j to j + 3 are the channels of one block.
bool side_by_side(const std::vector<int>& group, int j, int end) {
  if (j + 4 > end || group[j] % 4 != 0) return false;
  for (int i = 1; i < 4; ++i) {
    if (group[j + i] != group[j] + i) return false;
  }
  return true;
}

Function* outputs(SliceParts& parts, const std::vector<int>& group, const Share& own) {
  Function* body = parts.holes.open("outputs");
  llvm::IRBuilder<> builder(&body->front());
  const ConvShape& shape = parts.layer.shape;
  const std::int64_t plane = static_cast<std::int64_t>(shape.out_h()) * shape.out_w();
  const int together = channels_together(parts.plan.output_layout);
  const auto sum = [&](int j) { return parts.load_sum(builder, body, j); };
  const auto bias = [&](int j) -> Value* {
    return llvm::ConstantFP::get(parts.f32, parts.layer.bias.empty() ? 0.0F : parts.layer.bias[group[j]]);
  };
  for (int j = own.first; j < own.end; ++j) {
    Value* offset = parts.word_offset(group[j] / together * plane * together + group[j] % together);
    if (together == 4 && side_by_side(group, j, own.end)) {
      parts.holes.splice(builder, parts.holes.piece("output4"),
                         {sum(j), sum(j + 1), sum(j + 2), sum(j + 3), body->getArg(1), offset, bias(j), bias(j + 1),
                          bias(j + 2), bias(j + 3)});
      j += 3;
      continue;
    }
    parts.holes.splice(builder, parts.holes.piece("output"), {sum(j), body->getArg(1), offset, bias(j)});
  }
  builder.CreateRetVoid();
  return body;
}

}  // namespace

void build_sums(SliceParts& parts, const SliceProgram& program, HoleBodies& bodies) {
  const std::vector<int>& group = parts.group(program);
  const auto sums = static_cast<int>(group.size());
  const Share own = added_here(parts, program);
  bodies.emplace_back("clear", clear(parts, sums));
  bodies.emplace_back("outputs", outputs(parts, group, own));
  if (parts.plan.reduction == Reduction::cluster) {
    bodies.emplace_back("share", share(parts, sums, own));
    bodies.emplace_back("collect", collect(parts, program.split, own));
  } else if (parts.plan.splits > 1) {
    bodies.emplace_back("publish", publish(parts, sums));
    bodies.emplace_back("gather", gather(parts, sums));
  }
}

}  // namespace burin
