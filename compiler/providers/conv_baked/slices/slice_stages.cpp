#include "compiler/providers/conv_baked/slices/slice_stages.h"

namespace burin {

using llvm::Function;

namespace {

Function* copies(SliceParts& parts, const StageProgram& stage) {
  HoleBody body(parts.holes, "copies");
  Function* one = parts.holes.piece("copy_channel");
  Function* many = parts.inlined("copy_channels");
  for (const ChannelCopies& run : stage.copies) {
    if (run.count < kLoopedCopies) {
      for (int i = 0; i < run.count; ++i) {
        body.splice(
            one, {body.argument(0), body.argument(1), body.argument(2),
                  parts.wide(run.source_bytes + i * run.source_step), parts.word(run.slot_bytes + i * run.slot_step)});
      }
      continue;
    }
    body.CreateCall(many, {body.argument(0), body.argument(1), body.argument(2), parts.wide(run.source_bytes),
                           parts.word(run.slot_bytes), parts.wide(run.source_step), parts.word(run.slot_step),
                           parts.word(run.count)});
  }
  return body.finish();
}

// Stages whose copies begin before the first is computed; each later one begins when a buffer is free for it.
std::size_t stages_ahead(const SliceParts& parts) { return static_cast<std::size_t>(parts.plan.stages_ahead()); }

Function* prologue(SliceParts& parts, const std::vector<Function*>& fills) {
  HoleBody body(parts.holes, "prologue");
  for (std::size_t i = 0; i < stages_ahead(parts); ++i) {
    if (i < fills.size()) body.CreateCall(fills[i], {body.argument(0)});
    body.CreateCall(parts.action("burin_dev_copy_commit"));
  }
  return body.finish();
}

}  // namespace

void build_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies) {
  std::vector<Function*> fills;
  for (const StageProgram& stage : program.stages) {
    fills.push_back(parts.holes.instantiate("fill", {{"copies", copies(parts, stage)}}));
  }
  bodies.emplace_back("prologue", prologue(parts, fills));

  HoleBody body(parts.holes, "stages");
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    HoleBody fill_ahead(parts.holes, "fill_ahead");
    const std::size_t next = i + stages_ahead(parts);
    if (next < fills.size()) fill_ahead.CreateCall(fills[next], {fill_ahead.argument(0)});
    Function* stage = parts.holes.instantiate(
        "stage", {{"fill_ahead", fill_ahead.finish()}, {"taps", taps.build("taps", program.stages[i])}});
    parts.call(body, "burin_dev_note_stage", {static_cast<int>(i)});
    body.CreateCall(stage, {body.argument(0), body.argument(1)});
  }
  bodies.emplace_back("stages", body.finish());
}

void build_bulk_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies) {
  HoleBody body(parts.holes, "stages");
  const auto gate = [&](std::size_t stage) { return static_cast<std::int64_t>(stage) % parts.plan.buffers; };
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    const std::size_t next = i + stages_ahead(parts);
    const bool fills = next < program.stages.size();
    HoleBodies stage_bodies = {{"taps", taps.build("taps", program.stages[i])}};
    if (fills) {
      HoleBody fill_ahead(parts.holes, "fill_ahead");
      const ChannelCopies& run = program.stages[next].copies.front();
      fill_ahead.CreateCall(parts.inlined("bulk_fill"),
                            {fill_ahead.argument(0), parts.wide(run.source_bytes), parts.word(run.count),
                             parts.word(run.slot_bytes), parts.word(gate(next))});
      stage_bodies.emplace_back("fill_ahead", fill_ahead.finish());
    }
    Function* stage = parts.holes.instantiate(fills ? "bulk_stage" : "bulk_free_stage", stage_bodies);
    parts.call(body, "burin_dev_note_stage", {static_cast<int>(i)});
    llvm::Value* phase = parts.word(static_cast<std::int64_t>(i) / parts.plan.buffers % 2);
    body.CreateCall(stage, {body.argument(0), body.argument(1), parts.word(gate(i)), phase});
    const bool last = i + 1 == program.stages.size();
    if (last && is_half(parts.plan.precision) && parts.plan.reduction == Reduction::cluster) {
      body.splice("bulk_end", {parts.word(gate(i)), phase});
    }
  }
  bodies.emplace_back("stages", body.finish());
}

}  // namespace burin
