#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/network.h"
#include "ir/printable.h"
#include "ir/program.h"
#include "ir/saturate.h"
#include "ir/step_order.h"

namespace burin {
namespace {

// One use of a buffer by a step.
struct Touch {
  int step = 0;
  const Place* place = nullptr;
  bool writes = false;
};

struct Range {
  std::int64_t begin = 0, end = 0;
};

// Looks at one image: all places of a buffer have its stride. Places with runs of different kinds count as overlapping
// wherever their ends are: what runs like that together is then asked to be ordered, which it always is.
bool overlap(const Place& a, const Place& b) {
  if (a.end() <= b.offset || b.end() <= a.offset) return false;
  if (a.runs == 1 || a.runs != b.runs || a.run_stride != b.run_stride) return true;
  const auto [low, high] = a.offset <= b.offset ? std::pair(&a, &b) : std::pair(&b, &a);
  return high->offset < low->offset + low->run_bytes || high->offset + high->run_bytes > low->offset + low->run_stride;
}

// The bytes of one image that these places fill, as ranges in their order. Runs that fill each other's gaps are one
// range.
std::vector<Range> filled(const std::vector<const Place*>& places) {
  std::vector<Range> ranges;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const Place*>> interleaved;
  for (const Place* place : places) {
    if (place->runs == 1) {
      ranges.push_back({place->offset, place->end()});
    } else {
      interleaved[{place->runs, place->run_stride}].push_back(place);
    }
  }
  for (auto& [shape, parts] : interleaved) {
    const auto [runs, stride] = shape;
    std::ranges::sort(parts, {}, &Place::offset);
    std::int64_t begin = parts.front()->offset, end = begin;
    for (const Place* part : parts) {
      if (part->offset != end) begin = end = part->offset;
      end += part->run_bytes;
      if (end - begin == stride) ranges.push_back({begin, begin + runs * stride});
    }
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

bool covers(const std::vector<Range>& ranges, std::int64_t begin, std::int64_t end) {
  return std::ranges::any_of(ranges, [&](const Range& range) { return range.begin <= begin && end <= range.end; });
}

constexpr std::size_t kMaxArgumentNameBytes = 4096, kMaxProviderBytes = 256;

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), order_(program.steps.size()), touches_(program.buffers.size()) {}

  std::vector<std::string> run() {
    check_sizes();
    check_what_follows();
    if (!faults_.empty()) return faults_.take();
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) check_buffer(static_cast<int>(i));
    if (!faults_.empty()) return faults_.take();
    check_arguments(BufferHome::input);
    check_arguments(BufferHome::output);
    check_naive_bytes();
    for (std::size_t i = 0; i < program_.steps.size(); ++i) check_step(static_cast<int>(i));
    // What follows computes with places and orders that the rules before have found sound.
    check_pairs();
    if (!faults_.empty()) return faults_.take();
    for (std::size_t i = 0; i < program_.buffers.size() && !faults_.full(); ++i) {
      check_races(static_cast<int>(i));
      check_reads(static_cast<int>(i));
    }
    check_arena();
    return faults_.take();
  }

 private:
  const Buffer& buffer(int index) const { return program_.buffers[static_cast<std::size_t>(index)]; }
  const std::vector<Touch>& touches(int index) const { return touches_[static_cast<std::size_t>(index)]; }
  std::string buffer_name(int index) const {
    return fmt::format("buffer {} ({})", index, printable(buffer(index).tensor));
  }
  std::string step_name(int index) const {
    return fmt::format("step {} ({})", index, printable(program_.steps[static_cast<std::size_t>(index)].name));
  }

  void check_sizes() {
    if (program_.name.empty() || program_.name.size() > kMaxArgumentNameBytes || !is_plain_text(program_.name)) {
      faults_.add("the program's name is not printable text");
    }
    if (program_.steps.empty()) faults_.add("there are no steps");
    if (program_.batch < 1 || program_.batch > kMaxBatch) {
      faults_.add("the batch is {}; allowed are 1 to {}", program_.batch, kMaxBatch);
    }
    if (program_.steps.size() > static_cast<std::size_t>(kMaxPlanSteps)) {
      faults_.add("there are {} steps; at most {} are allowed", program_.steps.size(), kMaxPlanSteps);
    }
    if (program_.arena_bytes < 0 || program_.arena_bytes > kMaxArenaBytes) {
      faults_.add("the arena has {} bytes; allowed are 0 to {}", program_.arena_bytes, kMaxArenaBytes);
    }
  }

  void check_what_follows() {
    Program completed = program_;
    for (Step& step : completed.steps) step.after.clear();
    complete(completed);
    const auto same_places = [](const Step& a, const Step& b) {
      return a.reads == b.reads && a.writes == b.writes && a.input_map == b.input_map && a.output_map == b.output_map;
    };
    if (completed.arena_bytes != program_.arena_bytes || completed.buffers != program_.buffers ||
        !std::ranges::equal(completed.steps, program_.steps, same_places)) {
      faults_.add("its sizes and lives are not those that follow from its buffers and steps");
    }
  }

  void check_buffer(int index) {
    const Buffer& b = buffer(index);
    if (b.map) {
      check_map(index);
    } else {
      check_format(index);
    }
    if (b.bytes > kMaxArenaBytes) {
      faults_.add("{} has {} bytes; at most {} are allowed", buffer_name(index), b.bytes, kMaxArenaBytes);
      return;
    }
    if (b.home == BufferHome::arena) {
      if (b.first < 0) faults_.add("{} is used by no step", buffer_name(index));
      if (b.argument != -1) faults_.add("{} is an argument, but lies in the arena", buffer_name(index));
      if (b.offset % kBufferAlignment != 0) {
        faults_.add(
            "{} begins at byte {} of the arena; buffers begin at multiples of {}, for aligned and bulk accesses",
            buffer_name(index), b.offset, kBufferAlignment);
      }
      if (b.offset < 0 || b.offset > program_.arena_bytes - b.bytes) {
        faults_.add("{} takes {} bytes from byte {} on, beyond the {} of the arena", buffer_name(index), b.bytes,
                    b.offset, program_.arena_bytes);
      }
      return;
    }
    if (b.offset != 0) faults_.add("{} is the caller's memory and has no offset in the arena", buffer_name(index));
    if (b.tensor.empty() || b.tensor.size() > kMaxArgumentNameBytes || !is_plain_text(b.tensor)) {
      faults_.add("{} is an argument whose name is not printable text", buffer_name(index));
    }
  }

  // Cells may have more images than the batch: the last one reaches beyond it.
  void check_map(int index) {
    const Buffer& b = buffer(index);
    const auto extent = [](std::int64_t value) { return value >= 1 && value <= kMaxImageBytes; };
    if (b.shape.size() != 3 || !std::ranges::all_of(b.shape, extent)) {
      faults_.add("{} is the activity map of no image", buffer_name(index));
      return;
    }
    const ActivityExtent tensor = {program_.batch, static_cast<int>(b.shape[0]), static_cast<int>(b.shape[1]),
                                   static_cast<int>(b.shape[2])};
    faults_.add_all(burin::verify(*b.map, tensor, 1, "the map"), buffer_name(index) + ": ");
    if (!b.format.is_plain()) faults_.add("{} is a map, which has no format", buffer_name(index));
  }

  void check_format(int index) {
    const Buffer& b = buffer(index);
    const auto& [element, layout] = b.format;
    if (!can_lie_in(element, layout)) {
      faults_.add("{} holds {} in {}: {}", buffer_name(index), to_string(element), to_string(layout), kWhatLiesWhere);
      return;
    }
    if (b.format.is_loose() && b.home == BufferHome::arena) {
      faults_.add("{} holds {} in the arena: only inputs and outputs do", buffer_name(index), to_string(b.format));
    }
    if (b.shape.empty() || b.shape.size() > static_cast<std::size_t>(kMaxActivationRank)) {
      faults_.add("{} has {} axes; allowed are 1 to {}", buffer_name(index), b.shape.size(), kMaxActivationRank);
      return;
    }
    if (b.bytes < 1) {
      faults_.add("{} is {}; extents are 1 to {}", buffer_name(index), shape_text(b.shape), kMaxImageBytes);
    }
    if (layout != TensorLayout::nchw && b.shape.size() != 3) {
      faults_.add("{} lies in {}, which only images do", buffer_name(index), to_string(layout));
    }
  }

  void check_arguments(BufferHome home) {
    const std::vector<const Buffer*> found = program_.arguments(home);
    const auto numbers = std::views::iota(0, static_cast<int>(found.size()));
    if (found.empty() || !std::ranges::equal(found, numbers, {}, &Buffer::argument)) {
      faults_.add("the buffers of the program's {}s are not one for each of 0 to {}", to_string(home), found.size());
      return;
    }
    std::set<std::string> names;
    for (const Buffer* argument : found) {
      if (names.insert(argument->tensor).second) continue;
      faults_.add("two {}s are named {}", to_string(home), printable(argument->tensor));
    }
  }

  void check_naive_bytes() {
    std::int64_t sum = 0;
    for (const Buffer& b : program_.buffers) {
      if (b.home == BufferHome::arena) sum += aligned_bytes(std::min(b.bytes, kMaxArenaBytes));
    }
    if (program_.naive_bytes < sum) {
      faults_.add("without sharing {} bytes would be taken, but the arena's buffers alone are {}", program_.naive_bytes,
                  sum);
    }
    if (program_.arena_bytes > sum) {
      faults_.add("the arena has {} bytes, and its buffers together {}", program_.arena_bytes, sum);
    }
  }

  void check_place(int step, const Place& place, bool writes) {
    const std::string name = step_name(step) + (writes ? " writes" : " reads");
    if (place.buffer < 0 || place.buffer >= static_cast<int>(program_.buffers.size())) {
      faults_.add("{} buffer {}; there are {}", name, place.buffer, program_.buffers.size());
      return;
    }
    const Buffer& b = buffer(place.buffer);
    if (writes && b.home == BufferHome::input) faults_.add("{} to an input of the program", name);
    const std::int64_t stride = place.image_stride;
    const bool one_run = place.runs == 1 && place.run_stride == 0;
    const bool many_runs =
        place.runs > 1 && place.runs <= stride && place.run_stride <= stride && place.run_stride >= place.run_bytes;
    if (place.offset < 0 || place.run_bytes < 1 || !(one_run || many_runs) || place.run_bytes > stride ||
        place.offset > stride ||
        saturating_product({place.runs, std::max<std::int64_t>(1, place.run_stride)}) > kMaxArenaBytes ||
        place.end() > stride) {
      faults_.add("{} {} runs of {} bytes, {} apart, from byte {} on, which do not lie within an image of {}", name,
                  place.runs, place.run_bytes, place.run_stride, place.offset, buffer_name(place.buffer));
      return;
    }
    if (b.map && place.is_slice()) {
      faults_.add("{} part of a map, {}", name, buffer_name(place.buffer));
      return;
    }
    const int word = b.format.word_bytes();
    if (!b.map && (place.offset % word != 0 || place.run_bytes % word != 0 || place.run_stride % word != 0)) {
      faults_.add("{} parts of words of {}", name, buffer_name(place.buffer));
      return;
    }
    if (!b.map && !has_whole_octets(b, place)) {
      faults_.add("{} part of {} that does not begin and end at multiples of {} channels, which lie side by side in {}",
                  name, buffer_name(place.buffer), channels_together(b.format.layout), to_string(b.format.layout));
      return;
    }
    const std::string& kind = program_.steps[static_cast<std::size_t>(step)].kind;
    if (b.format.is_loose() && (place.is_slice() || kind != kind_name(Convert{}))) {
      faults_.add("{} {}, which holds {}: a {} of all of it may", name, buffer_name(place.buffer), to_string(b.format),
                  kind_name(Convert{}));
      return;
    }
    touches_[static_cast<std::size_t>(place.buffer)].push_back({step, &place, writes});
  }

  // Where channels lie side by side, slices are one run of whole octets. (The form of a kernel says what nchw4 can do.)
  static bool has_whole_octets(const Buffer& b, const Place& place) {
    const int together = channels_together(b.format.layout);
    if (together == 1 || b.format.layout == TensorLayout::nchw4 || !place.is_slice()) return true;
    const std::int64_t octet = image_words(b.format, {together, b.shape[1], b.shape[2]}) * kWordBytes;
    return place.runs == 1 && place.offset % octet == 0 && place.run_bytes % octet == 0;
  }

  void check_step(int index) {
    const Step& step = program_.steps[static_cast<std::size_t>(index)];
    if (step.reads.empty() || step.reads.size() > 2) {
      faults_.add("{} reads {} tensors; one or two are allowed", step_name(index), step.reads.size());
    }
    for (const Place& place : step.reads) check_place(index, place, false);
    check_place(index, step.writes, true);
    if (step.input_map) check_place(index, *step.input_map, false);
    if (step.output_map) check_place(index, *step.output_map, true);
    for (const KernelOption& option : step.options) {
      if (option.provider.empty() || option.provider.size() > kMaxProviderBytes || !is_plain_text(option.provider)) {
        faults_.add("{}: a provider's name is not printable text", step_name(index));
      }
      if (!std::isfinite(option.us))
        faults_.add("{}: the time of {} is not finite", step_name(index), printable(option.provider));
    }
    if (step.op < -1 || step.is_copy() != (step.kind == kCopyStep)) {
      faults_.add("{} is a {} of operator {}; copies alone have none", step_name(index), printable(step.kind), step.op);
    }
    if (step.is_copy() && step.reads.size() == 1 &&
        (step.reads[0].runs != step.writes.runs || step.reads[0].run_bytes != step.writes.run_bytes)) {
      faults_.add("{} copies {} runs of {} bytes to {} of {}", step_name(index), step.reads[0].runs,
                  step.reads[0].run_bytes, step.writes.runs, step.writes.run_bytes);
    }
    bool sound = true;
    int last = -1;
    for (const int before : step.after) {
      if (before <= last || before >= index) {
        faults_.add("{} waits for step {}; steps wait for earlier ones, named in ascending order", step_name(index),
                    before);
        sound = false;
      }
      last = before;
    }
    order_.add(sound ? step.after : std::vector<int>());
  }

  // What follows looks at so many pairs, and a table of waits.
  void check_pairs() {
    const auto [pairs, waits] = cost_of(program_);
    if (waits > kMaxPlanWaits) {
      faults_.add("its steps wait {} times for another; at most {} are allowed (kMaxPlanWaits)", waits, kMaxPlanWaits);
    }
    if (pairs > kMaxPlanPairs) {
      faults_.add("there are {} pairs of a write and a use of the same buffer; at most {} are allowed (kMaxPlanPairs)",
                  pairs, kMaxPlanPairs);
    }
  }

  void check_races(int index) {
    const std::vector<Touch>& all = touches(index);
    for (std::size_t i = 0; i < all.size() && !faults_.full(); ++i) {
      if (!all[i].writes) continue;
      for (std::size_t j = 0; j < all.size(); ++j) {
        if (all[j].step == all[i].step || (all[j].writes && j < i)) continue;
        if (!overlap(*all[i].place, *all[j].place) || order_.is_ordered(all[i].step, all[j].step)) continue;
        faults_.add("{} writes bytes of {} that {} {}; neither waits for the other", step_name(all[i].step),
                    buffer_name(index), step_name(all[j].step), all[j].writes ? "writes as well" : "reads");
      }
    }
  }

  // What steps before `step` have written; all that is ever written without one.
  std::vector<Range> written(const std::vector<Touch>& writes, std::optional<int> step) const {
    std::vector<const Place*> places;
    for (const Touch& touch : writes) {
      if (!step || order_.is_before(touch.step, *step)) places.push_back(touch.place);
    }
    return filled(places);
  }

  void check_reads(int index) {
    if (buffer(index).home == BufferHome::input) return;
    std::vector<Touch> writes;
    std::ranges::copy_if(touches(index), std::back_inserter(writes), &Touch::writes);
    for (const Touch& touch : touches(index)) {
      if (touch.writes || covers(written(writes, touch.step), touch.place->offset, touch.place->end())) continue;
      faults_.add("{} reads bytes of {} that no step it waits for has written", step_name(touch.step),
                  buffer_name(index));
    }
    if (buffer(index).home != BufferHome::output) return;
    if (!covers(written(writes, {}), 0, buffer(index).bytes / program_.pieces(buffer(index)))) {
      faults_.add("{} is an output of the program that is not wholly written", buffer_name(index));
    }
  }

  std::vector<int> steps_of(int index) const {
    std::vector<int> steps;
    for (const Touch& touch : touches(index)) steps.push_back(touch.step);
    return steps;
  }

  // Buffers share bytes only when everything that uses the one waits for everything that uses the other. Taken in the
  // order of their first steps, a buffer need only be compared with those that had its bytes last: who had them before
  // is before those.
  void check_arena() {
    std::vector<int> by_first;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].home == BufferHome::arena) by_first.push_back(static_cast<int>(i));
    }
    std::ranges::stable_sort(by_first, {}, [&](int index) { return buffer(index).first; });
    struct Owner {
      std::int64_t end = 0;
      int index = 0;
    };
    std::map<std::int64_t, Owner> owners;  // of the arena's bytes, by the first of them
    for (const int index : by_first) {
      if (faults_.full()) return;
      const std::int64_t begin = buffer(index).offset, end = begin + buffer(index).bytes;
      const StepOrder::Set before = order_.before_all(steps_of(index));
      const auto waits_for = [&](int other) {
        return std::ranges::all_of(touches(other), [&](const Touch& use) { return StepOrder::has(before, use.step); });
      };
      auto at = owners.lower_bound(begin);
      if (at != owners.begin() && std::prev(at)->second.end > begin) --at;
      std::set<int> replaced;
      while (at != owners.end() && at->first < end) {
        const auto [from, owner] = *at;
        at = owners.erase(at);
        replaced.insert(owner.index);
        if (from < begin) owners[from] = {begin, owner.index};
        if (owner.end > end) owners[end] = owner;
      }
      owners[begin] = {end, index};
      for (const int other : replaced) {
        if (waits_for(other)) continue;
        const auto [a, b] = std::minmax(other, index);
        faults_.add("{} and {} share bytes of the arena, and steps that use them may run at the same time",
                    buffer_name(a), buffer_name(b));
      }
    }
  }

  const Program& program_;
  StepOrder order_;
  std::vector<std::vector<Touch>> touches_;
  Faults faults_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

PlanCost& PlanCost::operator+=(const PlanCost& other) {
  pairs += other.pairs;
  waits += other.waits;
  return *this;
}

bool PlanCost::is_allowed() const { return pairs <= kMaxPlanPairs && waits <= kMaxPlanWaits; }

PlanCost cost_of(const Program& program) {
  struct Uses {
    std::int64_t writes = 0, all = 0;
  };
  std::map<int, Uses> of_buffers;
  PlanCost cost;
  const auto read = [&](const Place& place) { ++of_buffers[place.buffer].all; };
  const auto write = [&](const Place& place) {
    read(place);
    ++of_buffers[place.buffer].writes;
  };
  for (const Step& step : program.steps) {
    for (const Place& place : step.reads) read(place);
    write(step.writes);
    if (step.input_map) read(*step.input_map);
    if (step.output_map) write(*step.output_map);
    cost.waits += std::ssize(step.after);
  }
  for (const auto& [buffer, uses] : of_buffers) cost.pairs += uses.writes * uses.all;
  return cost;
}

}  // namespace burin
