// The gates of one block: what has been announced at each, what has been started, and who has waited for what.
//
// A gate opens in phases, counted here from 0 on; a kernel names only their parity. A phase is complete for the host
// when a thread waits for it, its bytes are announced and as many have been started. On the GPU it may be complete
// earlier, or the wait may be the one that is late: so what depends on it is a fault.
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
inline constexpr std::uint32_t kGates = 8;
inline constexpr std::uint32_t kFirstGateByte = 16, kGateBytes = 8;
inline constexpr std::uint32_t kMaxGateBytes = (1U << 20) - 1;  // of one phase: an mbarrier counts no further

class Gates {
 public:
  explicit Gates(int threads) : passed_(static_cast<std::size_t>(threads) * kGates) {}

  void begin_block();

  std::optional<std::string> init(std::uint32_t gate, std::uint32_t now);
  // Announces the bytes of the phase that begins.
  std::optional<std::string> expect(std::uint32_t gate, std::uint32_t bytes, int thread, std::uint32_t now);
  // Starts a copy that counts at the gate.
  std::optional<std::string> start(std::uint32_t gate, std::uint32_t bytes, int thread, std::uint32_t now);
  // `open`: the phase is complete and the thread may go on; else it must ask again later.
  std::optional<std::string> wait(std::uint32_t gate, std::uint32_t phase, int thread, std::uint32_t now, bool& open);

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
  static constexpr int kNobody = -1, kSeveral = -2;

  struct Gate {
    bool used = false;  // initialised
    bool announced = false;
    std::uint32_t initialised = 0;   // the interval
    std::uint32_t complete = 0;      // phases; so the number of the present one
    std::uint32_t completed = 0;     // the interval of the last of them
    std::uint32_t expected = 0;      // bytes of the present phase
    std::uint32_t started = 0;       // bytes of the present phase
    int announcer = 0, starter = 0;  // of the present phase
    std::uint32_t waited = 0;        // the interval in which somebody last passed a wait
    int waiter = kNobody;            // in that interval
  };

  static std::size_t place(std::uint32_t gate, int thread) { return static_cast<std::size_t>(thread) * kGates + gate; }
  std::optional<std::string> unusable(const char* use, std::uint32_t gate, std::uint32_t now) const;
  // A thread that has not waited for the last phase may be so early that the GPU takes its bytes for that phase's.
  std::optional<std::string> too_early(const char* use, std::uint32_t gate, int thread, std::uint32_t now) const;
  void pass(std::uint32_t gate, int thread, std::uint32_t now);

  std::array<Gate, kGates> gates_;
  std::vector<std::uint32_t> passed_;
};

}  // namespace burin
