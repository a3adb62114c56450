#include "compiler/host/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/host/cluster.h"
#include "ir/limits.h"

namespace burin {

namespace {

constexpr std::uint32_t kWideBytes = 16;  // of a copy

}  // namespace

thread_local Block* Block::current_ = nullptr;

Block::Block(int threads, int shared_bytes, std::size_t stack_bytes)
    : fibers_(threads, stack_bytes, &Block::thread_entry),
      shared_(shared_bytes, threads),
      threads_(static_cast<std::size_t>(threads)),
      products_(static_cast<std::size_t>(threads)) {
  for (std::vector<WarpWords>& words : warp_words_) words.resize(threads_.size());
}

Block::~Block() = default;

void Block::start(const Launch& launch, std::uint32_t block, Cluster& cluster, std::uint32_t rank) {
  const int threads = static_cast<int>(threads_.size());
  launch_ = &launch;
  cluster_ = &cluster;
  rank_ = rank;
  accessor_ = {block, 0, 0};
  fault_.reset();
  ascending_ = true;
  all_ended_ = false;
  meeting_ = Meeting::none;
  waits_for_others_ = met_others_ = arrived_ = false;
  unawaited_gates_ = 0;
  shared_.begin_block();
  std::fill(threads_.begin(), threads_.end(), Thread{});
  for (GroupProducts& products : products_) products.begin_thread();
  for (int i = 0; i < threads; ++i) fibers_.restart(i);
}

LoadedOperands& Block::loaded_operands(std::uint32_t first_byte) {
  return loaded_operands_[thread() % kColumnPairs * kKeptOperands + first_byte / kOperandBytes % kKeptOperands];
}

void Block::await_launch() { threads_[static_cast<std::size_t>(thread_)].awaited = true; }

std::optional<std::string> Block::check_awaited(const char* access) const {
  if (!launch_->awaits || threads_[static_cast<std::size_t>(thread_)].awaited) [[likely]]
    return std::nullopt;
  return fmt::format("{} before the thread has awaited its launch", access);
}

bool Block::advance() {
  current_ = this;
  bool any_moved = false;
  waits_for_others_ = false;
  while (!all_ended_ && meeting_ == Meeting::none && !fault_ && !waits_for_others_) {
    any_moved |= run_interval(ascending_);
    if (fault_ || waits_for_others_) break;
    finish_interval();
    ascending_ = !ascending_;
  }
  current_ = nullptr;
  return any_moved;
}

void Block::pass_meeting() {
  if (unawaited_gates_ != 0) {
    fault_ = fmt::format(
        "{}: meets the others of its cluster, but none of its threads had waited at gate {} for what they sent before "
        "it arrived",
        subject(0), std::countr_zero(unawaited_gates_));
    return;
  }
  for (Thread& thread : threads_) {
    thread.state = State::running;
    thread.arrived = false;
  }
  if (meeting_ == Meeting::barrier) {
    shared_.begin_cluster_interval();
    ++accessor_.interval;
  }
  shared_.end_cluster_accesses();
  meeting_ = Meeting::none;
  met_others_ = true;
}

// Runs every thread until it waits for all others or has ended, or all that have not wait for other blocks. Whether any
// came further.
bool Block::run_interval(bool ascending) {
  const std::size_t warps = (threads_.size() + kWarpSize - 1) / kWarpSize;
  bool any_moved = false;
  for (bool moved = true, waiting = true; waiting;) {
    moved = waiting = false;
    for (std::size_t i = 0; i < warps; ++i) {
      const std::size_t first = (ascending ? i : warps - 1 - i) * kWarpSize;
      const std::size_t end = std::min(first + kWarpSize, threads_.size());
      do {
        for (std::size_t lane = 0; lane < end - first; ++lane) {
          const std::size_t at = ascending ? first + lane : end - 1 - lane;
          Thread& thread = threads_[at];
          if (thread.state != State::running && thread.state != State::at_gate) continue;
          moved |= thread.state == State::running;
          thread.moved = false;
          thread_ = static_cast<int>(at);
          fibers_.resume(thread_);
          if (fault_) return true;
          moved |= thread.moved;
        }
      } while (release_warp(first));
      for (std::size_t at = first; at < end; ++at) waiting |= threads_[at].state == State::at_gate;
      check_warp(first);
      if (fault_) return true;
    }
    any_moved |= moved;
    if (moved || !waiting) continue;
    waits_for_others_ = true;
    break;
  }
  return any_moved;
}

std::string Block::deadlock() const {
  const auto stuck = std::find_if(threads_.begin(), threads_.end(),
                                  [](const Thread& thread) { return thread.state == State::at_gate; });
  const std::uint32_t gate = stuck->gate, number = shared_.gates().phase(gate);
  return fmt::format("{}: deadlock: waits for phase {} (number {}) of gate {} for ever: {}",
                     subject(static_cast<int>(stuck - threads_.begin())), number % 2, number, gate,
                     shared_.gates().obstacle(gate));
}

// Whether all threads of the warp have come to a meeting: then they go on.
bool Block::release_warp(std::size_t first) {
  const std::span<Thread> warp =
      std::span(threads_).subspan(first, std::min<std::size_t>(kWarpSize, threads_.size() - first));
  if (warp.size() != kWarpSize) return false;
  for (const Thread& thread : warp) {
    if (thread.state != State::at_warp || thread.met_for != warp.front().met_for) return false;
  }
  for (Thread& thread : warp) thread.state = State::running;
  return true;
}

// Threads that wait for their warp wait in vain where others have gone elsewhere, but for those at a gate.
void Block::check_warp(std::size_t first) {
  const std::size_t end = std::min(first + kWarpSize, threads_.size());
  const auto waits = [](const Thread& thread) { return thread.state == State::at_warp; };
  const auto begin = threads_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto waiting = std::find_if(begin, threads_.begin() + static_cast<std::ptrdiff_t>(end), waits);
  const int subject_thread = static_cast<int>(waiting - threads_.begin());
  if (subject_thread == static_cast<int>(end)) return;
  for (std::size_t i = first; i < end; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == State::at_gate ||
        (waits(thread) && thread.met_for == waiting->met_for && end - first == kWarpSize))
      continue;
    fault_ = fmt::format("{}: divergence: waits for its warp, and thread {} does not come to the same instruction",
                         subject(subject_thread), i);
    return;
  }
}

// The check of clang's -fsanitize=function reads what stands before a function; generated code has nothing there.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
void Block::thread_entry() {
  Block& block = current();
  const Launch& launch = *block.launch_;
  launch.kernel(launch.addresses.data(), launch.batch);
  block.end_thread();
}

const char* Block::name(State state) {
  switch (state) {
    case State::at_gate:
      return "gate";
    case State::at_barrier:
      return "barrier";
    case State::at_broadcast:
      return "broadcast";
    case State::at_shuffle:
      return "shuffle";
    case State::at_cluster_barrier:
      return "cluster barrier";
    case State::at_cluster_meeting:
      return "meeting of its cluster";
    case State::at_warp:
    case State::running:
    case State::ended:
      break;
  }
  return "?";
}

// Every thread has run to a barrier or to its end; all must have come to the same.
void Block::finish_interval() {
  const auto first = [&](State state) {
    return static_cast<int>(
        std::find_if(threads_.begin(), threads_.end(), [&](const Thread& t) { return t.state == state; }) -
        threads_.begin());
  };
  const int all = static_cast<int>(threads_.size());
  if ((fault_ = diverged_warp())) return;
  std::optional<State> meeting;
  for (const State state : {State::at_barrier, State::at_broadcast, State::at_shuffle, State::at_cluster_barrier,
                            State::at_cluster_meeting}) {
    if (first(state) == all) continue;
    if (meeting) {
      fault_ = fmt::format("{}: divergence: waits at a {} while thread {} waits at a {}", subject(first(*meeting)),
                           name(*meeting), first(state), name(state));
      return;
    }
    meeting = state;
  }
  if (!meeting) {
    end_block();
    return;
  }
  if (first(State::ended) != all) {
    fault_ = fmt::format("{}: divergence: waits at a {} that thread {}, which has ended, never reaches",
                         subject(first(*meeting)), name(*meeting), first(State::ended));
    return;
  }
  if (meeting == State::at_cluster_barrier || meeting == State::at_cluster_meeting) {
    meeting_ = meeting == State::at_cluster_barrier ? Meeting::barrier : Meeting::arrived;
    return;
  }
  if (meeting == State::at_shuffle) {
    finish_shuffle();
    return;
  }
  if (meeting == State::at_broadcast) {
    if (const auto fault = shared_.broadcast()) {
      fault_ = fmt::format("{}: {}", subject(0), *fault);
      return;
    }
    broadcast_value_ = threads_.front().broadcast_value;
  }
  for (Thread& thread : threads_) thread.state = State::running;
  shared_.begin_interval();
  ++accessor_.interval;
}

// Orders nothing: whatever threads have stored stays unknown to the others.
void Block::finish_shuffle() {
  std::vector<float> values;
  for (const Thread& thread : threads_) values.push_back(thread.shuffled);
  const std::uint32_t distance = threads_.front().distance;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const std::size_t partner = i ^ distance;
    if (threads_[i].distance != distance) {
      fault_ = fmt::format("{}: divergence: shuffles over a distance of {}, thread 0 over {}",
                           subject(static_cast<int>(i)), threads_[i].distance, distance);
    } else if (distance >= kWarpSize || partner >= threads_.size()) {
      fault_ = fmt::format("{}: shuffles with thread {}, which its warp does not have", subject(static_cast<int>(i)),
                           partner);
    }
    if (fault_) return;
    threads_[i].shuffled = values[partner];
    threads_[i].state = State::running;
  }
}

void Block::end_block() {
  all_ended_ = true;
  int thread = 0;
  if (const auto fault = shared_.gates().unfinished(thread)) {
    fault_ = fmt::format("{}: {}", subject(thread), *fault);
  } else if (shared_.loaded_by_others()) {
    fault_ = fmt::format(
        "{}: ends while its shared memory may still be on its way to another block of its cluster: that takes a "
        "meeting, or a cluster barrier, after the loads",
        subject(0));
  }
}

std::optional<std::string> Block::diverged_warp() const {
  for (std::size_t first = 0; first < threads_.size(); first += kWarpSize) {
    for (std::size_t i = first; i < std::min(first + kWarpSize, threads_.size()); ++i) {
      if (threads_[i].warp_actions == threads_[first].warp_actions) continue;
      return fmt::format("{}: divergence: does not set the same words' bits as thread {} of its warp",
                         subject(static_cast<int>(i)), first);
    }
  }
  return std::nullopt;
}

std::string Block::subject(int thread) const { return fmt::format("block ({}, {}), thread {}", x(), y(), thread); }

void Block::meet(State state) {
  threads_[static_cast<std::size_t>(thread_)].state = state;
  fibers_.suspend();
}

void Block::barrier() { meet(State::at_barrier); }

std::optional<std::string> Block::cluster_barrier() {
  if (threads_[static_cast<std::size_t>(thread_)].arrived) {
    return "comes to a cluster barrier without having met the others where it has arrived";
  }
  meet(State::at_cluster_barrier);
  return std::nullopt;
}

std::optional<std::string> Block::cluster_arrive() {
  Thread& thread = threads_[static_cast<std::size_t>(thread_)];
  if (thread.arrived) return "arrives at a meeting of its cluster without having met the others at the last one";
  thread.arrived = true;
  shared_.arrive(thread_);
  return std::nullopt;
}

std::optional<std::string> Block::cluster_meet() {
  if (!threads_[static_cast<std::size_t>(thread_)].arrived) return "meets the others of its cluster without an arrival";
  meet(State::at_cluster_meeting);
  return std::nullopt;
}

std::optional<std::string> Block::cluster_send(std::uint32_t source, std::uint32_t target, std::uint32_t bytes,
                                               std::uint32_t rank, std::uint32_t gate) {
  static thread_local std::vector<float> values;
  Block* other = cluster_->block(rank);
  if (other == nullptr || other == this) {
    return fmt::format("sends to the block of rank {}, {}", rank,
                       other == this ? "which is its own" : fmt::format("the cluster has {}", cluster_->size()));
  }
  if (!met_others_) return "sends to another block before it has met the others of its cluster";
  if (threads_[static_cast<std::size_t>(thread_)].arrived) return "sends to another block after it has arrived";
  if (source % kWideBytes != 0 || bytes % kWideBytes != 0) {
    return fmt::format("sends {} bytes of shared memory from byte {} on: both must be multiples of {}", bytes, source,
                       kWideBytes);
  }
  values.resize(bytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto address = source + static_cast<std::uint32_t>(i * sizeof(float));
    if (auto fault = shared_.send(address, thread_, values[i])) return fault;
  }
  const auto fault = other->all_ended_ ? "copy to shared memory that ended with its block"
                                       : other->shared_.receive(target, values, gate);
  if (!fault) {
    other->unawaited_gates_ |= 1U << gate;
    return std::nullopt;
  }
  return fmt::format("sends to block ({}, {}): {}", other->x(), other->y(), *fault);
}

std::optional<std::string> Block::cluster_load(std::uint32_t address, std::uint32_t rank, float& value) {
  Block* other = cluster_->block(rank);
  if (other == nullptr) {
    return fmt::format("cluster load from the block of rank {}, the cluster has {}", rank, cluster_->size());
  }
  if (other == this) return shared_.load(address, thread_, value);
  if (threads_[static_cast<std::size_t>(thread_)].arrived) return "cluster load after the thread has arrived";
  const auto fault = other->all_ended_ ? "load from shared memory that ended with its block"
                                       : other->shared_.load_from_cluster(address, value);
  if (!fault) return std::nullopt;
  return fmt::format("cluster load from block ({}, {}): {}", other->x(), other->y(), *fault);
}

std::uint32_t Block::broadcast(std::uint32_t value) {
  threads_[static_cast<std::size_t>(thread_)].broadcast_value = value;
  meet(State::at_broadcast);
  return broadcast_value_;
}

float Block::shuffle_xor(float value, std::uint32_t distance) {
  Thread& thread = threads_[static_cast<std::size_t>(thread_)];
  thread.shuffled = value;
  thread.distance = distance;
  meet(State::at_shuffle);
  return threads_[static_cast<std::size_t>(thread_)].shuffled;
}

Block::Warp Block::meet_warp(std::uint32_t what, const WarpWords& given) {
  Thread& thread = threads_[static_cast<std::size_t>(thread_)];
  std::vector<WarpWords>& words = warp_words_[thread.warp_meetings % 2];
  words[static_cast<std::size_t>(thread_)] = given;
  thread.met_for = what;
  ++thread.warp_meetings;
  meet(State::at_warp);
  const auto lane = static_cast<std::uint32_t>(thread_ % kWarpSize);
  return {words.data() + (static_cast<std::uint32_t>(thread_) - lane), lane};
}

std::optional<std::string> Block::gate_wait(std::uint32_t gate, std::uint32_t phase) {
  Thread& thread = threads_[static_cast<std::size_t>(thread_)];
  for (bool open = false;;) {
    if (auto fault = shared_.gate_wait(gate, phase, thread_, open)) return fault;
    if (open) break;
    thread.gate = gate;
    meet(State::at_gate);
  }
  thread.state = State::running;
  thread.moved = true;
  if (!thread.arrived) unawaited_gates_ &= ~(1U << gate);
  return std::nullopt;
}

std::uint32_t Block::ballot(std::uint32_t condition) {
  constexpr std::uint32_t kMeetToVote = 0xFFFE0000;  // a number that no other meeting has
  const Warp warp = meet_warp(kMeetToVote, {condition});
  std::uint32_t bits = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) bits |= std::uint32_t{warp[lane][0] != 0} << lane;
  return bits;
}

void Block::warp_barrier() {
  constexpr std::uint32_t kMeetAtBarrier = 0xFFFE0001;  // as above
  meet_warp(kMeetAtBarrier, {});
  shared_.pass_warp_barrier(thread_);
}

std::optional<std::string> Block::gate_release(std::uint32_t gate) {
  constexpr std::uint32_t kMeetToRelease = 0xFFFF0000;  // a number that no other meeting has
  const Warp warp = meet_warp(kMeetToRelease + gate, {});
  return shared_.gate_release(gate, thread_, warp.lane == 0);
}

void Block::warp_action(std::uint32_t what) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  std::uint64_t& actions = threads_[static_cast<std::size_t>(thread_)].warp_actions;
  actions = (actions + what + 1) * kMultiplier;
}

void Block::end_thread() {
  if (const auto fault = shared_.end_thread(thread_)) {
    fault_ = fmt::format("{}: {}", subject(thread_), *fault);
  } else if (const auto products_fault = products().end_thread()) {
    fault_ = fmt::format("{}: {}", subject(thread_), *products_fault);
  } else if (threads_[static_cast<std::size_t>(thread_)].arrived) {
    fault_ =
        fmt::format("{}: ended without having met the others of its cluster where it has arrived", subject(thread_));
  }
  threads_[static_cast<std::size_t>(thread_)].state = State::ended;
  fibers_.leave();
}

void Block::fail_thread(std::string&& fault) {
  {
    // The caller's frame is never left, so nothing in it may own memory: the text is taken over here.
    const std::string text = std::move(fault);
    fault_ = fmt::format("{}: {}", subject(thread_), text);
  }
  fibers_.leave();
}

std::optional<std::string> Block::check_partial_store() {
  if (arrived_) return "stores a partial sum after its block has counted its arrival";
  Thread& thread = threads_[static_cast<std::size_t>(thread_)];
  thread.stored = accessor_.interval + 1;
  thread.covered = 0;
  return std::nullopt;
}

void Block::fence() {
  Thread& thread = threads_[static_cast<std::size_t>(thread_)];
  thread.fenced = accessor_.interval + 1;
  if (thread.covered == 0) thread.covered = thread.fenced;
}

std::optional<std::string> Block::check_arrival() {
  arrived_ = true;
  const std::uint32_t now = accessor_.interval + 1;
  const Thread& caller = threads_[static_cast<std::size_t>(thread_)];
  for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
    const Thread& writer = threads_[static_cast<std::size_t>(i)];
    if (writer.stored == 0) continue;
    const bool fenced_itself = writer.covered != 0 && (i == thread_ || writer.covered < now);
    const bool fenced_by_caller = writer.stored < caller.fenced;  // the caller's fence covers what a barrier ordered
    if (fenced_itself || fenced_by_caller) continue;
    return fmt::format(
        "counts an arrival while partial sums of thread {} are not ordered before it: that takes a fence "
        "after the stores and a barrier",
        i);
  }
  return std::nullopt;
}

}  // namespace burin
