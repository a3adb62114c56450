#include "compiler/host/gates.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {

void Gates::begin_block() {
  const bool any = std::any_of(gates_.begin(), gates_.end(), [](const Gate& gate) { return gate.used; });
  if (!any) return;
  gates_.fill(Gate{});
  std::fill(passed_.begin(), passed_.end(), 0);
  std::fill(releases_.begin(), releases_.end(), 0);
  std::fill(known_.begin(), known_.end(), WarpTime{});
}

std::optional<std::string> Gates::unusable(const char* use, std::uint32_t gate, std::uint32_t now) const {
  if (gate >= kGates) return fmt::format("{} gate {}; gates are numbered from 0 to {}", use, gate, kGates - 1);
  if (!gates_[gate].used) return fmt::format("{} gate {}, which has not been initialised", use, gate);
  if (gates_[gate].initialised == now) {
    return fmt::format("{} gate {} without a barrier since it was initialised", use, gate);
  }
  return std::nullopt;
}

std::optional<std::string> Gates::too_early(const char* use, std::uint32_t gate, int thread, std::uint32_t now) const {
  const Gate& state = gates_[gate];
  if (passed(gate, thread) >= state.complete || state.completed < now || knows_waiters(thread, gate)) {
    return std::nullopt;
  }
  return fmt::format("{} gate {} without having waited for phase {} (number {}), nor passed a barrier since one did",
                     use, gate, (state.complete - 1) % 2, state.complete - 1);
}

std::optional<std::string> Gates::init(std::uint32_t gate, int thread, std::uint32_t now, std::uint32_t warps,
                                       bool bytes_too) {
  if (gate >= kGates) return fmt::format("initialises gate {}; gates are numbered from 0 to {}", gate, kGates - 1);
  Gate& state = gates_[gate];
  if (state.used) return fmt::format("initialises gate {} a second time", gate);
  state.used = true;
  state.initialised = now;
  state.initialiser = thread;
  state.releasing = warps;
  state.counts_bytes = warps == 0 || bytes_too;
  return std::nullopt;
}

void Gates::arrive(int thread) {
  for (Gate& gate : gates_) gate.shown |= gate.used && gate.initialiser == thread;
}

std::optional<std::string> Gates::receive(std::uint32_t gate, std::uint32_t bytes) {
  if (gate >= kGates) return fmt::format("at gate {}; gates are numbered from 0 to {}", gate, kGates - 1);
  Gate& state = gates_[gate];
  if (!state.shown) {
    return fmt::format("at gate {}, which {}", gate,
                       state.used ? "was initialised after its thread had arrived" : "has not been initialised");
  }
  if (state.releasing != 0) return fmt::format("at gate {}, which warps release", gate);
  if (state.complete > 0) return fmt::format("at gate {}, whose phase 0 is complete", gate);
  const std::uint32_t limit = state.announced ? state.expected : kMaxGateBytes;
  if (bytes > limit - state.started) {
    return fmt::format("of {} bytes at gate {}, of whose {} bytes {} have been started", bytes, gate, limit,
                       state.started);
  }
  state.started += bytes;
  state.starter = state.announced ? state.announcer : state.initialiser;
  return std::nullopt;
}

std::optional<std::string> Gates::release(std::uint32_t gate, int thread, bool arrives, std::uint32_t now) {
  constexpr const char* kUse = "releases";
  if (auto fault = unusable(kUse, gate, now)) return fault;
  Gate& state = gates_[gate];
  if (state.releasing == 0) return fmt::format("releases gate {}, which bytes open", gate);
  const std::uint32_t count = ++releases_[static_cast<std::size_t>(thread)];
  if (!arrives) return std::nullopt;
  if (state.arrived == state.releasing) {
    return fmt::format("releases gate {} when the {} warps that open it have done so and nobody has waited for it",
                       gate, state.releasing);
  }
  state.arriving = {state.arrived == 0 ? count : std::min(state.arriving.count, count),
                    (state.arrived == 0 ? 0 : state.arriving.warps) | warp_bit(thread)};
  ++state.arrived;
  return std::nullopt;
}

std::optional<std::string> Gates::expect(std::uint32_t gate, std::uint32_t bytes, int thread, std::uint32_t now) {
  constexpr const char* kUse = "announces bytes at";
  if (auto fault = unusable(kUse, gate, now)) return fault;
  Gate& state = gates_[gate];
  if (!state.counts_bytes) return fmt::format("announces bytes at gate {}, which warps release", gate);
  if (state.announced) {
    return fmt::format(
        "announces bytes at gate {} while nobody has waited for phase {} (number {}), which thread {} "
        "announced",
        gate, state.complete % 2, state.complete, state.announcer);
  }
  if (auto fault = too_early(kUse, gate, thread, now)) return fault;
  const bool any_waited = state.waited == now && state.waiter != thread && state.waiter != kNobody;
  if (any_waited && !knows_waiters(thread, gate)) {
    const std::string who =
        state.waiter == kSeveral ? "several threads wait" : fmt::format("thread {} waits", state.waiter);
    return fmt::format(
        "race on gate {}: begins phase {} (number {}) while {} for the phase before, without a barrier in between",
        gate, state.complete % 2, state.complete, who);
  }
  if (bytes > kMaxGateBytes)
    return fmt::format("announces {} bytes at gate {}; at most {}", bytes, gate, kMaxGateBytes);
  if (state.started > bytes) {
    return fmt::format("announces {} bytes at gate {}, at which copies of {} have been started", bytes, gate,
                       state.started);
  }
  state.announced = true;
  state.expected = bytes;
  state.announcer = thread;
  return std::nullopt;
}

std::optional<std::string> Gates::start(std::uint32_t gate, std::uint32_t bytes, int thread, std::uint32_t now) {
  constexpr const char* kUse = "starts a copy at";
  if (auto fault = unusable(kUse, gate, now)) return fault;
  if (auto fault = too_early(kUse, gate, thread, now)) return fault;
  Gate& state = gates_[gate];
  const std::uint32_t limit = state.announced ? state.expected : kMaxGateBytes;
  if (bytes > limit - state.started) {
    return fmt::format("starts a copy of {} bytes at gate {}, of whose {} bytes {} have been started", bytes, gate,
                       limit, state.started);
  }
  state.started += bytes;
  state.starter = thread;
  return std::nullopt;
}

std::optional<std::string> Gates::wait(std::uint32_t gate, std::uint32_t phase, int thread, std::uint32_t now,
                                       bool& open) {
  open = false;
  if (auto fault = unusable("waits for", gate, now)) return fault;
  if (phase > 1) return fmt::format("waits for phase {} of gate {}; a phase is 0 or 1", phase, gate);
  Gate& state = gates_[gate];
  if (phase == state.complete % 2) {
    const bool is_filled = !state.counts_bytes || (state.announced && state.started == state.expected);
    if (!is_filled || state.arrived != state.releasing) return std::nullopt;
    if (state.releasing != 0) {
      state.released = state.arriving;
      state.arrived = 0;
    }
    ++state.complete;
    state.completed = now;
    state.announced = false;
    state.expected = state.started = 0;
  } else if (state.complete == 0) {
    return fmt::format("waits for phase 1 of gate {}, whose phase 0 has never been complete", gate);
  } else if (state.announced) {
    return fmt::format(
        "waits for phase {} of gate {} when thread {} has already announced the next one: if that is "
        "complete first, the wait never ends",
        phase, gate, state.announcer);
  }
  pass(gate, thread, now);
  open = true;
  return std::nullopt;
}

void Gates::pass(std::uint32_t gate, int thread, std::uint32_t now) {
  Gate& state = gates_[gate];
  passed_[place(gate, thread)] = state.complete;
  if (state.passed_phases != state.complete) state.waiters = {};
  state.passed_phases = state.complete;
  state.waiters = {std::max(state.waiters.count, releases(thread)), state.waiters.warps | warp_bit(thread)};
  if (state.releasing != 0) known_[static_cast<std::size_t>(thread)] = state.released;
  const bool first = state.waited != now || state.waiter == kNobody;
  state.waiter = first || state.waiter == thread ? thread : kSeveral;
  state.waited = now;
}

std::string Gates::obstacle(std::uint32_t gate) const {
  const Gate& state = gates_[gate];
  if (state.arrived != state.releasing) {
    return fmt::format("of the {} warps that open it {} have released it", state.releasing, state.arrived);
  }
  if (!state.announced) return "no thread announces its bytes";
  return fmt::format("of the {} bytes that thread {} announced, {} have been started", state.expected, state.announcer,
                     state.started);
}

std::optional<std::string> Gates::unfinished(int& thread) const {
  for (std::uint32_t gate = 0; gate < kGates; ++gate) {
    const Gate& state = gates_[gate];
    if (!state.counts_bytes || (!state.announced && state.started == 0)) continue;
    thread = state.started != 0 ? state.starter : state.announcer;
    return fmt::format("the block ended although nobody has waited for phase {} (number {}) of gate {}, {}",
                       state.complete % 2, state.complete, gate,
                       state.started != 0 ? fmt::format("at which copies of {} bytes arrive", state.started)
                                          : fmt::format("which was announced with {} bytes", state.expected));
  }
  return std::nullopt;
}

}  // namespace burin
