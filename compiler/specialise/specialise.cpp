#include "compiler/specialise/specialise.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "compiler/kernel_cluster.h"
#include "compiler/specialise/passes.h"
#include "compiler/specialise/slice_program.h"
#include "compiler/specialise/source_map.h"
#include "compiler/specialise/template_holes.h"
#include "compiler/specialise/template_module.h"
#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {
namespace {

using llvm::Function;
using llvm::Value;

constexpr int kWordBytes = 4;
constexpr int kLoopedCopies = 4;  // fewer copies are shorter than their loop

class SliceBuilder {
 public:
  SliceBuilder(TemplateHoles& holes, const ConvLayer& layer, const KernelPlan& plan)
      : holes_(holes),
        layer_(layer),
        plan_(plan),
        activation_(holes.piece("activation")),
        direct_(holes.piece("direct")),
        tap_(holes.piece("tap")),
        start_(holes.piece("start")),
        inside_(holes.piece("inside")),
        activation_if_(holes.piece("activation_if")),
        activation4_(holes.piece("activation4")),
        activation4_if_(holes.piece("activation4_if")),
        direct4_(holes.piece("direct4")),
        output4_(holes.piece("output4")),
        tap_if_(holes.piece("tap_if")),
        copy_channel_(holes.piece("copy_channel")),
        copy_channels_(inlined("copy_channels")),
        publish_(holes.piece("publish")),
        gather_(holes.piece("gather")),
        share_(holes.piece("share")),
        collect_(holes.piece("collect")),
        add_(holes.piece("add")),
        output_(holes.piece("output")),
        source_map_(holes.module(), layer.shape),
        float_(llvm::Type::getFloatTy(holes.context())),
        i32_(llvm::Type::getInt32Ty(holes.context())),
        i64_(llvm::Type::getInt64Ty(holes.context())) {}

  Function* build(const SliceProgram& program) {
    scope_ = source_map_.add_slice(program.group, program.split);
    const std::vector<int>& group = plan_.groups[program.group];
    HoleBodies bodies = {{"clear", clear(group)}, {"outputs", outputs(group, added_here(program))}};
    if (plan_.staging == Staging::bulk) {
      bodies.emplace_back("stages", bulk_stages(program));
    } else if (plan_.staging == Staging::shared) {
      std::vector<Function*> fills;
      for (const StageProgram& stage : program.stages) {
        fills.push_back(holes_.instantiate("fill", {{"copies", copies(stage)}}));
      }
      bodies.emplace_back("prologue", prologue(fills));
      bodies.emplace_back("stages", stages(program, fills));
    } else {
      const StageProgram nothing;
      bodies.emplace_back("direct", taps("direct", program.stages.empty() ? nothing : program.stages.front(), group));
    }
    if (plan_.reduction == Reduction::cluster) {
      bodies.emplace_back("share", share(group, added_here(program)));
      bodies.emplace_back("collect", collect(program.split, added_here(program)));
    } else if (plan_.splits > 1) {
      bodies.emplace_back("publish", publish(group));
      bodies.emplace_back("gather", gather(group));
    }
    Function* slice = holes_.instantiate("slice", bodies);
    slice->setName(fmt::format("group{}_split{}", program.group, program.split));
    slice->removeFnAttr(llvm::Attribute::AlwaysInline);
    slice->addFnAttr(llvm::Attribute::NoInline);
    slice->addFnAttr(llvm::Attribute::NoReturn);
    slice->setSubprogram(scope_);
    bind(*slice, "burin_slice_group", llvm::ConstantInt::get(i32_, program.group));
    bind(*slice, "burin_slice_split", llvm::ConstantInt::get(i32_, program.split));
    bind(*slice, "burin_slice_code", slice);
    bind(*slice, "burin_slice_code_bytes", llvm::ConstantInt::get(i32_, code_bytes(program)));
    llvm::IRBuilder<> builder(&*slice->getEntryBlock().begin());
    note(builder, "burin_dev_note_slice", {program.group, program.split});
    return slice;
  }

 private:
  // The accumulators of one hole's body: read from the thread's array at the first use, written back at the end.
  struct Sums {
    std::vector<Value*> values;
    explicit Sums(std::size_t count) : values(count, nullptr) {}
  };

  Value* sum_address(llvm::IRBuilder<>& builder, Function* body, int j) {
    return builder.CreateConstInBoundsGEP1_32(float_, body->getArg(0), j);
  }
  Value* word_offset(std::int64_t words) { return wide(words * kWordBytes); }
  Value* wide(std::int64_t value) { return llvm::ConstantInt::get(i64_, value); }
  Value* word(std::int64_t value) { return llvm::ConstantInt::get(i32_, value); }

  void locate(llvm::IRBuilder<>& builder, const LoadedTap& load, int lane, int k) {
    builder.SetCurrentDebugLocation(source_map_.location(scope_, load.c + lane, load.r, load.s, k));
  }

  void note(llvm::IRBuilder<>& builder, llvm::StringRef primitive, std::initializer_list<int> values) {
    std::vector<llvm::Type*> types(values.size(), i32_);
    std::vector<Value*> arguments;
    for (const int value : values) arguments.push_back(llvm::ConstantInt::get(i32_, value));
    llvm::FunctionCallee callee =
        holes_.module().getOrInsertFunction(primitive, llvm::FunctionType::get(builder.getVoidTy(), types, false));
    builder.CreateCall(callee, arguments);
  }

  // About what the assembler will make of a slice.
  std::int64_t code_bytes(const SliceProgram& program) const {
    constexpr std::int64_t kInstructionBytes = 16;
    constexpr std::int64_t kCopyInstructions = 30, kFrameInstructions = 200;
    std::int64_t copies = 0;
    for (const StageProgram& stage : program.stages) copies += static_cast<std::int64_t>(stage.copies.size());
    return kInstructionBytes *
           (program.multiply_adds() + program.shared_loads() + kCopyInstructions * copies + kFrameInstructions);
  }

  void bind(Function& slice, llvm::StringRef name, llvm::Constant* value) {
    for (llvm::BasicBlock& block : slice) {
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (call == nullptr || call->getCalledFunction() == nullptr || call->getCalledFunction()->getName() != name) {
          continue;
        }
        call->replaceAllUsesWith(value);
        call->eraseFromParent();
      }
    }
  }

  Function* copies(const StageProgram& stage) {
    Function* body = holes_.open("copies");
    llvm::IRBuilder<> builder(&body->front());
    for (const ChannelCopies& run : stage.copies) {
      if (run.count < kLoopedCopies) {
        for (int i = 0; i < run.count; ++i) {
          holes_.splice(builder, copy_channel_,
                        {body->getArg(0), body->getArg(1), body->getArg(2),
                         wide(run.source_bytes + i * run.source_step), word(run.slot_bytes + i * run.slot_step)});
        }
        continue;
      }
      builder.CreateCall(copy_channels_,
                         {body->getArg(0), body->getArg(1), body->getArg(2), wide(run.source_bytes),
                          word(run.slot_bytes), wide(run.source_step), word(run.slot_step), word(run.count)});
    }
    builder.CreateRetVoid();
    return body;
  }

  // Stages whose copies begin before the first is computed; each later one begins when a buffer is free for it.
  std::size_t ahead() const { return static_cast<std::size_t>(plan_.stages_ahead()); }

  Function* prologue(const std::vector<Function*>& fills) {
    Function* body = holes_.open("prologue");
    llvm::IRBuilder<> builder(&body->front());
    llvm::FunctionCallee commit = holes_.module().getOrInsertFunction(
        "burin_dev_copy_commit", llvm::FunctionType::get(builder.getVoidTy(), false));
    for (std::size_t i = 0; i < ahead(); ++i) {
      if (i < fills.size()) builder.CreateCall(fills[i], {body->getArg(0)});
      builder.CreateCall(commit);
    }
    builder.CreateRetVoid();
    return body;
  }

  Function* stages(const SliceProgram& program, const std::vector<Function*>& fills) {
    Function* body = holes_.open("stages");
    llvm::IRBuilder<> builder(&body->front());
    const std::vector<int>& group = plan_.groups[program.group];
    for (std::size_t i = 0; i < program.stages.size(); ++i) {
      Function* fill_ahead = holes_.open("fill_ahead");
      llvm::IRBuilder<> fill_builder(&fill_ahead->front());
      if (i + ahead() < fills.size()) fill_builder.CreateCall(fills[i + ahead()], {fill_ahead->getArg(0)});
      fill_builder.CreateRetVoid();
      Function* stage =
          holes_.instantiate("stage", {{"fill_ahead", fill_ahead}, {"taps", taps("taps", program.stages[i], group)}});
      note(builder, "burin_dev_note_stage", {static_cast<int>(i)});
      builder.CreateCall(stage, {body->getArg(0), body->getArg(1)});
    }
    builder.CreateRetVoid();
    return body;
  }

  Function* bulk_stages(const SliceProgram& program) {
    Function* body = holes_.open("stages");
    llvm::IRBuilder<> builder(&body->front());
    const std::vector<int>& group = plan_.groups[program.group];
    const auto gate = [&](std::size_t stage) { return static_cast<std::int64_t>(stage) % plan_.buffers; };
    for (std::size_t i = 0; i < program.stages.size(); ++i) {
      const std::size_t next = i + ahead();
      const bool fills = next < program.stages.size();
      HoleBodies bodies = {{"taps", taps("taps", program.stages[i], group)}};
      if (fills) {
        Function* fill_ahead = holes_.open("fill_ahead");
        llvm::IRBuilder<> fill_builder(&fill_ahead->front());
        const ChannelCopies& run = program.stages[next].copies.front();
        fill_builder.CreateCall(inlined("bulk_fill"), {fill_ahead->getArg(0), wide(run.source_bytes), word(run.count),
                                                       word(run.slot_bytes), word(gate(next))});
        fill_builder.CreateRetVoid();
        bodies.emplace_back("fill_ahead", fill_ahead);
      }
      Function* stage = holes_.instantiate(fills ? "bulk_stage" : "bulk_free_stage", bodies);
      note(builder, "burin_dev_note_stage", {static_cast<int>(i)});
      builder.CreateCall(stage, {body->getArg(0), body->getArg(1), word(gate(i)),
                                 word(static_cast<std::int64_t>(i) / plan_.buffers % 2)});
    }
    builder.CreateRetVoid();
    return body;
  }

  // A piece with a loop: it is called, and inlined at the end.
  Function* inlined(llvm::StringRef name) {
    Function* piece = holes_.piece(name);
    piece->addFnAttr(llvm::Attribute::AlwaysInline);
    return piece;
  }

  // `inside`: null when the filter position lies in the image, or in staged zeros, for every pixel.
  Value* load_activation(llvm::IRBuilder<>& builder, Value* base, std::int64_t offset, Value* inside) {
    const bool four = channels_together(plan_.input_layout) == 4;
    if (plan_.staging == Staging::direct)
      return holes_.splice(builder, four ? direct4_ : direct_, {base, wide(offset)});
    if (inside != nullptr) {
      return holes_.splice(builder, four ? activation4_if_ : activation_if_, {inside, base, word(offset)});
    }
    return holes_.splice(builder, four ? activation4_ : activation_, {base, word(offset)});
  }

  // The straight-line heart: each activation is loaded `load_ahead` loads before its multiply-adds.
  Function* taps(llvm::StringRef hole, const StageProgram& stage, const std::vector<int>& group) {
    Function* body = holes_.open(hole);
    llvm::IRBuilder<> builder(&body->front());
    llvm::FunctionCallee barrier =
        holes_.module().getOrInsertFunction("burin_dev_barrier", llvm::FunctionType::get(builder.getVoidTy(), false));
    Sums sums(group.size());
    for (const LoadedTap& load : stage.loads) {
      for (const AccumulatorTap& use : load.uses) {
        Value*& sum = sums.values[use.accumulator];
        if (sum == nullptr) sum = builder.CreateLoad(float_, sum_address(builder, body, use.accumulator));
      }
    }
    const std::size_t ahead = static_cast<std::size_t>(std::max(1, plan_.load_ahead));
    std::vector<Value*> loaded(stage.loads.size()), inside(stage.loads.size());
    int since_barrier = 0;
    for (std::size_t n = 0; n < stage.loads.size() + ahead; ++n) {
      if (n < stage.loads.size()) {
        const LoadedTap& load = stage.loads[n];
        locate(builder, load, 0, kNoOutput);
        if (load.outside != 0) {
          const bool same = n > 0 && stage.loads[n - 1].outside == load.outside;
          inside[n] = same ? inside[n - 1] : holes_.splice(builder, inside_, {body->getArg(2), word(load.outside)});
        }
        loaded[n] = load_activation(builder, body->getArg(1), load.offset, inside[n]);
        loaded[n]->setName(fmt::format("c{}.r{}.s{}", load.c, load.r, load.s));
      }
      if (n < ahead) continue;
      for (const AccumulatorTap& use : stage.loads[n - ahead].uses) {
        Value*& sum = sums.values[use.accumulator];
        locate(builder, stage.loads[n - ahead], use.lane, group[use.accumulator]);
        Value* activation = loaded[n - ahead];
        if (activation->getType()->isVectorTy()) {
          activation = builder.CreateExtractElement(activation, static_cast<std::uint64_t>(use.lane));
        }
        Value* weight = llvm::ConstantFP::get(float_, use.weight);
        sum = inside[n - ahead] != nullptr
                  ? holes_.splice(builder, tap_if_, {inside[n - ahead], sum, activation, weight})
                  : holes_.splice(builder, tap_, {sum, activation, weight});
        sum->setName(fmt::format("k{}.", group[use.accumulator]));  // LLVM counts on: k17.1, k17.2
        if (++since_barrier == plan_.barrier_every) {
          builder.SetCurrentDebugLocation({});
          builder.CreateCall(barrier);
          since_barrier = 0;
        }
      }
    }
    builder.SetCurrentDebugLocation({});
    for (std::size_t j = 0; j < group.size(); ++j) {
      if (sums.values[j] != nullptr)
        builder.CreateStore(sums.values[j], sum_address(builder, body, static_cast<int>(j)));
    }
    builder.CreateRetVoid();
    return body;
  }

  Function* clear(const std::vector<int>& group) {
    Function* body = holes_.open("clear");
    llvm::IRBuilder<> builder(&body->front());
    Value* zero = holes_.splice(builder, start_, {});
    for (std::size_t j = 0; j < group.size(); ++j) {
      builder.CreateStore(zero, sum_address(builder, body, static_cast<int>(j)));
    }
    builder.CreateRetVoid();
    return body;
  }

  Function* publish(const std::vector<int>& group) {
    Function* body = holes_.open("publish");
    llvm::IRBuilder<> builder(&body->front());
    for (std::size_t j = 0; j < group.size(); ++j) {
      Value* sum = builder.CreateLoad(float_, sum_address(builder, body, static_cast<int>(j)));
      holes_.splice(builder, publish_,
                    {body->getArg(1), word_offset(static_cast<std::int64_t>(j) * plan_.threads), sum});
    }
    builder.CreateRetVoid();
    return body;
  }

  Function* gather(const std::vector<int>& group) {
    Function* body = holes_.open("gather");
    llvm::IRBuilder<> builder(&body->front());
    for (std::size_t j = 0; j < group.size(); ++j) {
      Value* address = sum_address(builder, body, static_cast<int>(j));
      Value* sum = builder.CreateLoad(float_, address);
      sum = holes_.splice(builder, gather_,
                          {body->getArg(1), word_offset(static_cast<std::int64_t>(j) * plan_.threads), sum});
      builder.CreateStore(sum, address);
    }
    builder.CreateRetVoid();
    return body;
  }

  // The accumulators of a group whose final sums a slice computes.
  struct Share {
    int first = 0, end = 0;
    bool has(int j) const { return first <= j && j < end; }
  };
  Share added_here(const SliceProgram& program) const {
    const auto size = static_cast<int>(plan_.groups[program.group].size());
    if (plan_.reduction != Reduction::cluster) return {0, size};
    const int share = plan_.share_channels(program.group);
    return {std::min(program.split * share, size), std::min((program.split + 1) * share, size)};
  }

  std::int64_t partial_offset(int j) const { return std::int64_t{j} * plan_.threads * kWordBytes; }

  // What other blocks of the cluster will read.
  Function* share(const std::vector<int>& group, const Share& own) {
    Function* body = holes_.open("share");
    llvm::IRBuilder<> builder(&body->front());
    for (int j = 0; j < static_cast<int>(group.size()); ++j) {
      if (own.has(j)) continue;
      Value* sum = builder.CreateLoad(float_, sum_address(builder, body, j));
      holes_.splice(builder, share_, {body->getArg(1), llvm::ConstantInt::get(i32_, partial_offset(j)), sum});
    }
    builder.CreateRetVoid();
    return body;
  }

  // All loads come first: they take long, and the registers of the sums that were shared are free.
  Function* collect(int split, const Share& own) {
    Function* body = holes_.open("collect");
    llvm::IRBuilder<> builder(&body->front());
    std::vector<Value*> partials;
    for (int j = own.first; j < own.end; ++j) {
      for (int rank = 0; rank < plan_.splits; ++rank) {
        if (rank == split) {
          partials.push_back(builder.CreateLoad(float_, sum_address(builder, body, j)));
        } else {
          partials.push_back(holes_.splice(
              builder, collect_,
              {body->getArg(1), llvm::ConstantInt::get(i32_, partial_offset(j)), llvm::ConstantInt::get(i32_, rank)}));
        }
      }
    }
    auto partial = partials.begin();
    for (int j = own.first; j < own.end; ++j) {
      Value* sum = *partial++;
      for (int rank = 1; rank < plan_.splits; ++rank) sum = holes_.splice(builder, add_, {sum, *partial++});
      builder.CreateStore(sum, sum_address(builder, body, j));
    }
    builder.CreateRetVoid();
    return body;
  }

  Function* outputs(const std::vector<int>& group, const Share& own) {
    Function* body = holes_.open("outputs");
    llvm::IRBuilder<> builder(&body->front());
    const std::int64_t plane = static_cast<std::int64_t>(layer_.shape.out_h()) * layer_.shape.out_w();
    const int together = channels_together(plan_.output_layout);
    const auto sum = [&](int j) -> Value* { return builder.CreateLoad(float_, sum_address(builder, body, j)); };
    const auto bias = [&](int j) -> Value* {
      return llvm::ConstantFP::get(float_, layer_.bias.empty() ? 0.0F : layer_.bias[group[j]]);
    };
    for (int j = own.first; j < own.end; ++j) {
      Value* offset = word_offset(group[j] / together * plane * together + group[j] % together);
      if (together == 4 && side_by_side(group, j, own.end)) {
        holes_.splice(builder, output4_,
                      {sum(j), sum(j + 1), sum(j + 2), sum(j + 3), body->getArg(1), offset, bias(j), bias(j + 1),
                       bias(j + 2), bias(j + 3)});
        j += 3;
        continue;
      }
      holes_.splice(builder, output_, {sum(j), body->getArg(1), offset, bias(j)});
    }
    builder.CreateRetVoid();
    return body;
  }

  // Whether the accumulators j to j + 3 are the channels of one block.
  static bool side_by_side(const std::vector<int>& group, int j, int end) {
    if (j + 4 > end || group[j] % 4 != 0) return false;
    for (int i = 1; i < 4; ++i) {
      if (group[j + i] != group[j] + i) return false;
    }
    return true;
  }

  TemplateHoles& holes_;
  const ConvLayer& layer_;
  const KernelPlan& plan_;
  Function *activation_, *direct_, *tap_, *start_, *inside_, *activation_if_, *activation4_, *activation4_if_,
      *direct4_, *output4_, *tap_if_, *copy_channel_, *copy_channels_, *publish_, *gather_, *share_, *collect_, *add_,
      *output_;
  SourceMapBuilder source_map_;
  llvm::DISubprogram* scope_ = nullptr;  // of the slice that is being built
  llvm::Type *float_, *i32_, *i64_;
};

// The entry jumps to its slice; slices end the thread themselves, so nothing is saved across the call.
Function* dispatch(TemplateHoles& holes, const std::vector<Function*>& slices) {
  Function* body = holes.open("slices");
  llvm::LLVMContext& context = holes.context();
  llvm::IRBuilder<> builder(&body->front());
  llvm::BasicBlock* none = llvm::BasicBlock::Create(context, "none", body);
  llvm::SwitchInst* choice = builder.CreateSwitch(body->getArg(0), none, static_cast<unsigned>(slices.size()));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    llvm::BasicBlock* block = llvm::BasicBlock::Create(context, slices[i]->getName(), body, none);
    choice->addCase(builder.getInt32(static_cast<std::uint32_t>(i)), block);
    builder.SetInsertPoint(block);
    std::vector<Value*> arguments;
    for (std::size_t a = 1; a < body->arg_size(); ++a) arguments.push_back(body->getArg(a));
    builder.CreateCall(slices[i], arguments)->setDoesNotReturn();
    builder.CreateUnreachable();
  }
  builder.SetInsertPoint(none);
  builder.CreateRetVoid();
  return body;
}

// The body of a hole that gives each slice a number: a choice by split where all groups agree.
Function* slice_numbers(TemplateHoles& holes, llvm::StringRef hole, const KernelPlan& plan,
                        const std::vector<std::uint32_t>& numbers) {
  Function* body = holes.open(hole);
  llvm::IRBuilder<> builder(&body->front());
  const auto splits = static_cast<std::size_t>(plan.splits);
  bool by_split = true;
  for (std::size_t i = splits; i < numbers.size(); ++i) by_split &= numbers[i] == numbers[i - splits];
  const std::size_t cases = by_split ? splits : numbers.size();
  Value* chooser = body->getArg(0);
  if (by_split) chooser = builder.CreateURem(chooser, builder.getInt32(static_cast<std::uint32_t>(splits)));
  constexpr std::size_t kMostSelects = 16;
  if (cases > kMostSelects) {
    llvm::LLVMContext& context = holes.context();
    const auto block_of = [&](std::uint32_t number) {
      llvm::BasicBlock* block = llvm::BasicBlock::Create(context, "", body);
      llvm::IRBuilder<>(block).CreateRet(builder.getInt32(number));
      return block;
    };
    llvm::SwitchInst* choice = builder.CreateSwitch(chooser, block_of(numbers.front()), static_cast<unsigned>(cases));
    for (std::size_t i = 1; i < cases; ++i) {
      choice->addCase(builder.getInt32(static_cast<std::uint32_t>(i)), block_of(numbers[i]));
    }
    return body;
  }
  Value* number = builder.getInt32(numbers.front());
  for (std::size_t i = 1; i < cases; ++i) {
    if (numbers[i] == numbers[i - 1]) continue;
    Value* reached = builder.CreateICmpUGE(chooser, builder.getInt32(static_cast<std::uint32_t>(i)));
    number = builder.CreateSelect(reached, builder.getInt32(numbers[i]), number);
  }
  builder.CreateRet(number);
  return body;
}

void fill_hole(TemplateHoles& holes, llvm::StringRef name, Function* body) {
  Function* hole = holes.module().getFunction(("burin_hole_" + name).str());
  BURIN_CHECK(hole != nullptr, "the template has no hole '{}'", name.str());
  hole->replaceAllUsesWith(body);
}

// Bulk copies of the first stages begin before the slice's own code.
void fill_channel_holes(TemplateHoles& holes, const KernelPlan& plan) {
  if (plan.staging != Staging::bulk) return;
  const int together = channels_together(plan.input_layout);
  std::vector<std::uint32_t> first, count;
  for (const Slice& slice : plan.slices) {
    first.push_back(slice.channels.empty() ? 0 : static_cast<std::uint32_t>(slice.channels.front() / together));
    count.push_back(static_cast<std::uint32_t>(ceil_div(static_cast<std::int64_t>(slice.channels.size()), together)));
  }
  fill_hole(holes, "first_block", slice_numbers(holes, "first_block", plan, first));
  fill_hole(holes, "blocks", slice_numbers(holes, "blocks", plan, count));
}

// Inlines what was bound and clears away what only the template needed. Straight-line code of tens of thousands of
// instructions passes through here, so every pass is a linear one.
void finish(llvm::Module& module) {
  llvm::FunctionPassManager clean;
  clean.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  clean.addPass(llvm::EarlyCSEPass());
  clean.addPass(llvm::SimplifyCFGPass());
  clean.addPass(llvm::ADCEPass());
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(clean)));
  run_passes(module, passes);
}

// Inlining marks names with ".i" for each level; a reader wants "k17", not "k17.i.i".
void tidy_names(llvm::Module& module) {
  const auto tidy = [](llvm::Value& value) {
    const std::size_t mark = value.getName().find(".i");
    if (mark != llvm::StringRef::npos) value.setName(value.getName().take_front(mark).str());
  };
  for (Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      tidy(block);
      for (llvm::Instruction& instruction : block) tidy(instruction);
    }
  }
}

// llvm.used keeps the pieces alive until here.
void release_template(llvm::Module& module) {
  for (const char* name : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* used = module.getGlobalVariable(name)) used->eraseFromParent();
  }
  for (llvm::Function& function : module) {
    if (function.getName().starts_with("burin_piece_")) function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

void set_entry(llvm::Module& module, const std::string& symbol, const KernelPlan& plan) {
  Function* kernel = module.getFunction("burin_kernel");
  BURIN_CHECK(kernel != nullptr, "the template has no entry");
  kernel->setName(symbol);
  llvm::LLVMContext& context = module.getContext();
  llvm::NamedMDNode* annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
  annotations->clearOperands();
  const auto annotate = [&](const char* key, int value) {
    annotations->addOperand(llvm::MDNode::get(
        context, {llvm::ValueAsMetadata::get(kernel), llvm::MDString::get(context, key),
                  llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value))}));
  };
  annotate("kernel", 1);
  annotate("maxntidx", plan.threads);
  if (plan.max_registers < 255) annotate("maxnreg", plan.max_registers);
  // Slices are numbered split fastest, so a group's splits are neighbours.
  if (plan.reduction == Reduction::cluster) set_cluster_blocks(*kernel, plan.splits);
}

void check_module(const llvm::Module& module, ErrorKind kind, const std::string& what) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(module, &stream)) fail(kind, "{} is not valid LLVM IR: {}", what, stream.str());
}

}  // namespace

SpecialisedModule specialise(const ConvLayer& layer, const SparsePattern& pattern, const KernelPlan& plan,
                             const std::string& symbol) {
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = load_template(*result.context, plan, layer.shape);
  result.symbol = symbol;

  TemplateHoles holes(*result.module);
  SliceBuilder builder(holes, layer, plan);
  std::vector<Function*> slices;
  for (const SliceProgram& program : lower_plan(plan, layer.shape, pattern)) slices.push_back(builder.build(program));

  Function* entry = result.module->getFunction("burin_kernel");
  BURIN_CHECK(entry != nullptr, "the template has no entry");
  fill_hole(holes, "slices", dispatch(holes, slices));
  fill_channel_holes(holes, plan);

  release_template(*result.module);
  finish(*result.module);
  tidy_names(*result.module);
  set_entry(*result.module, result.symbol, plan);
  result.module->setModuleIdentifier(result.symbol);
  result.module->setSourceFileName(plan.template_name);
  check_module(*result.module, ErrorKind::internal, "the specialised module");
  return result;
}

std::string print_template(const KernelPlan& plan, const ConvShape& shape) {
  llvm::LLVMContext context;
  std::string text;
  llvm::raw_string_ostream(text) << *load_template(context, plan, shape);
  return text;
}

std::string print(const SpecialisedModule& specialised) {
  std::string text;
  llvm::raw_string_ostream(text) << *specialised.module;
  return text;
}

SpecialisedModule parse_specialised(std::string_view text, const std::string& symbol, const std::string& file) {
  SpecialisedModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.symbol = symbol;
  llvm::SMDiagnostic fault;
  result.module = llvm::parseAssemblyString({text.data(), text.size()}, fault, *result.context);
  if (result.module == nullptr) {
    fail(ErrorKind::bad_input, "{}, line {}: {}", file, fault.getLineNo(), fault.getMessage().str());
  }
  check_module(*result.module, ErrorKind::bad_input, file);
  const Function* kernel = result.module->getFunction(symbol);
  if (kernel == nullptr || kernel->isDeclaration()) {
    fail(ErrorKind::bad_input, "{}: there is no function '{}' in it; the entry's name says which plan it was made for",
         file, symbol);
  }
  return result;
}

std::string to_bitcode(const SpecialisedModule& specialised) {
  std::unique_ptr<llvm::Module> stripped = llvm::CloneModule(*specialised.module);
  for (Function& function : *stripped) {
    for (llvm::Argument& argument : function.args()) argument.setName("");
    for (llvm::BasicBlock& block : function) {
      block.setName("");
      for (llvm::Instruction& instruction : block) instruction.setName("");
    }
  }
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::WriteBitcodeToFile(*stripped, stream);
  return bytes;
}

}  // namespace burin
