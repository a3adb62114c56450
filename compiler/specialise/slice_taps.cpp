#include "compiler/specialise/slice_taps.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {

using llvm::Function;
using llvm::Value;

TapBuilder::TapBuilder(SliceParts& parts)
    : parts_(parts),
      arithmetic_(parts),
      activation_(parts.holes.piece("activation")),
      activation_if_(parts.holes.piece("activation_if")),
      activation4_(parts.holes.piece("activation4")),
      activation4_if_(parts.holes.piece("activation4_if")),
      direct_(parts.holes.piece("direct")),
      direct4_(parts.holes.piece("direct4")),
      activations_(parts.holes.piece("activations")),
      activations_if_(parts.holes.piece("activations_if")),
      direct_pair_(parts.holes.piece("direct_pair")),
      inside_(parts.holes.piece("inside")) {}

Function* TapBuilder::build(llvm::StringRef hole, const StageProgram& stage, const std::vector<int>& group) {
  Function* body = parts_.holes.open(hole);
  llvm::IRBuilder<> builder(&body->front());
  llvm::FunctionCallee barrier = parts_.action("burin_dev_barrier");
  arithmetic_.begin_body(body);
  const std::size_t ahead = static_cast<std::size_t>(std::max(1, parts_.plan.load_ahead));
  std::vector<LoadedActivation> loaded(stage.loads.size());
  int since_barrier = 0;
  for (std::size_t n = 0; n < stage.loads.size() + ahead; ++n) {
    if (n < stage.loads.size()) {
      const LoadedTap& load = stage.loads[n];
      locate(builder, load, 0, kNoOutput);
      if (load.outside != 0) {
        const bool same = n > 0 && stage.loads[n - 1].outside == load.outside;
        loaded[n].inside = same ? loaded[n - 1].inside
                                : parts_.holes.splice(builder, inside_, {body->getArg(2), parts_.word(load.outside)});
      }
      loaded[n].word = load_activation(builder, body->getArg(1), load.offset, loaded[n].inside);
      loaded[n].word->setName(fmt::format("c{}.r{}.s{}", load.c, load.r, load.s));
    }
    if (n < ahead) continue;
    for (const AccumulatorTap& use : stage.loads[n - ahead].uses) {
      locate(builder, stage.loads[n - ahead], use.lane, group[use.accumulator]);
      LoadedActivation& activation = loaded[n - ahead];
      if (activation.word->getType()->isVectorTy()) {
        LoadedActivation one = activation;
        one.word = builder.CreateExtractElement(activation.word, static_cast<std::uint64_t>(use.lane));
        arithmetic_.multiply_add(builder, use.accumulator, one, use.weight);
      } else {
        arithmetic_.multiply_add(builder, use.accumulator, activation, use.weight);
      }
      if (++since_barrier == parts_.plan.barrier_every) {
        builder.SetCurrentDebugLocation({});
        builder.CreateCall(barrier);
        since_barrier = 0;
      }
    }
  }
  builder.SetCurrentDebugLocation({});
  arithmetic_.end_body(builder);
  builder.CreateRetVoid();
  return body;
}

Value* TapBuilder::load_activation(llvm::IRBuilder<>& builder, Value* base, std::int64_t offset, Value* inside) {
  const auto choose = [&](Function* one, Function* pair, Function* four) {
    if (is_half(parts_.plan.precision)) return pair;
    return channels_together(parts_.plan.input_layout) == 4 ? four : one;
  };
  if (parts_.plan.staging == Staging::direct) {
    return parts_.holes.splice(builder, choose(direct_, direct_pair_, direct4_), {base, parts_.wide(offset)});
  }
  if (inside != nullptr) {
    return parts_.holes.splice(builder, choose(activation_if_, activations_if_, activation4_if_),
                               {inside, base, parts_.word(offset)});
  }
  return parts_.holes.splice(builder, choose(activation_, activations_, activation4_), {base, parts_.word(offset)});
}

void TapBuilder::locate(llvm::IRBuilder<>& builder, const LoadedTap& load, int lane, int k) {
  builder.SetCurrentDebugLocation(parts_.source_map.location(parts_.scope, load.c + lane, load.r, load.s, k));
}

}  // namespace burin
