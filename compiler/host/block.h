// A block: runs the threads of one block as fibers, from barrier to barrier; blocks of a cluster meet at its barriers
// (cluster.h).
//
// In one barrier interval each thread runs to its next barrier or its end, one after the other; the order of the
// threads is turned round from interval to interval. A thread that waits at a gate is asked again after the others. The
// primitives find their block through Block::current().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/host/fiber.h"
#include "compiler/host/group_products.h"
#include "compiler/host/launch_memory.h"
#include "compiler/host/shared_memory.h"

namespace burin {

// A kernel on the CPU: the addresses of its tensors and of its boxes, in their order, and the batch.
using HostEntry = void(const std::uint64_t* addresses, std::int32_t batch);

// What all blocks of a launch share.
struct Launch {
  HostEntry* kernel = nullptr;
  std::vector<std::uint64_t> addresses;
  LaunchMemory* memory = nullptr;
  std::uint32_t blocks_x = 1;
  std::int32_t batch = 1;
  bool awaits = false;  // the code awaits its launch, so that it must do so before it touches memory
};

class Cluster;

class Block {
 public:
  Block(int threads, int shared_bytes, std::size_t stack_bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Makes this block number `block` (x fastest) of the launch, of rank `rank` in a cluster that outlives its run.
  void start(const Launch& launch, std::uint32_t block, Cluster& cluster, std::uint32_t rank);
  // Runs it, on the calling CPU thread, to its end, to a fault, until all its threads meet those of the other blocks of
  // the cluster, or until it waits at a gate for what others send. Whether a thread has come any further.
  bool advance();
  // Where all its threads are; `none`: they have ended, or wait at gates.
  enum class Meeting { none, barrier, arrived };
  Meeting meeting() const { return meeting_; }
  // The other blocks of the cluster have come there too.
  void pass_meeting();
  bool ended() const { return all_ended_; }
  // Its threads have passed a barrier.
  bool met() const { return accessor_.interval > 0 || met_others_; }
  // The fault of a block that waits at a gate when no other one goes on.
  std::string deadlock() const;
  // The first fault with its block and thread; then the rest of the block was not run.
  const std::optional<std::string>& fault() const { return fault_; }

  // ---- for the primitives; the running thread is the one that calls
  static Block& current() { return *current_; }
  std::uint32_t thread() const { return static_cast<std::uint32_t>(thread_); }
  std::uint32_t x() const { return accessor_.block % launch_->blocks_x; }
  std::uint32_t y() const { return accessor_.block / launch_->blocks_x; }
  std::uint32_t rank() const { return rank_; }  // in its cluster
  SharedMemory& shared() { return shared_; }
  LaunchMemory& memory() { return *launch_->memory; }
  Accessor accessor() const { return {accessor_.block, thread_, accessor_.interval}; }

  void await_launch();
  // The fault of an access to memory that other kernels write, by a thread that has not awaited the launch.
  std::optional<std::string> check_awaited(const char* access) const;
  void barrier();
  std::optional<std::string> cluster_barrier();
  std::optional<std::string> cluster_arrive();
  std::optional<std::string> cluster_meet();
  // Starts a copy to the block of that rank; addresses are those of shared memory.
  std::optional<std::string> cluster_send(std::uint32_t source, std::uint32_t target, std::uint32_t bytes,
                                          std::uint32_t rank, std::uint32_t gate);
  std::optional<std::string> cluster_load(std::uint32_t address, std::uint32_t rank, float& value);
  std::uint32_t broadcast(std::uint32_t value);
  float shuffle_xor(float value, std::uint32_t distance);
  // What the threads of the caller's warp gave, in their order, when all of them have called it; `what` must be the
  // same. The words are there until the caller calls it again.
  using WarpWords = std::array<std::uint32_t, 12>;
  struct Warp {
    const WarpWords* first = nullptr;
    std::uint32_t lane = 0;  // the caller's
    const WarpWords& operator[](std::uint32_t of_lane) const { return first[of_lane]; }
  };
  Warp meet_warp(std::uint32_t what, const WarpWords& given);
  std::uint32_t ballot(std::uint32_t condition);
  void warp_barrier();
  // Where all threads of the caller's warp have come: the warp has done with what it read.
  std::optional<std::string> gate_release(std::uint32_t gate);
  GroupProducts& products() { return products_[static_cast<std::size_t>(thread_)]; }
  // What a lane of the block that has the caller's columns was the last to load, for a product whose second matrix may
  // begin there.
  LoadedOperands& loaded_operands(std::uint32_t first_byte);
  // Until the phase is complete; the fault when the wait is one that must not be.
  std::optional<std::string> gate_wait(std::uint32_t gate, std::uint32_t phase);
  [[noreturn]] void end_thread();
  // What all threads of a warp must do alike, told apart by `what`.
  void warp_action(std::uint32_t what);
  // The fault when the block has already counted its arrival.
  std::optional<std::string> check_partial_store();
  void fence();
  // The arrival tells other blocks that this block's partial sums are there: every store must be fenced and ordered
  // before it. The fault if one is not.
  std::optional<std::string> check_arrival();
  // Ends the block; the fault becomes run's result.
  [[noreturn]] void fail_thread(std::string&& fault);

 private:
  enum class State {
    running,
    at_gate,
    at_warp,
    at_barrier,
    at_broadcast,
    at_shuffle,
    at_cluster_barrier,
    at_cluster_meeting,
    ended
  };
  struct Thread {
    State state = State::running;
    std::uint32_t broadcast_value = 0;
    float shuffled = 0;                            // what it passed to the shuffle, then what it receives
    std::uint32_t distance = 0;                    // of the shuffle
    std::uint32_t gate = 0;                        // waited for; of State::at_gate
    std::uint32_t warp_meetings = 0, met_for = 0;  // how often it has met its warp, and the last time for what
    bool awaited = false;                          // its launch
    bool moved = false;                            // has passed a wait since it was last resumed
    bool arrived = false;                          // at a meeting of the cluster, and has not met the others yet
    // Barrier intervals, counted from 1; 0: never.
    std::uint32_t stored = 0;        // the last store of a partial sum
    std::uint32_t covered = 0;       // the first fence after it
    std::uint32_t fenced = 0;        // the last fence
    std::uint64_t warp_actions = 0;  // in their order, hashed
  };

  static const char* name(State state);
  static void thread_entry();
  void meet(State state);
  bool run_interval(bool ascending);
  bool release_warp(std::size_t first);
  void check_warp(std::size_t first);
  void finish_interval();
  void finish_shuffle();
  void end_block();
  std::optional<std::string> diverged_warp() const;
  std::string subject(int thread) const;

  static thread_local Block* current_;

  FiberPool fibers_;
  SharedMemory shared_;
  std::vector<Thread> threads_;
  std::vector<GroupProducts> products_;  // of the threads
  static constexpr std::uint32_t kColumnPairs = 4, kKeptOperands = 64, kOperandBytes = 128;
  std::array<LoadedOperands, std::size_t{kColumnPairs} * kKeptOperands> loaded_operands_;
  // What threads give to their warps, of odd and of even meetings: a thread may come to the next one before the others
  // have read what it gave to this one.
  std::array<std::vector<WarpWords>, 2> warp_words_;
  const Launch* launch_ = nullptr;
  Cluster* cluster_ = nullptr;
  std::uint32_t rank_ = 0;
  Accessor accessor_;
  int thread_ = 0;
  bool ascending_ = true;  // the order of the threads in the next interval
  bool all_ended_ = false;
  Meeting meeting_ = Meeting::none;
  bool waits_for_others_ = false;  // at gates
  bool met_others_ = false;        // its threads have met those of the other blocks
  bool arrived_ = false;           // has counted its arrival
  // A bit for each gate at which something was sent that no thread has waited for before it arrived.
  std::uint32_t unawaited_gates_ = 0;
  std::uint32_t broadcast_value_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace burin
