// The gates of one block: what has been announced at each, what has been started, and who has waited for what.
//
// A gate opens in phases, counted here from 0 on; a kernel names only their parity. A phase is complete for the host
// when a thread waits for it, its bytes are announced and as many have been started. On the GPU it may be complete
// earlier, or the wait may be the one that is late: so what depends on it is a fault.
//
// Some gates are opened by warps that release them, in place of bytes, or by both together. Who waits for such a gate
// knows of what the warps did before: of how often each thread has released gates by then. What happened while a thread
// had released fewer is over.
//
// `now` is the barrier interval (shared_memory.h). Each function returns std::nullopt, or the fault as a sentence
// without its subject.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burin {

// These are as in templates/device.h and device_nvptx.cu.
inline constexpr std::uint32_t kGates = 14;
inline constexpr std::uint32_t kFirstGateByte = 16, kGateBytes = 8;
inline constexpr std::uint32_t kMaxGateBytes = (1U << 20) - 1;  // of one phase: an mbarrier counts no further

// Some warps, a bit for each, at a time that is told by how often they have released gates.
struct WarpTime {
  std::uint32_t count = 0, warps = 0;
};

class Gates {
 public:
  explicit Gates(int threads)
      : passed_(static_cast<std::size_t>(threads) * kGates),
        releases_(static_cast<std::size_t>(threads)),
        known_(static_cast<std::size_t>(threads)) {}

  void begin_block();

  // `warps`: whose releases open it; 0 where bytes do. `bytes_too`: both do.
  std::optional<std::string> init(std::uint32_t gate, int thread, std::uint32_t now, std::uint32_t warps = 0,
                                  bool bytes_too = false);
  // Announces the bytes of the phase that begins.
  std::optional<std::string> expect(std::uint32_t gate, std::uint32_t bytes, int thread, std::uint32_t now);
  // The thread arrives at a meeting of its cluster: others may send to the gates that it has initialised.
  void arrive(int thread);
  // Another block of the cluster starts a copy that counts at the gate.
  std::optional<std::string> receive(std::uint32_t gate, std::uint32_t bytes);
  // Starts a copy that counts at the gate.
  std::optional<std::string> start(std::uint32_t gate, std::uint32_t bytes, int thread, std::uint32_t now);
  // `open`: the phase is complete and the thread may go on; else it must ask again later.
  std::optional<std::string> wait(std::uint32_t gate, std::uint32_t phase, int thread, std::uint32_t now, bool& open);

  // The thread has done with what it read; `arrives`: it is the one that arrives for its warp.
  std::optional<std::string> release(std::uint32_t gate, int thread, bool arrives, std::uint32_t now);
  // How often the thread has released gates.
  std::uint32_t releases(int thread) const { return releases_[static_cast<std::size_t>(thread)]; }
  // Whether `thread` has waited for releases of all of `warps` (a bit for each) after they had released `count` gates.
  bool knows(int thread, const WarpTime& time) const {
    const WarpTime& known = known_[static_cast<std::size_t>(thread)];
    return known.count > time.count && (time.warps & ~known.warps) == 0;
  }
  // Whether it knows that of all threads that have passed a wait for the gate's last complete phase.
  bool knows_waiters(int thread, std::uint32_t gate) const { return knows(thread, gates_[gate].waiters); }
  static std::uint32_t warp_bit(int thread) { return std::uint32_t{1} << (thread / kWarpThreads % 32); }

  bool used(std::uint32_t gate) const { return gates_[gate].used; }
  // The phase at which copies that are started now arrive.
  std::uint32_t phase(std::uint32_t gate) const { return gates_[gate].complete; }
  // The phases, from the first on, that the thread knows to be complete because it has waited.
  std::uint32_t passed(std::uint32_t gate, int thread) const { return passed_[place(gate, thread)]; }

  // Why nobody can pass a wait for the gate's present phase.
  std::string obstacle(std::uint32_t gate) const;
  // After the last thread: a phase that was announced or has copies, and that nobody has waited for; and whose it is.
  std::optional<std::string> unfinished(int& thread) const;

 private:
  static constexpr int kNobody = -1, kSeveral = -2, kWarpThreads = 32;

  struct Gate {
    bool used = false;  // initialised
    bool announced = false;
    bool shown = false;  // to the other blocks of the cluster
    int initialiser = 0;
    std::uint32_t initialised = 0;    // the interval
    std::uint32_t complete = 0;       // phases; so the number of the present one
    std::uint32_t completed = 0;      // the interval of the last of them
    std::uint32_t expected = 0;       // bytes of the present phase
    std::uint32_t started = 0;        // bytes of the present phase
    int announcer = 0, starter = 0;   // of the present phase
    std::uint32_t waited = 0;         // the interval in which somebody last passed a wait
    int waiter = kNobody;             // in that interval
    WarpTime waiters;                 // who has passed a wait for the last complete phase
    std::uint32_t passed_phases = 0;  // `complete` when they did
    std::uint32_t releasing = 0;      // warps whose releases open it
    bool counts_bytes = true;
    std::uint32_t arrived = 0;    // of the present phase
    WarpTime arriving, released;  // the fewest releases of those of the present phase, and of the last complete one
  };

  static std::size_t place(std::uint32_t gate, int thread) { return static_cast<std::size_t>(thread) * kGates + gate; }
  std::optional<std::string> unusable(const char* use, std::uint32_t gate, std::uint32_t now) const;
  // A thread that has not waited for the last phase may be so early that the GPU takes its bytes for that phase's.
  std::optional<std::string> too_early(const char* use, std::uint32_t gate, int thread, std::uint32_t now) const;
  void pass(std::uint32_t gate, int thread, std::uint32_t now);

  std::array<Gate, kGates> gates_;
  std::vector<std::uint32_t> passed_;
  std::vector<std::uint32_t> releases_;  // of each thread
  std::vector<WarpTime> known_;          // to each thread
};

}  // namespace burin
