#include "compiler/providers/conv_baked/slices/slice_taps.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {

using llvm::Function;
using llvm::Value;

TapBuilder::TapBuilder(SliceParts& parts) : parts_(parts), arithmetic_(parts), inside_(parts.holes.piece("inside")) {
  const bool pairs = is_half(parts.plan.precision), fours = channels_together(parts.plan.input_layout) == 4;
  if (parts.plan.staging == Staging::direct) {
    load_ = load_if_ = parts.holes.piece(pairs ? "direct_pair" : fours ? "direct4" : "direct");
  } else {
    load_ = parts.holes.piece(pairs ? "activations" : fours ? "activation4" : "activation");
    load_if_ = parts.holes.piece(pairs ? "activations_if" : fours ? "activation4_if" : "activation_if");
  }
}

void TapBuilder::begin_slice(const SliceProgram& program) {
  group_ = &parts_.group(program);
  first_live_word_ = parts_.plan.first_live_word(parts_.slice(program));
  arithmetic_.begin_slice(*group_);
}

Function* TapBuilder::build(llvm::StringRef hole, const StageProgram& stage) {
  HoleBody body(parts_.holes, hole);
  Walk walk{body, stage, std::vector<LoadedActivation>(stage.loads.size())};
  if (!parts_.plan.skips) {
    arithmetic_.begin_body();
    multiply_run(walk, 0, stage.loads.size());
    arithmetic_.end_body(body);
  } else if (parts_.plan.staging == Staging::direct) {
    multiply_live_directly(walk);
  } else {
    multiply_live(walk);
  }
  return body.finish();
}

void TapBuilder::multiply_run(Walk& walk, std::size_t begin, std::size_t loads) {
  // A region of one channel has too few loads for branches of its own.
  if (parts_.plan.precision != Precision::fp16x2 || masks_pairs()) {
    load_first(walk, begin, loads);
    multiply(walk, begin, loads);
  } else {
    const std::vector<LoadedTap>& all = walk.stage.loads;
    for (std::size_t first = begin, end = begin; first < loads; first = end) {
      while (end < loads && all[end].outside == all[first].outside) ++end;
      load_first(walk, first, end);
      if (all[first].outside == 0) {
        multiply(walk, first, end);
      } else {
        multiply_inside(walk, first, end);
      }
    }
  }
  walk.body.SetCurrentDebugLocation({});
}

std::size_t TapBuilder::ahead() const { return static_cast<std::size_t>(std::max(1, parts_.plan.load_ahead)); }

std::size_t TapBuilder::batch() const { return static_cast<std::size_t>(std::max(1, parts_.plan.load_together)); }

void TapBuilder::load_first(Walk& walk, std::size_t first, std::size_t end) {
  for (std::size_t n = first; n < std::min(first + ahead(), end); ++n) load(walk, n);
}

bool TapBuilder::masks_pairs() const { return parts_.plan.precision == Precision::fp16x2 && parts_.plan.skips; }

Value* TapBuilder::inside(Walk& walk, std::uint32_t outside) {
  Value*& value = walk.inside[outside];
  if (value == nullptr) {
    value = walk.body.splice(inside_, {walk.body.argument(2), parts_.word(outside)});
    if (masks_pairs()) value = walk.body.CreateNeg(value);
  }
  return value;
}

void TapBuilder::load(Walk& walk, std::size_t n) {
  const LoadedTap& load = walk.stage.loads[n];
  locate(walk.body, load, 0, kNoOutput);
  LoadedActivation& loaded = walk.loaded[n];
  if (load.outside != 0 && !walk.all_inside) loaded.inside = inside(walk, load.outside);
  loaded.word = load_activation(walk.body, walk.body.argument(1), load.offset, loaded.inside);
  loaded.word->setName(fmt::format("c{}.r{}.s{}", load.c, load.r, load.s));
  if (loaded.inside == nullptr || !masks_pairs()) return;
  // Multiplied as zeros: pairs have no multiply-add that is left out.
  loaded.word = walk.body.CreateAnd(loaded.word, loaded.inside);
  loaded.inside = nullptr;
}

void TapBuilder::load_batch(Walk& walk, std::size_t first, std::size_t end) {
  if (first >= end) return;
  if (batch() > 1) {
    walk.body.SetCurrentDebugLocation({});
    parts_.call(walk.body, "burin_dev_keep_order", {++walk.batches});
  }
  for (std::size_t n = first; n < std::min(first + batch(), end); ++n) load(walk, n);
}

void TapBuilder::multiply(Walk& walk, std::size_t first, std::size_t end) {
  for (std::size_t n = first; n < end; ++n) {
    if ((n - first) % batch() == 0) load_batch(walk, n + ahead(), end);
    add_uses(walk, n);
  }
}

void TapBuilder::add_uses(Walk& walk, std::size_t n) {
  for (const AccumulatorTap& use : walk.stage.loads[n].uses) {
    locate(walk.body, walk.stage.loads[n], use.lane, (*group_)[use.accumulator]);
    LoadedActivation& activation = walk.loaded[n];
    if (activation.word->getType()->isVectorTy()) {
      LoadedActivation one = activation;
      one.word = walk.body.CreateExtractElement(activation.word, static_cast<std::uint64_t>(use.lane));
      arithmetic_.multiply_add(walk.body, use.accumulator, one, use.weight);
    } else {
      arithmetic_.multiply_add(walk.body, use.accumulator, activation, use.weight);
    }
    ++walk.since_barrier;
    if (!walk.all_inside) keep_together(walk);
  }
}

void TapBuilder::multiply_inside(Walk& walk, std::size_t first, std::size_t end) {
  HoleBody& body = walk.body;
  body.SetCurrentDebugLocation({});
  Value* inside = body.CreateICmpNE(walk.loaded[first].inside, parts_.word(0));
  for (std::size_t n = first; n < end; ++n) walk.loaded[n].inside = nullptr;
  // Through the thread's array of sums, of which nothing is left in the end.
  arithmetic_.end_body(body);
  llvm::BasicBlock* then = llvm::BasicBlock::Create(parts_.holes.context(), "inside", body.function());
  llvm::BasicBlock* after = llvm::BasicBlock::Create(parts_.holes.context(), "all", body.function());
  body.CreateCondBr(inside, then, after);
  body.SetInsertPoint(then);
  arithmetic_.begin_body();
  walk.all_inside = true;
  multiply(walk, first, end);
  walk.all_inside = false;
  body.SetCurrentDebugLocation({});
  arithmetic_.end_body(body);
  body.CreateBr(after);
  body.SetInsertPoint(after);
  arithmetic_.begin_body();
  keep_together(walk);
}

void TapBuilder::keep_together(Walk& walk) {
  if (parts_.plan.barrier_every == 0 || walk.since_barrier < parts_.plan.barrier_every) return;
  walk.body.SetCurrentDebugLocation({});
  parts_.call(walk.body, "burin_dev_barrier", {});
  walk.since_barrier = 0;
}

Value* TapBuilder::load_activation(HoleBody& body, Value* base, std::int64_t offset, Value* inside) {
  if (parts_.plan.staging == Staging::direct) return body.splice(load_, {base, parts_.wide(offset)});
  if (inside != nullptr) return body.splice(load_if_, {inside, base, parts_.word(offset)});
  return body.splice(load_, {base, parts_.word(offset)});
}

void TapBuilder::locate(HoleBody& body, const LoadedTap& load, int lane, int k) {
  body.SetCurrentDebugLocation(parts_.source_map.location(parts_.scope, load.c + lane, load.r, load.s, k));
}

namespace {

Function* copies(SliceParts& parts, const StageProgram& stage) {
  HoleBody body(parts.holes, "copies");
  Function* one = parts.holes.piece("copy_channel");
  for (const ChannelCopies& run : stage.copies) {
    if (run.count < kLoopedCopies) {
      for (int i = 0; i < run.count; ++i) {
        body.splice(
            one, {body.argument(0), body.argument(1), body.argument(2),
                  parts.wide(run.source_bytes + i * run.source_step), parts.word(run.slot_bytes + i * run.slot_step)});
      }
      continue;
    }
    body.splice("copy_channels", {body.argument(0), body.argument(1), body.argument(2), parts.wide(run.source_bytes),
                                  parts.word(run.slot_bytes), parts.wide(run.source_step), parts.word(run.slot_step),
                                  parts.word(run.count)});
  }
  return body.finish();
}

void build_patch_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies) {
  std::vector<Function*> fills;
  for (const StageProgram& stage : program.stages) {
    fills.push_back(parts.holes.instantiate("fill", {{"copies", copies(parts, stage)}}));
  }
  // Each later stage's copies begin when a buffer is free for it.
  const auto ahead = static_cast<std::size_t>(parts.plan.stages_ahead());
  HoleBody prologue(parts.holes, "prologue");
  for (std::size_t i = 0; i < ahead; ++i) {
    if (i < fills.size()) prologue.CreateCall(fills[i], {prologue.argument(0)});
    parts.call(prologue, "burin_dev_copy_commit", {});
  }
  bodies.emplace_back("prologue", prologue.finish());

  HoleBody body(parts.holes, "stages");
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    HoleBody fill_ahead(parts.holes, "fill_ahead");
    const std::size_t next = i + ahead;
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
    const std::size_t next = i + static_cast<std::size_t>(parts.plan.stages_ahead());
    const bool fills = next < program.stages.size();
    HoleBodies stage_bodies = {{"taps", taps.build("taps", program.stages[i])}};
    if (fills) {
      HoleBody fill_ahead(parts.holes, "fill_ahead");
      const ChannelCopies& run = program.stages[next].copies.front();
      fill_ahead.splice("bulk_fill", {fill_ahead.argument(0), parts.wide(run.source_bytes), parts.word(run.count),
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

}  // namespace

void build_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies) {
  switch (parts.plan.staging) {
    case Staging::shared:
      return build_patch_stages(parts, taps, program, bodies);
    case Staging::bulk:
      return build_bulk_stages(parts, taps, program, bodies);
    case Staging::direct:
      const StageProgram nothing;
      bodies.emplace_back("direct", taps.build("direct", program.stages.empty() ? nothing : program.stages.front()));
  }
}

}  // namespace burin
