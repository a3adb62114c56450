// The shared memory of one block, with what must be known of each word to find faults: who wrote it and when, who read
// it and when, and whether an asynchronous copy into it is still under way: one word by a thread, which waits for it,
// or a run of words by a bulk copy, whose arrival is waited for at a gate.
//
// "When" is the barrier interval: the number of barriers that all threads of the block have passed. Two accesses of one
// word by different threads in one interval are unordered on the GPU; unless both are reads, that is a race. Threads of
// one warp are also ordered by the barriers of their warp.
//
// Blocks of a cluster load from each other. Their accesses are ordered by cluster barriers alone: what a block has
// written since the last one cannot be loaded by others, and what others have loaded since then it cannot write.
//
// Each access returns std::nullopt, or the fault as a sentence without its subject.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/host/gates.h"

namespace burin {

class SharedMemory {
 public:
  SharedMemory(int bytes, int threads);

  // Forgets all contents, and copies that a block which ended with a fault left in flight.
  void begin_block();
  // All threads have met at a barrier.
  void begin_interval() { ++interval_; }
  // All threads of the cluster have.
  void begin_cluster_interval() { cluster_interval_ = ++interval_; }
  // The thread has met all others of its warp at a barrier of theirs.
  void pass_warp_barrier(int thread) { ++warp_barriers_[static_cast<std::size_t>(thread)]; }
  // What the thread has stored so far may be multiplied by warpgroups, which read past the order of threads.
  void offer(int thread) {
    Offers& offers = offers_[static_cast<std::size_t>(thread)];
    if (offers.interval != interval_) {
      offers.interval = interval_;
      offers.before = offers.count();
    }
    offers.releases.push_back(gates_.releases(thread));
  }
  // Whether a word that a thread has stored was offered since, before the release by which `reader` knows of it.
  std::optional<std::string> check_offered(std::uint32_t address, int reader) const {
    if (auto fault = check_place(address)) return fault;
    const Word& word = words_[address / kWordBytes];
    if (word.written < first_interval_ || word.written == kInFlight) return std::nullopt;  // which a load finds
    if (word.writer >= threads()) return std::nullopt;
    const Offers& offers = offers_[word.writer];
    if (offers.count() <= word.stored_after) return not_offered(address);
    const std::uint32_t warp = Gates::warp_bit(static_cast<int>(word.writer));
    if (word.written != interval_ || warp == Gates::warp_bit(reader)) return std::nullopt;
    if (gates_.knows(reader, {offers.releases[word.stored_after], warp})) return std::nullopt;
    return not_offered(address);
  }

  std::optional<std::string> load(std::uint32_t address, int thread, float& value) {
    const std::uint32_t index = address / kWordBytes;
    if (address % kWordBytes != 0 || index >= words_.size()) return outside("load from", address);
    Word& word = words_[index];
    if (!readable(index, thread)) return unreadable(address, thread);
    if (word.read != interval_) {
      word.read = interval_;
      word.reader = static_cast<std::uint16_t>(thread);
      word.readers = {};
      word.read_after = 0;
    } else if (word.reader != thread) {
      word.reader = kManyReaders;
    }
    word.readers = {std::max(word.readers.count, gates_.releases(thread)),
                    word.readers.warps | Gates::warp_bit(thread)};
    word.read_after = std::max(word.read_after, warp_barriers(thread));
    value = word.value;
    return std::nullopt;
  }
  // A thread has loaded the word for others of its warp as well, and they load it without a note of who reads it.
  void note_other_readers(std::uint32_t address) { words_[address / kWordBytes].reader = kManyReaders; }
  // False where load() would find a fault.
  bool load_as_well(std::uint32_t address, int thread, float& value) const {
    const std::uint32_t index = address / kWordBytes;
    if (address % kWordBytes != 0 || index >= words_.size() || !readable(index, thread)) return false;
    value = words_[index].value;
    return true;
  }

  // What a thread that finds words as they were when another one loaded them must have waited for to read them too:
  // begin with needs(), add() each word.
  struct Needs {
    std::uint64_t changes = 0;                   // of any word until then
    bool others = true;                          // whether another thread may read them at all
    std::array<std::uint32_t, kGates> phases{};  // of the gates
  };
  Needs needs() const { return {changes_, true, {}}; }
  void add(Needs& needs, std::uint32_t address) const {
    const std::uint32_t index = address / kWordBytes;
    const Word& word = words_[index];
    if (word.written != interval_) return;
    const std::size_t gate = word.writer - threads();
    needs.others &= word.writer >= threads() && gate < kGates;
    if (needs.others) needs.phases[gate] = std::max(needs.phases[gate], flights_[index].batch + 1);
  }
  bool meets(const Needs& needs, int thread) const {
    if (!needs.others || needs.changes != changes_) return false;
    for (std::uint32_t gate = 0; gate < kGates; ++gate) {
      if (gates_.passed(gate, thread) < needs.phases[gate]) return false;
    }
    return true;
  }

  // Whether there is a word to load at all.
  std::optional<std::string> check_place(std::uint32_t address) const {
    if (address % kWordBytes != 0 || address / kWordBytes >= words_.size()) return outside("load from", address);
    return std::nullopt;
  }
  std::optional<std::string> store(std::uint32_t address, int thread, float value);
  // Of two threads each may store one half of a word between two barriers, but no other access may happen there.
  std::optional<std::string> store_half(std::uint32_t address, int thread, std::uint16_t half);
  // Atomic: several threads may do it between two barriers, but no other access may happen there.
  std::optional<std::string> set_bits(std::uint32_t address, int thread, std::uint32_t bits);

  // The thread arrives at a meeting of its cluster.
  void arrive(int thread);
  // All threads of the cluster have met: what others have loaded, or were sent, has been waited for.
  void end_cluster_accesses() {
    last_loaded_by_others_ = 0;
    ++accesses_;
    arriving_ = false;
  }
  // A word that the thread sends to another block, which may not be stored to until they have met.
  std::optional<std::string> send(std::uint32_t address, int thread, float& value);
  // Another block sends: the words have no readable value until a thread has waited for the gate's first phase.
  std::optional<std::string> receive(std::uint32_t address, std::span<const float> values, std::uint32_t gate);

  // A thread of another block of the cluster loads.
  std::optional<std::string> load_from_cluster(std::uint32_t address, float& value);
  // Whether there was such a load since the threads of the cluster last met.
  bool loaded_by_others() const { return last_loaded_by_others_ == accesses_; }

  // Starts a copy: the word has no readable value until its thread has waited for it.
  std::optional<std::string> copy(std::uint32_t address, int thread, float value);
  void commit(int thread) { ++copiers_[static_cast<std::size_t>(thread)].batch; }
  // Until at most `pending` of the thread's committed batches are in flight.
  void wait(int thread, std::uint32_t pending);

  // ---- gates: see gates.h
  // The gate's place in shared memory is taken from now on.
  std::optional<std::string> gate_init(std::uint32_t gate, int thread, std::uint32_t warps = 0, bool bytes_too = false);
  std::optional<std::string> gate_expect(std::uint32_t gate, std::uint32_t bytes, int thread) {
    return gates_.expect(gate, bytes, thread, interval_);
  }
  std::optional<std::string> gate_wait(std::uint32_t gate, std::uint32_t phase, int thread, bool& open);
  std::optional<std::string> gate_release(std::uint32_t gate, int thread, bool arrives) {
    return gates_.release(gate, thread, arrives, interval_);
  }
  // The words have no readable value until a thread has waited for the gate's present phase.
  std::optional<std::string> bulk_copy(std::uint32_t address, std::span<const float> values, std::uint32_t gate,
                                       int thread);
  const Gates& gates() const { return gates_; }

  // A thread that ends must not leave copies in flight.
  std::optional<std::string> end_thread(int thread) const;

  // A broadcast passes its value through the first word.
  std::optional<std::string> broadcast();

 private:
  static constexpr std::uint32_t kWordBytes = 4;
  static constexpr std::uint32_t kInFlight = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kBulkAlignment = 16;
  static constexpr std::uint16_t kManyReaders = std::numeric_limits<std::uint16_t>::max();
  static constexpr std::uint16_t kGatesPlace = kManyReaders - 1;
  static constexpr std::uint16_t kBitSetters = kGatesPlace - 1;
  static constexpr std::uint16_t kHalfStorers = kBitSetters - 4;  // and, as a bit for each half, which were stored

  struct Word {
    float value = 0;
    std::uint32_t written = 0;  // interval; before the block's first interval: never; kInFlight: a copy is under way
    std::uint32_t read = 0;     // interval of the last read
    // Thread; or copiers_'s number of a gate; kGatesPlace: the word holds a gate; kBitSetters: set_bits();
    // kHalfStorers + 1 to 3: store_half().
    std::uint16_t writer = 0;
    std::uint16_t reader = 0;                         // of that interval; kManyReaders: several threads
    WarpTime readers;                                 // of that interval
    std::uint32_t written_after = 0, read_after = 0;  // warp barriers that the last writer, or reader, had passed
    std::uint32_t stored_after = 0;                   // offers of the thread that stored it
    std::uint32_t releases_before = 0;                // of gates, by the thread that stored it or had it copied
  };
  // Words in flight are chained in the order of their copies, one chain per thread and per gate: nothing is allocated.
  struct Flight {
    std::uint32_t next = kNone;
    std::uint32_t batch = 0;  // of a bulk copy: the gate's phase; valid until the word is copied to again
  };
  struct Copier {
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t batch = 0;  // of copies issued now: the number of commits so far; of a gate: not used
  };

  std::size_t threads() const { return copiers_.size() - kGates; }
  std::uint32_t warp_barriers(int thread) const { return warp_barriers_[static_cast<std::size_t>(thread)]; }
  // Whether all that read the word in this interval are of the thread's warp and did so before its last barrier.
  bool read_before_warp_barrier(const Word& word, int thread) const {
    return word.readers.warps == Gates::warp_bit(thread) && word.read_after < warp_barriers(thread);
  }
  bool readable(std::uint32_t index, int thread) const {
    const std::uint32_t written = words_[index].written;
    const bool settled = written - first_interval_ < interval_ - first_interval_;  // in an earlier interval
    return settled || (written == interval_ && knows(index, thread));
  }
  // Whether the thread may access what was written in this interval.
  bool knows(std::uint32_t index, int thread) const {
    const std::size_t writer = words_[index].writer;
    if (writer < threads()) {
      const bool same_warp = Gates::warp_bit(static_cast<int>(writer)) == Gates::warp_bit(thread);
      return static_cast<int>(writer) == thread || (same_warp && words_[index].written_after < warp_barriers(thread)) ||
             gates_.knows(thread, {words_[index].releases_before, Gates::warp_bit(static_cast<int>(writer))});
    }
    if (writer == kBitSetters || stored_by_halves(words_[index])) return false;
    return gates_.passed(static_cast<std::uint32_t>(writer - threads()), thread) > flights_[index].batch;
  }
  static bool stored_by_halves(const Word& word) { return word.writer >= kHalfStorers && word.writer < kBitSetters; }
  void take_off(std::uint32_t index, std::size_t copier, std::uint32_t batch, float value);
  void land(std::size_t copier, std::uint32_t finished);  // batches before `finished`
  std::string issuer(std::size_t copier) const;
  bool loaded_by_others(std::uint32_t index) const {
    return loaded_by_others() && loads_by_others_[index] == accesses_;
  }
  std::optional<std::string> outside(const char* access, std::uint32_t address) const;
  std::string not_offered(std::uint32_t address) const;
  std::optional<std::string> unreadable(std::uint32_t address, int thread) const;
  std::optional<std::string> check_write(const char* access, std::uint32_t address, int thread) const;
  std::optional<std::string> check_run(const char* access, std::uint32_t address, std::size_t words) const;
  std::optional<std::string> check_bulk_target(std::uint32_t index, int thread) const;
  std::optional<std::string> check_received(std::uint32_t index) const;
  std::optional<std::string> stored_by_thread(const char* access, std::uint32_t index) const;
  void mark_loaded_by_others(std::uint32_t index);
  bool was_released(const Word& word, int thread) const;

  std::vector<Word> words_;
  std::vector<Flight> flights_;
  std::vector<Copier> copiers_;               // threads, then gates
  std::vector<std::uint32_t> warp_barriers_;  // that each thread has passed
  // A thread's offers: how often it had released gates at each. It had made `before` of them when the last interval
  // with one began.
  struct Offers {
    std::uint32_t interval = 0, before = 0;
    std::vector<std::uint32_t> releases = {};
    std::uint32_t count() const { return static_cast<std::uint32_t>(releases.size()); }
  };
  std::vector<Offers> offers_;
  Gates gates_;
  // Intervals are counted on from block to block, so that a new block need not clear the words.
  std::uint32_t first_interval_ = 1, interval_ = 1;
  std::uint32_t cluster_interval_ = 1;          // the first after the last cluster barrier; or the block's first
  std::uint64_t changes_ = 1;                   // of what words hold, or of who may read them
  std::uint32_t accesses_ = 1;                  // numbers what lies between two meetings of the cluster
  std::uint32_t last_loaded_by_others_ = 0;     // its number of these
  std::vector<std::uint32_t> loads_by_others_;  // for each word; empty before the first
  bool arriving_ = false;                       // a thread has arrived, and has not met the others yet
  std::uint32_t arrival_ = 0;  // the interval in which the first of them last did; before the block's first: never
};

}  // namespace burin
