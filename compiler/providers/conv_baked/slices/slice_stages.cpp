#include "compiler/providers/conv_baked/slices/slice_stages.h"

namespace burin {

using llvm::Function;

namespace {

Function* copies(SliceParts& parts, const StageProgram& stage) {
  Function* body = parts.holes.open("copies");
  llvm::IRBuilder<> builder(&body->front());
  Function* one = parts.holes.piece("copy_channel");
  Function* many = parts.inlined("copy_channels");
  for (const ChannelCopies& run : stage.copies) {
    if (run.count < kLoopedCopies) {
      for (int i = 0; i < run.count; ++i) {
        parts.holes.splice(
            builder, one,
            {body->getArg(0), body->getArg(1), body->getArg(2), parts.wide(run.source_bytes + i * run.source_step),
             parts.word(run.slot_bytes + i * run.slot_step)});
      }
      continue;
    }
    builder.CreateCall(many, {body->getArg(0), body->getArg(1), body->getArg(2), parts.wide(run.source_bytes),
                              parts.word(run.slot_bytes), parts.wide(run.source_step), parts.word(run.slot_step),
                              parts.word(run.count)});
  }
  builder.CreateRetVoid();
  return body;
}

// Stages whose copies begin before the first is computed; each later one begins when a buffer is free for it.
std::size_t stages_ahead(const SliceParts& parts) { return static_cast<std::size_t>(parts.plan.stages_ahead()); }

Function* prologue(SliceParts& parts, const std::vector<Function*>& fills) {
  Function* body = parts.holes.open("prologue");
  llvm::IRBuilder<> builder(&body->front());
  for (std::size_t i = 0; i < stages_ahead(parts); ++i) {
    if (i < fills.size()) builder.CreateCall(fills[i], {body->getArg(0)});
    builder.CreateCall(parts.action("burin_dev_copy_commit"));
  }
  builder.CreateRetVoid();
  return body;
}

}  // namespace

void build_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies) {
  std::vector<Function*> fills;
  for (const StageProgram& stage : program.stages) {
    fills.push_back(parts.holes.instantiate("fill", {{"copies", copies(parts, stage)}}));
  }
  bodies.emplace_back("prologue", prologue(parts, fills));

  Function* body = parts.holes.open("stages");
  llvm::IRBuilder<> builder(&body->front());
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    Function* fill_ahead = parts.holes.open("fill_ahead");
    llvm::IRBuilder<> fill_builder(&fill_ahead->front());
    const std::size_t next = i + stages_ahead(parts);
    if (next < fills.size()) fill_builder.CreateCall(fills[next], {fill_ahead->getArg(0)});
    fill_builder.CreateRetVoid();
    Function* stage =
        parts.holes.instantiate("stage", {{"fill_ahead", fill_ahead}, {"taps", taps.build("taps", program.stages[i])}});
    parts.call(builder, "burin_dev_note_stage", {static_cast<int>(i)});
    builder.CreateCall(stage, {body->getArg(0), body->getArg(1)});
  }
  builder.CreateRetVoid();
  bodies.emplace_back("stages", body);
}

void build_bulk_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies) {
  Function* body = parts.holes.open("stages");
  llvm::IRBuilder<> builder(&body->front());
  const auto gate = [&](std::size_t stage) { return static_cast<std::int64_t>(stage) % parts.plan.buffers; };
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    const std::size_t next = i + stages_ahead(parts);
    const bool fills = next < program.stages.size();
    HoleBodies stage_bodies = {{"taps", taps.build("taps", program.stages[i])}};
    if (fills) {
      Function* fill_ahead = parts.holes.open("fill_ahead");
      llvm::IRBuilder<> fill_builder(&fill_ahead->front());
      const ChannelCopies& run = program.stages[next].copies.front();
      fill_builder.CreateCall(parts.inlined("bulk_fill"),
                              {fill_ahead->getArg(0), parts.wide(run.source_bytes), parts.word(run.count),
                               parts.word(run.slot_bytes), parts.word(gate(next))});
      fill_builder.CreateRetVoid();
      stage_bodies.emplace_back("fill_ahead", fill_ahead);
    }
    Function* stage = parts.holes.instantiate(fills ? "bulk_stage" : "bulk_free_stage", stage_bodies);
    parts.call(builder, "burin_dev_note_stage", {static_cast<int>(i)});
    llvm::Value* phase = parts.word(static_cast<std::int64_t>(i) / parts.plan.buffers % 2);
    builder.CreateCall(stage, {body->getArg(0), body->getArg(1), parts.word(gate(i)), phase});
    const bool last = i + 1 == program.stages.size();
    if (last && is_half(parts.plan.precision) && parts.plan.reduction == Reduction::cluster) {
      parts.holes.splice(builder, parts.holes.piece("bulk_end"), {parts.word(gate(i)), phase});
    }
  }
  builder.CreateRetVoid();
  bodies.emplace_back("stages", body);
}

}  // namespace burin
