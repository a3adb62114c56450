#include "compiler/host/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace burin {
namespace {

// Intervals of one block that the counter must still have room for when the block begins.
constexpr std::uint32_t kIntervalHeadroom = std::uint32_t{1} << 31;

// The word that holds byte `byte` of a gate.
constexpr std::uint32_t gate_word(std::uint32_t gate, std::uint32_t byte) {
  return (kFirstGateByte + gate * kGateBytes + byte) / sizeof(float);
}

}  // namespace

SharedMemory::SharedMemory(int bytes, int threads)
    : words_(static_cast<std::size_t>(bytes) / kWordBytes),
      flights_(words_.size()),
      copiers_(static_cast<std::size_t>(threads) + kGates),
      warp_barriers_(static_cast<std::size_t>(threads)),
      offers_(static_cast<std::size_t>(threads)),
      gates_(threads) {}

void SharedMemory::begin_block() {
  ++changes_;
  for (Copier& copier : copiers_) {
    for (std::uint32_t index = copier.first; index != kNone; index = flights_[index].next) words_[index] = Word{};
    copier = Copier{};
  }
  for (std::uint32_t gate = 0; gate < kGates; ++gate) {
    if (!gates_.used(gate)) continue;
    for (std::uint32_t byte = 0; byte < kGateBytes; byte += kWordBytes) words_[gate_word(gate, byte)] = Word{};
  }
  gates_.begin_block();
  std::fill(warp_barriers_.begin(), warp_barriers_.end(), 0U);
  for (Offers& offers : offers_) {
    offers.interval = offers.before = 0;
    offers.releases.clear();
  }
  if (interval_ >= kIntervalHeadroom) {
    std::fill(words_.begin(), words_.end(), Word{});
    std::fill(loads_by_others_.begin(), loads_by_others_.end(), 0U);
    last_loaded_by_others_ = 0;
    interval_ = 0;
  }
  first_interval_ = cluster_interval_ = ++interval_;
  arriving_ = false;
  arrival_ = 0;
}

std::optional<std::string> SharedMemory::store(std::uint32_t address, int thread, float value) {
  if (auto fault = check_write("store to", address, thread)) return fault;
  Word& word = words_[address / kWordBytes];
  ++changes_;
  word.value = value;
  word.written = interval_;
  word.written_after = warp_barriers(thread);
  word.stored_after = offers_[static_cast<std::size_t>(thread)].count();
  word.releases_before = gates_.releases(thread);
  word.writer = static_cast<std::uint16_t>(thread);
  return std::nullopt;
}

std::string SharedMemory::not_offered(std::uint32_t address) const {
  return fmt::format(
      "multiplies shared memory at byte {} with a warpgroup, which {} has stored without offering it to products",
      address, issuer(words_[address / kWordBytes].writer));
}

std::optional<std::string> SharedMemory::set_bits(std::uint32_t address, int thread, std::uint32_t bits) {
  if (auto fault = check_place(address)) return fault;
  Word& word = words_[address / kWordBytes];
  const bool by_all = word.written == interval_ && word.writer == kBitSetters;
  if (word.written < first_interval_) {
    return fmt::format("sets bits of shared memory at byte {}, which no thread of the block has written", address);
  }
  if (!by_all) {
    if (auto fault = check_write("set bits of", address, thread)) return fault;
    if (word.written == interval_) {
      return fmt::format(
          "race on shared memory at byte {}: set bits of it by several threads after a store by thread {}, without a "
          "barrier in between",
          address, word.writer);
    }
  } else if (word.read == interval_) {
    return fmt::format("race on shared memory at byte {}: set bits of it after a load, without a barrier in between",
                       address);
  }
  ++changes_;
  word.value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(word.value) | bits);
  word.written = interval_;
  word.writer = kBitSetters;
  return std::nullopt;
}

std::optional<std::string> SharedMemory::store_half(std::uint32_t address, int thread, std::uint16_t half) {
  constexpr std::uint32_t kHalfBytes = 2, kHalfBits = 16, kHalfMask = 0xFFFF;
  const std::uint32_t number = address / kHalfBytes % 2, of_word = address / kWordBytes * kWordBytes;
  if (address % kHalfBytes != 0) return fmt::format("misaligned store of a half to shared memory at byte {}", address);
  if (auto fault = check_place(of_word)) return fault;
  Word& word = words_[address / kWordBytes];
  const bool by_halves = word.written == interval_ && stored_by_halves(word);
  if (word.written < first_interval_) {
    return fmt::format(
        "stores a half to shared memory at byte {}, in a word that no thread of the block has written as a whole",
        address);
  }
  if (!by_halves) {
    if (auto fault = check_write("store of a half to", of_word, thread)) return fault;
    if (word.written == interval_) {
      return fmt::format(
          "race on shared memory at byte {}: a half stored after a store of the word by thread {}, without a barrier "
          "in between",
          address, word.writer);
    }
    word.writer = kHalfStorers;
  } else if (word.read == interval_) {
    return fmt::format("race on shared memory at byte {}: a half stored after a load, without a barrier in between",
                       address);
  }
  const auto bit = static_cast<std::uint16_t>(1U << number);
  if (((word.writer - kHalfStorers) & bit) != 0) {
    return fmt::format("race on shared memory at byte {}: a half stored twice without a barrier in between", address);
  }
  const auto bits = std::bit_cast<std::uint32_t>(word.value);
  const std::uint32_t kept = number == 0 ? bits & ~kHalfMask : bits & kHalfMask;
  ++changes_;
  word.value = std::bit_cast<float>(kept | std::uint32_t{half} << (number * kHalfBits));
  word.written = interval_;
  word.writer = static_cast<std::uint16_t>(word.writer + bit);
  return std::nullopt;
}

std::optional<std::string> SharedMemory::load_from_cluster(std::uint32_t address, float& value) {
  if (auto fault = check_place(address)) return fault;
  const std::uint32_t index = address / kWordBytes;
  const Word& word = words_[index];
  const bool in_flight = word.written == kInFlight;
  if (!in_flight && word.written < first_interval_) {
    return fmt::format("load from shared memory at byte {}, which no thread of the block has written", address);
  }
  if (in_flight || word.written >= cluster_interval_) {
    return fmt::format(
        "race on shared memory at byte {}: load of what {} of that block {}, without a cluster barrier in between",
        address, word.writer == kGatesPlace ? std::string("a gate") : issuer(word.writer),
        in_flight ? "is copying" : "wrote");
  }
  mark_loaded_by_others(index);
  value = word.value;
  return std::nullopt;
}

void SharedMemory::mark_loaded_by_others(std::uint32_t index) {
  if (loads_by_others_.empty()) loads_by_others_.resize(words_.size());
  loads_by_others_[index] = last_loaded_by_others_ = accesses_;
}

void SharedMemory::arrive(int thread) {
  gates_.arrive(thread);
  if (!arriving_) arrival_ = interval_;
  arriving_ = true;
}

std::optional<std::string> SharedMemory::send(std::uint32_t address, int thread, float& value) {
  if (auto fault = load(address, thread, value)) return fault;
  const std::uint32_t index = address / kWordBytes;
  const Word& word = words_[index];
  if (word.writer < threads()) {
    const Offers& offers = offers_[word.writer];
    // Another thread's offers of this interval may come later on the GPU.
    const bool all_count = word.writer == thread || offers.interval != interval_;
    if ((all_count ? offers.count() : offers.before) <= word.stored_after) {
      return fmt::format("sends shared memory at byte {}, which {} has stored without offering it before a barrier",
                         address, issuer(word.writer));
    }
  }
  mark_loaded_by_others(index);
  return std::nullopt;
}

std::optional<std::string> SharedMemory::receive(std::uint32_t address, std::span<const float> values,
                                                 std::uint32_t gate) {
  if (auto fault = check_run("copy", address, values.size())) return fault;
  if (auto fault = gates_.receive(gate, static_cast<std::uint32_t>(values.size_bytes()))) return "copy " + *fault;
  std::uint32_t index = address / kWordBytes;
  for (const float value : values) {
    if (auto fault = check_received(index)) return fault;
    take_off(index++, threads() + gate, gates_.phase(gate), value);
  }
  return std::nullopt;
}

// What the block's threads did before they arrived is over.
std::optional<std::string> SharedMemory::check_received(std::uint32_t index) const {
  const Word& word = words_[index];
  const bool in_flight = word.written == kInFlight;
  if (in_flight || word.written >= arrival_ || word.read >= arrival_) {
    const bool is_stored = in_flight || word.written >= arrival_;
    return fmt::format("race on shared memory at byte {}: copy into it, which {}", index * kWordBytes,
                       !is_stored  ? "is loaded in that block after it has arrived"
                       : in_flight ? "holds a gate or to which a copy is in flight"
                                   : "is stored to in that block after it has arrived");
  }
  if (loaded_by_others(index)) {
    return fmt::format("race on shared memory at byte {}: copy into it, which others load", index * kWordBytes);
  }
  return stored_by_thread("copy into", index);
}

std::optional<std::string> SharedMemory::stored_by_thread(const char* access, std::uint32_t index) const {
  const Word& word = words_[index];
  const bool by_thread = word.writer < threads() || word.writer == kBitSetters || stored_by_halves(word);
  if (word.written < first_interval_ || !by_thread) return std::nullopt;
  return fmt::format(
      "{} shared memory at byte {}, which {} has written itself: words that bulk copies fill cannot be written by a "
      "thread before",
      access, index * kWordBytes, issuer(word.writer));
}

std::optional<std::string> SharedMemory::copy(std::uint32_t address, int thread, float value) {
  if (auto fault = check_write("copy into", address, thread)) return fault;
  const auto copier = static_cast<std::size_t>(thread);
  take_off(address / kWordBytes, copier, copiers_[copier].batch, value);
  return std::nullopt;
}

void SharedMemory::take_off(std::uint32_t index, std::size_t number, std::uint32_t batch, float value) {
  Word& word = words_[index];
  ++changes_;
  word.value = value;
  word.written = kInFlight;
  word.writer = static_cast<std::uint16_t>(number);
  Copier& copier = copiers_[number];
  flights_[index] = {kNone, batch};
  if (copier.first == kNone) {
    copier.first = index;
  } else {
    flights_[copier.last].next = index;
  }
  copier.last = index;
}

void SharedMemory::land(std::size_t number, std::uint32_t finished) {
  Copier& copier = copiers_[number];
  while (copier.first != kNone && flights_[copier.first].batch < finished) {
    ++changes_;
    Word& word = words_[copier.first];
    word.written = interval_;
    if (number < threads()) {
      const int thread = static_cast<int>(number);
      word.written_after = warp_barriers(thread);
      word.stored_after = offers_[number].count();
      word.releases_before = gates_.releases(thread);
    }
    copier.first = flights_[copier.first].next;
  }
}

void SharedMemory::wait(int thread, std::uint32_t pending) {
  const auto copier = static_cast<std::size_t>(thread);
  if (copiers_[copier].batch > pending) land(copier, copiers_[copier].batch - pending);
}

std::optional<std::string> SharedMemory::gate_init(std::uint32_t gate, int thread, std::uint32_t warps,
                                                   bool bytes_too) {
  if (gate < kGates) {
    for (std::uint32_t byte = 0; byte < kGateBytes; byte += kWordBytes) {
      if (auto fault = check_write("place a gate in", gate_word(gate, byte) * kWordBytes, thread)) return fault;
    }
  }
  if (auto fault = gates_.init(gate, thread, interval_, warps, bytes_too)) return fault;
  ++changes_;
  for (std::uint32_t byte = 0; byte < kGateBytes; byte += kWordBytes) {
    words_[gate_word(gate, byte)].written = kInFlight;
    words_[gate_word(gate, byte)].writer = kGatesPlace;
  }
  return std::nullopt;
}

std::optional<std::string> SharedMemory::gate_wait(std::uint32_t gate, std::uint32_t phase, int thread, bool& open) {
  if (auto fault = gates_.wait(gate, phase, thread, interval_, open)) return fault;
  if (open) land(threads() + gate, gates_.phase(gate));
  return std::nullopt;
}

std::optional<std::string> SharedMemory::check_run(const char* access, std::uint32_t address, std::size_t words) const {
  if (address % kBulkAlignment != 0) {
    return fmt::format("misaligned {} into shared memory at byte {}, which is not a multiple of {}", access, address,
                       kBulkAlignment);
  }
  const std::uint32_t first = address / kWordBytes;
  if (first <= words_.size() && words <= words_.size() - first) return std::nullopt;
  return fmt::format(
      "{} of {} bytes into shared memory at byte {}, which does not fit the {} bytes of the "
      "block",
      access, words * kWordBytes, address, words_.size() * kWordBytes);
}

std::optional<std::string> SharedMemory::bulk_copy(std::uint32_t address, std::span<const float> values,
                                                   std::uint32_t gate, int thread) {
  if (auto fault = check_run("bulk copy", address, values.size())) return fault;
  if (auto fault = gates_.start(gate, static_cast<std::uint32_t>(values.size_bytes()), thread, interval_)) return fault;
  std::uint32_t index = address / kWordBytes;
  for (const float value : values) {
    if (auto fault = check_bulk_target(index, thread)) return fault;
    take_off(index++, threads() + gate, gates_.phase(gate), value);
  }
  return std::nullopt;
}

// Whether what was done with the word in this interval was over when a gate was released for which the thread has
// waited: what a bulk copy brought has been waited for, and whoever read it has released the gate since.
bool SharedMemory::was_released(const Word& word, int thread) const {
  if (word.written == kInFlight) return false;
  if (word.read == interval_ && !gates_.knows(thread, word.readers)) return false;
  if (word.written != interval_) return true;
  const bool by_gate = word.writer >= threads() && word.writer < copiers_.size();
  return by_gate && gates_.knows_waiters(thread, static_cast<std::uint32_t>(word.writer - threads()));
}

// Stricter than for a thread's own accesses, with which a bulk copy has no order until a barrier.
std::optional<std::string> SharedMemory::check_bulk_target(std::uint32_t index, int thread) const {
  const Word& word = words_[index];
  const std::uint32_t address = index * kWordBytes;
  const bool used = word.written == kInFlight || word.written == interval_ || word.read == interval_;
  if ((used && !was_released(word, thread)) || loaded_by_others(index)) {
    if (auto fault = check_write("bulk copy into", address, thread)) return fault;
    return fmt::format(
        "race on shared memory at byte {}: bulk copy into it by thread {} without a barrier since its last "
        "use, nor a gate that was released since then and waited for",
        address, thread);
  }
  return stored_by_thread("bulk copy into", index);
}

std::optional<std::string> SharedMemory::end_thread(int thread) const {
  const Copier& copier = copiers_[static_cast<std::size_t>(thread)];
  if (copier.first == kNone) return std::nullopt;
  return fmt::format("ended with a copy in flight, into shared memory at byte {}, {}", copier.first * kWordBytes,
                     flights_[copier.first].batch == copier.batch ? "which it never committed"
                                                                  : "which it committed but never waited for");
}

std::optional<std::string> SharedMemory::broadcast() {
  if (words_.empty()) return "broadcast without shared memory: it needs a word for the value";
  Word& word = words_.front();
  if (word.written == kInFlight) return "broadcast while a copy into its word, byte 0 of shared memory, is in flight";
  ++changes_;
  word.written = first_interval_ - 1;
  return std::nullopt;
}

std::optional<std::string> SharedMemory::outside(const char* access, std::uint32_t address) const {
  if (address % kWordBytes != 0) {
    return fmt::format("misaligned {} shared memory at byte {}, which is not a multiple of {}", access, address,
                       kWordBytes);
  }
  return fmt::format("{} shared memory at byte {}, outside the {} bytes of the block", access, address,
                     words_.size() * kWordBytes);
}

std::string SharedMemory::issuer(std::size_t copier) const {
  if (copier == kBitSetters) return "a thread that set bits";
  if (copier >= kHalfStorers && copier < kBitSetters) return "a thread that stored a half";
  return copier < threads() ? fmt::format("thread {}", copier)
                            : fmt::format("a bulk copy at gate {}", copier - threads());
}

std::optional<std::string> SharedMemory::unreadable(std::uint32_t address, int thread) const {
  const std::uint32_t index = address / kWordBytes;
  const Word& word = words_[index];
  if (word.written == kInFlight && word.writer == kGatesPlace) {
    return fmt::format("load from shared memory at byte {}, which holds a gate", address);
  }
  if (word.written == kInFlight && word.writer >= threads()) {
    return fmt::format(
        "load from shared memory at byte {} while a bulk copy into it is in flight: nobody has waited "
        "for phase {} of gate {}",
        address, flights_[index].batch % 2, word.writer - threads());
  }
  if (word.written == kInFlight) {
    const bool committed = flights_[index].batch < copiers_[word.writer].batch;
    return fmt::format(
        "load from shared memory at byte {} while a copy into it is in flight: thread {} issued it and has not {} it",
        address, word.writer, committed ? "waited for" : "committed");
  }
  if (word.written == interval_ && word.writer >= threads() && word.writer != kBitSetters && !stored_by_halves(word)) {
    return fmt::format(
        "race on shared memory at byte {}: load by thread {} of what a bulk copy brought, without "
        "having waited for phase {} of gate {}",
        address, thread, flights_[index].batch % 2, word.writer - threads());
  }
  if (word.written == interval_) {
    return fmt::format(
        "race on shared memory at byte {}: load by thread {} of what {} wrote, without a barrier in between", address,
        thread, issuer(word.writer));
  }
  return fmt::format("load from shared memory at byte {}, which no thread of the block has written", address);
}

std::optional<std::string> SharedMemory::check_write(const char* access, std::uint32_t address, int thread) const {
  const std::uint32_t index = address / kWordBytes;
  if (address % kWordBytes != 0 || index >= words_.size()) return outside(access, address);
  const Word& word = words_[index];
  if (word.written == kInFlight && word.writer == kGatesPlace) {
    return fmt::format("{} shared memory at byte {}, which holds a gate", access, address);
  }
  if (word.written == kInFlight) {
    return fmt::format("{} shared memory at byte {} while a copy into it, issued by {}, is in flight", access, address,
                       issuer(word.writer));
  }
  if (loaded_by_others(index)) {
    return fmt::format(
        "race on shared memory at byte {}: {} it by thread {} after a load by another block of the cluster, or a copy "
        "to "
        "it, without a cluster barrier or meeting in between",
        address, access, thread);
  }
  if (word.written == interval_ && !knows(index, thread)) {
    return fmt::format(
        "race on shared memory at byte {}: {} it by thread {} and written by {}, without a barrier in "
        "between",
        address, access, thread, issuer(word.writer));
  }
  const bool is_over = read_before_warp_barrier(word, thread) || gates_.knows(thread, word.readers);
  if (word.read == interval_ && word.reader != thread && !is_over) {
    const std::string reader =
        word.reader == kManyReaders ? std::string("several threads") : fmt::format("thread {}", word.reader);
    return fmt::format(
        "race on shared memory at byte {}: {} it by thread {} after a load by {}, without a barrier in "
        "between",
        address, access, thread, reader);
  }
  return std::nullopt;
}

}  // namespace burin
