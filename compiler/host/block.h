// A block: runs the threads of one block as fibers, from barrier to barrier; blocks of a cluster meet at its barriers
// (cluster.h).
//
// In one barrier interval each thread runs to its next barrier or its end, one after the other; the order of the
// threads is turned round from interval to interval. A thread that waits at a gate is asked again after the others. The
// primitives find their block through Block::current().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/host/fiber.h"
#include "compiler/host/launch_memory.h"
#include "compiler/host/shared_memory.h"

namespace burin {

using KernelFunction = void (*)(std::uint64_t input, std::uint64_t output, std::uint64_t residual,
                                std::uint64_t partials, std::uint64_t counters, std::int32_t batch);
// Of kernels with activity maps.
using ActivityKernelFunction = void (*)(std::uint64_t input, std::uint64_t output, std::uint64_t residual,
                                        std::uint64_t partials, std::uint64_t counters, std::int32_t batch,
                                        std::uint64_t input_activity, std::uint64_t output_activity);

// Of operators beside the convolutions.
using OperatorFunction = void (*)(std::uint64_t input, std::uint64_t output, std::uint64_t second,
                                  std::uint64_t weights, std::int32_t batch);

// What all blocks of a launch share.
struct Launch {
  KernelFunction kernel = nullptr;
  ActivityKernelFunction activity_kernel = nullptr;  // instead of the first
  OperatorFunction operator_kernel = nullptr;        // instead of both
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
  // Runs it, on the calling CPU thread, to its end, to a fault, until all its threads wait at a cluster barrier, or
  // until those that do not wait at a barrier all wait at gates.
  void advance();
  // Whether the last advance() has moved a thread, and whether it ended with threads at gates.
  bool progressed() const { return progressed_; }
  bool stalled() const { return stalled_; }
  // The fault of a stalled block for whose gates nobody will do anything.
  std::string deadlock() const;
  // The other blocks of the cluster have come there too.
  void pass_cluster_barrier();
  // All threads: the blocks of the cluster have met.
  void learn_of_cluster(const Knowledge& knowledge);
  bool ended() const { return all_ended_; }
  // Its threads have passed a barrier.
  bool met() const { return accessor_.interval > 0; }
  // The first fault with its block and thread; then the rest of the block was not run.
  const std::optional<std::string>& fault() const { return fault_; }

  // ---- for the primitives; the running thread is the one that calls
  static Block& current() { return *current_; }
  std::uint32_t thread() const { return static_cast<std::uint32_t>(thread_); }
  std::uint32_t x() const { return accessor_.block % launch_->blocks_x; }
  std::uint32_t y() const { return accessor_.block / launch_->blocks_x; }
  std::uint32_t grid_x() const { return launch_->blocks_x; }
  std::uint32_t rank() const { return rank_; }  // in its cluster
  SharedMemory& shared() { return shared_; }
  LaunchMemory& memory() { return *launch_->memory; }
  Accessor accessor() const { return {accessor_.block, thread_, accessor_.interval}; }

  void await_launch();
  // The fault of an access to memory that other kernels write, by a thread that has not awaited the launch.
  std::optional<std::string> check_awaited(const char* access) const;
  void barrier();
  void cluster_barrier();
  std::optional<std::string> cluster_load(std::uint32_t address, std::uint32_t rank, float& value);
  std::uint32_t broadcast(std::uint32_t value);
  float shuffle_xor(float value, std::uint32_t distance);
  // Until the phase is complete; the fault when the wait is one that must not be. `blocks`: that is what it counts.
  std::optional<std::string> gate_wait(std::uint32_t gate, std::uint32_t phase, bool blocks);
  std::optional<std::string> gate_arrive(std::uint32_t gate, std::uint32_t rank);
  std::optional<std::string> bulk_copy_all(std::uint32_t address, std::span<const float> values, std::uint32_t gate,
                                           std::uint32_t ranks);
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
  enum class State { running, at_gate, at_barrier, at_broadcast, at_shuffle, at_cluster_barrier, ended };
  struct Thread {
    State state = State::running;
    std::uint32_t broadcast_value = 0;
    float shuffled = 0;          // what it passed to the shuffle, then what it receives
    std::uint32_t distance = 0;  // of the shuffle
    std::uint32_t gate = 0;      // waited for; of State::at_gate
    bool awaited = false;        // its launch
    bool moved = false;          // has passed a wait since it was last resumed
    // Barrier intervals, counted from 1; 0: never.
    std::uint32_t stored = 0;        // the last store of a partial sum
    std::uint32_t covered = 0;       // the first fence after it
    std::uint32_t fenced = 0;        // the last fence
    std::uint64_t warp_actions = 0;  // in their order, hashed
  };

  static const char* name(State state);
  static void thread_entry();
  void meet(State state);
  void run_interval(bool ascending);
  Knowledge& known() { return known_[static_cast<std::size_t>(thread_)]; }
  void share_knowledge();
  void finish_interval();
  void finish_shuffle();
  void end_block();
  std::optional<std::string> diverged_warp() const;
  std::string subject(int thread) const;

  static thread_local Block* current_;

  FiberPool fibers_;
  SharedMemory shared_;
  std::vector<Thread> threads_;
  const Launch* launch_ = nullptr;
  Cluster* cluster_ = nullptr;
  std::uint32_t rank_ = 0;
  Accessor accessor_;
  int thread_ = 0;
  bool ascending_ = true;  // the order of the threads in the next interval
  bool all_ended_ = false;
  bool at_cluster_barrier_ = false;  // all threads
  bool progressed_ = false, stalled_ = false;
  std::vector<Knowledge> known_;  // of each thread
  bool learned_ = false;          // a thread has, since the last barrier
  bool arrived_ = false;          // has counted its arrival
  std::uint32_t broadcast_value_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace burin
