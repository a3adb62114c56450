#include "test/codegen/ptx_checks.h"
#include "test/catch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/emit/kernel_report.h"
#include "compiler/emit/ptx.h"
#include "compiler/providers/conv_baked/slices/slice_program.h"
#include "compiler/providers/conv_baked/slices/slice_taps.h"
#include "compiler/providers/conv_baked/slices/specialise_baked.h"
#include "test/codegen/ptx_taps.h"

using namespace burin;

namespace burin_test {
namespace {

// Input channels with a nonzero in the slice, in the order in which it reads them.
std::vector<int> live_channels(const Emitted& made, const Slice& slice) {
  std::set<int> live;
  for (const Tap& tap : taps_of(made, slice)) live.insert(tap.c);
  std::vector<int> channels;
  std::copy_if(slice.channels.begin(), slice.channels.end(), std::back_inserter(channels),
               [&](int c) { return live.contains(c); });
  return channels;
}

bool is_direct(const Emitted& made) { return made.plan.staging == Staging::direct; }
bool is_bulk(const Emitted& made) { return made.plan.staging == Staging::bulk; }

bool is_clustered(const Emitted& made) { return made.plan.reduction == Reduction::cluster; }

// Outputs whose final sums a slice computes.
int added_here(const Emitted& made, const Slice& slice) {
  const auto outputs = static_cast<int>(made.plan.groups[static_cast<std::size_t>(slice.group)].size());
  if (!is_clustered(made)) return outputs;
  const int share = made.plan.added_channels(slice.group);
  return std::clamp(outputs - slice.split * share, 0, share);
}

bool is_async(const Emitted& made) { return made.text.directives[1] != ".target sm_75"; }

bool held(const BakedPlan& plan) {
  return plan.tile.images * plan.shared.patch_rows * plan.shared.patch_cols <= 4 * plan.threads;
}

// Places in the code that copy one channel: one for each position whose address is held, else one in a loop.
int copying_places(const BakedPlan& plan) {
  const int positions = plan.tile.images * plan.shared.patch_rows * plan.shared.patch_cols;
  return held(plan) ? (positions + plan.threads - 1) / plan.threads : 1;
}

// The channels of each of a slice's stages, as slices of their own; with direct staging there is one.
std::vector<Slice> stages_of(const Emitted& made, const Slice& slice) {
  const auto at_once =
      static_cast<std::size_t>(is_direct(made) ? made.layer.shape.in_channels : made.plan.stage_channels);
  std::vector<Slice> stages;
  for (std::size_t first = 0; first < slice.channels.size(); first += at_once) {
    const auto begin = slice.channels.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t size = std::min(at_once, slice.channels.size() - first);
    stages.push_back({slice.group, slice.split, {begin, begin + static_cast<std::ptrdiff_t>(size)}});
  }
  return stages;
}

// Stages whose buffer is filled by the slice, while it computes; bulk copies of those before it the entry starts.
int refilled_stages(const Emitted& made, const Slice& slice) {
  return std::max(0, made.plan.slice_stages(slice) - made.plan.stages_ahead());
}

struct CopiesInCode {
  int copies = 0, loops = 0;
};

// What a slice with Staging::shared holds: a few channels at equal distances are copied one by one, more by a loop of
// four at once and one of those that are left.
CopiesInCode expected_copies(const Emitted& made, const Slice& slice) {
  const SliceProgram program =
      lower_plan(made.plan, made.layer.shape,
                 made.pattern)[static_cast<std::size_t>(slice.group * made.plan.splits + slice.split)];
  const std::int64_t plane_bytes = std::int64_t{made.layer.shape.in_h} * made.layer.shape.in_w * 4;
  const std::vector<Slice> stages = stages_of(made, slice);
  REQUIRE(program.stages.size() == stages.size());
  CopiesInCode expected;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::multiset<int> copied;
    bool single = false;
    for (const ChannelCopies& run : program.stages[i].copies) {
      for (int j = 0; j < run.count; ++j) {
        copied.insert(static_cast<int>((run.source_bytes + j * run.source_step) / plane_bytes));
      }
      const int rest = run.count % 4 != 0 ? 1 : 0;
      expected.copies += copying_places(made.plan) * (run.count < kLoopedCopies ? run.count : 4 + rest);
      expected.loops += copying_places(made.plan) * (run.count < kLoopedCopies ? 0 : 1 + rest);
      single |= run.count < kLoopedCopies;
    }
    CHECK((copied == std::multiset<int>(stages[i].channels.begin(), stages[i].channels.end())));
    if (single && !held(made.plan)) ++expected.loops;  // over the positions
  }
  return expected;
}

// Every nonzero of a slice is a multiply-add with its weight as an immediate.
void check_multiply_adds(const Emitted& made) {
  std::size_t total = 0, nonzeros = 0;
  for (const Slice& slice : made.plan.slices) {
    INFO("group " << slice.group << ", split " << slice.split);
    const PtxFunction& function = made.text.slice(slice.group, slice.split);
    const std::multiset<std::string> expected = expected_taps(made, slice);
    const std::multiset<std::string> found = found_taps(made, function);
    CHECK(agree(made, found, expected));
    if (!has_pairs(made)) CHECK(function.count("fma.rn.f32") == static_cast<int>(expected.size()));
    total += expected.size();
    nonzeros += taps_of(made, slice).size();
  }
  CHECK(static_cast<std::int64_t>(nonzeros) == made.pattern.statistics.nonzeros);
  std::size_t in_file = 0;
  for (const PtxFunction& function : made.text.functions) in_file += multiply_adds(made, function).size();
  CHECK(in_file == total);
}

// Every activation is loaded once, at a constant offset from one address.
void check_loads(const Emitted& made) {
  for (const Slice& slice : made.plan.slices) {
    INFO("group " << slice.group << ", split " << slice.split);
    std::set<std::string> bases;
    std::set<std::string> loaded, needed;
    for (const PtxInstruction& load : activation_loads(made.text.slice(slice.group, slice.split))) {
      const char* word = is_half(made.plan.precision) ? "" : "f32";
      if (!load.opcode.starts_with(is_direct(made) ? "ld.global" : fmt::format("ld.shared.{}", word))) {
        FAIL(load.opcode);
      }
      if (!loaded.insert(load.comment).second) FAIL("loaded twice: " << load.comment);
      const std::size_t bracket = load.operands.find('[');
      bases.insert(load.operands.substr(bracket, load.operands.find_first_of("+]", bracket) - bracket));
    }
    for (const Tap& tap : taps_of(made, slice)) {
      needed.insert(fmt::format("channel {} tap ({}, {})", tap.c, tap.r, tap.s));
    }
    CHECK((loaded == needed));
    // LLVM may find the address anew in each stage, never for each load.
    CHECK(static_cast<int>(bases.size()) <= std::max(1, made.plan.slice_stages(slice)));
  }
}

// No weights, no indices, no local memory: what is read from global memory is counted.
void check_nothing_is_looked_up(const Emitted& made) {
  for (const std::string& directive : made.text.directives) {
    INFO(directive);  // the only variable is the block's shared memory
    CHECK((directive.starts_with(".version ") || directive.starts_with(".target ") ||
           directive.starts_with(".address_size ") || directive.starts_with(".extern .shared ")));
  }
  for (const PtxFunction& function : made.text.functions) {
    INFO(function.name);
    int residuals = 0, partials = 0, direct = 0, shared_stores = 0, bulk = is_bulk(made) ? 1 : 0;
    CopiesInCode copies;
    if (!function.entry) {
      const Slice& slice =
          made.plan.slices[static_cast<std::size_t>(function.group * made.plan.splits + function.split)];
      const auto outputs = static_cast<int>(made.plan.groups[static_cast<std::size_t>(function.group)].size());
      const int added = added_here(made, slice);
      residuals = made.layer.shape.epilogue.residual ? added : 0;
      const int sums = made.plan.word_images();
      partials = made.plan.reduction == Reduction::last_block ? outputs * sums : 0;
      shared_stores = is_clustered(made) ? (outputs - added) * sums : 0;
      CHECK(function.count("ld.shared::cluster.f32") ==
            (is_clustered(made) ? added * sums * (made.plan.splits - 1) : 0));
      if (is_direct(made)) {
        direct = static_cast<int>(activation_loads(function).size());
      } else if (!is_bulk(made)) {
        copies = expected_copies(made, slice);
      }
      bulk = is_bulk(made) ? refilled_stages(made, slice) : 0;
      CHECK(function.count("st.global.") - function.count("st.global.cg.") == added);
    }
    CHECK(function.count("cp.async.ca.") == (is_async(made) ? copies.copies : 0));
    CHECK(function.count_loops("cp.async.ca.") == (is_async(made) ? copies.loops : 0));
    CHECK(function.count("st.shared.f32") == shared_stores + (is_async(made) ? 0 : copies.copies));
    CHECK(function.count("cp.async.bulk.") == bulk);
    CHECK(function.count("ld.global.cg.f32") == partials);
    CHECK(function.count("st.global.cg.f32") == partials);
    CHECK(function.count("ld.global") == partials + residuals + direct + (is_async(made) ? 0 : copies.copies));
    for (const PtxInstruction& instruction : function.instructions) {
      const std::string& code = instruction.opcode;
      const bool is_load = code.starts_with("ld");
      const bool allowed = code.starts_with("ld.param.") || code.starts_with("ld.shared.") ||
                           code.starts_with("ld.shared::cluster.") || code.starts_with("ld.global.");
      if (is_load && !allowed) FAIL(code << " " << instruction.operands);  // a generic address among them
      if (code.find("local") != std::string::npos || code.find("const") != std::string::npos) FAIL(code);
    }
  }
  CHECK(made.ptx.find(".local") == std::string::npos);
  CHECK(made.ptx.find("__local_depot") == std::string::npos);
}

// A slice is a function, which the entry calls once.
void check_functions(const Emitted& made) {
  CHECK(made.text.functions.size() == made.plan.slices.size() + 1);
  std::multiset<std::string> called;
  for (const PtxInstruction& instruction : made.text.entry().instructions) {
    // A call's operands stand in lines of their own.
    if (instruction.opcode.starts_with("group")) {
      called.insert(instruction.opcode.substr(0, instruction.opcode.find(',')));
    }
  }
  std::multiset<std::string> slices;
  for (const Slice& slice : made.plan.slices) slices.insert(made.text.slice(slice.group, slice.split).name);
  CHECK((called == slices));
}

// The entry says its name, its threads and its registers.
void check_entry(const Emitted& made) {
  const PtxFunction& entry = made.text.entry();
  CHECK(entry.name == made.symbol);
  std::vector<std::string> expected = {fmt::format(".maxntid {}, 1, 1", made.plan.threads)};
  if (made.plan.max_registers < 255) expected.push_back(fmt::format(".maxnreg {}", made.plan.max_registers));
  if (const ClusterShape& cluster = made.plan.cluster; cluster.blocks() > 1) {
    expected.emplace_back(".explicitcluster");
    expected.push_back(fmt::format(".reqnctapercluster {}, {}, 1", cluster.tiles, cluster.splits));
  }
  CHECK(entry.directives == expected);
  CHECK(std::count_if(made.text.functions.begin(), made.text.functions.end(),
                      [](const PtxFunction& f) { return f.entry; }) == 1);
}

// What a slice must do at the start of a stage, but for the copies of patches.
std::string stage_events(const Emitted& made, bool refills) {
  if (is_direct(made)) return "";
  if (is_bulk(made)) return refills ? "wbec" : "w";  // before a buffer is filled, all have left it
  return is_async(made) ? "wb" : "b";
}

// Barriers and waits are those of the plan.
void check_barriers(const Emitted& made) {
  for (const Slice& slice : made.plan.slices) {
    INFO("group " << slice.group << ", split " << slice.split);
    const PtxFunction& function = made.text.slice(slice.group, slice.split);
    const std::vector<Slice> stages = stages_of(made, slice);
    std::string expected;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      expected += stage_events(made, static_cast<int>(i) < refilled_stages(made, slice));
      if (made.plan.barrier_every == 0) continue;
      expected += std::string(taps_of(made, stages[i]).size() / made.plan.barrier_every, 'b');
    }
    // What arrived last is waited for twice, so that all is multiplied before the barrier.
    if (is_bulk(made) && is_clustered(made) && is_half(made.plan.precision) && !stages.empty()) expected += "w";
    if (made.plan.reduction == Reduction::last_block) expected += "bbb";  // arrival, and two of the broadcast
    if (is_clustered(made)) expected += "bkk";  // the buffers are free, the sums are there, the sums were read
    CHECK(events(function) == expected);
    if (is_bulk(made)) continue;
    // Patches are counted by the stage: as many may be under way as were begun ahead, but for the one that is awaited.
    for (const PtxInstruction& wait : function.find("cp.async.wait_group")) {
      CHECK(wait.operands == std::to_string(made.plan.stages_ahead() - 1));
    }
  }
  CHECK(events(made.text.entry()) == (is_bulk(made) ? "ibec" : ""));
}

// Whether the tap reads beyond the image for some output pixel.
bool may_be_outside(const ConvShape& shape, const Tap& tap) {
  const auto may_leave = [](int at, int stride, int pad, int in, int out) {
    return at < pad || at - pad + (out - 1) * stride >= in;
  };
  return may_leave(tap.r * shape.dilation_h, shape.stride_h, shape.pad.top, shape.in_h, shape.out_h()) ||
         may_leave(tap.s * shape.dilation_w, shape.stride_w, shape.pad.left, shape.in_w, shape.out_w());
}

// Multiply-adds are left out where a filter position may lie beyond the image, and only there.
void check_guards(const Emitted& made) {
  const ConvShape& shape = made.layer.shape;
  if (shape.epilogue.function != function_of(Activation::none)) return;  // it may choose too
  for (const Slice& slice : made.plan.slices) {
    INFO("group " << slice.group << ", split " << slice.split);
    std::set<std::string> guarded;
    for (const Tap& tap : taps_of(made, slice)) {
      if (is_bulk(made) && may_be_outside(shape, tap)) guarded.insert(tap_name(tap));
    }
    const std::multiset<std::string> computed = expected_taps(made, slice);
    const auto expected =
        std::count_if(computed.begin(), computed.end(), [&](const std::string& tap) { return guarded.contains(tap); });
    const PtxFunction& function = made.text.slice(slice.group, slice.split);
    CHECK(function.count("selp.f32") == (has_pairs(made) ? 0 : expected));  // pairs are jumped over
  }
}

// The channels of a slice's loads one after the other, in runs: with bulk staging a stage walks its filter positions,
// those first that lie in the image for every pixel, at each its channels; else its channels.
std::vector<int> mapped_channels(const Emitted& made, const Slice& slice) {
  if (!is_bulk(made)) return live_channels(made, slice);
  std::vector<int> channels;
  for (const Slice& stage : stages_of(made, slice)) {
    std::set<std::tuple<bool, int, int, int>> loads;
    for (const Tap& tap : taps_of(made, stage)) {
      loads.insert({may_be_outside(made.layer.shape, tap), tap.r, tap.s, tap.c});
    }
    for (const auto& [outside, r, s, c] : loads) channels.push_back(c);
  }
  channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
  return channels;
}

// The map's ranges are in order and cover every channel of every slice.
void check_map(const Emitted& made) {
  const std::vector<PtxRange> ranges = map_kernel(made.ptx);
  std::map<std::pair<int, int>, std::vector<int>> channels;
  int last = 0;
  for (const PtxRange& range : ranges) {
    INFO("group " << range.group << ", split " << range.split << ", channel " << range.channel << ", lines "
                  << range.first_line << " to " << range.last_line);
    CHECK(range.first_line > last);
    CHECK(range.last_line >= range.first_line);
    last = range.last_line;
    const PtxFunction& function = made.text.slice(range.group, range.split);
    CHECK(range.first_line > function.first_line);
    CHECK(range.last_line <= function.last_line);
    std::vector<int>& of_slice = channels[{range.group, range.split}];
    if (range.channel < 0) {
      CHECK(of_slice.empty());
      continue;
    }
    of_slice.push_back(range.channel);
    const std::string& first = made.text.lines[static_cast<std::size_t>(range.first_line) - 1];
    CHECK_THAT(first, burin_test::Contains(fmt::format("channel {} tap", range.channel)));
  }
  REQUIRE(last <= static_cast<int>(made.text.lines.size()));
  // In the order in which the slice reads them; those without a nonzero in the group have no lines.
  for (const Slice& slice : made.plan.slices) {
    CHECK((channels[{slice.group, slice.split}] == mapped_channels(made, slice)));
  }
}

}  // namespace

Emitted emit(const ConvLayer& layer, const BakedPlan& plan, const std::string& arch) {
  Emitted made{layer, analyse(layer), plan, kernel_symbol(layer.name, plan), {}, {}};
  REQUIRE(verify(plan, layer.shape, made.pattern).empty());
  made.ptx = emit_ptx(specialise_baked(layer, made.pattern, plan, made.symbol), arch);
  made.text = read_ptx(made.ptx);
  return made;
}

std::vector<PtxInstruction> activation_loads(const PtxFunction& function) {
  std::vector<PtxInstruction> loads = function.find("ld.");
  std::erase_if(loads, [](const PtxInstruction& load) { return !load.comment.starts_with("channel "); });
  return loads;
}

std::string events(const PtxFunction& function) {
  static const std::pair<const char*, char> kEvents[] = {{"bar.sync", 'b'},
                                                         {"cp.async.wait_group", 'w'},
                                                         {"mbarrier.init", 'i'},
                                                         {"mbarrier.arrive.expect_tx", 'e'},
                                                         {"cp.async.bulk", 'c'},
                                                         {"mbarrier.test_wait", 'w'},
                                                         {"barrier.cluster.wait", 'k'}};
  std::string text;
  for (const PtxInstruction& instruction : function.instructions) {
    for (const auto& [opcode, letter] : kEvents) {
      if (instruction.opcode.starts_with(opcode)) text += letter;
    }
  }
  return text;
}

void check_text(const Emitted& made) {
  INFO(made.symbol);
  check_multiply_adds(made);
  check_loads(made);
  check_nothing_is_looked_up(made);
  check_functions(made);
  check_entry(made);
  check_barriers(made);
  check_guards(made);
  check_map(made);
}

}  // namespace burin_test
