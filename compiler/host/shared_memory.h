// The shared memory of one block, with what must be known of each word to find faults: who wrote it and when, who read
// it and when, and whether an asynchronous copy into it is still under way.
//
// "When" is the barrier interval: the number of barriers that all threads of the block have passed. Two accesses of one
// word by different threads in one interval are unordered on the GPU; unless both are reads, that is a race.
//
// Each access returns std::nullopt, or the fault as a sentence without its subject.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace burin {

class SharedMemory {
 public:
  SharedMemory(int bytes, int threads);

  // Forgets all contents, and copies that a block which ended with a fault left in flight.
  void begin_block();
  // All threads have met at a barrier.
  void begin_interval() { ++interval_; }

  std::optional<std::string> load(std::uint32_t address, int thread, float& value) {
    const std::uint32_t index = address / kWordBytes;
    if (address % kWordBytes != 0 || index >= words_.size()) return outside("load from", address);
    Word& word = words_[index];
    const bool settled = word.written - first_interval_ < interval_ - first_interval_;  // in an earlier interval
    if (!settled && !(word.written == interval_ && word.writer == thread)) return unreadable(address, thread);
    if (word.read != interval_) {
      word.read = interval_;
      word.reader = static_cast<std::uint16_t>(thread);
    } else if (word.reader != thread) {
      word.reader = kManyReaders;
    }
    value = word.value;
    return std::nullopt;
  }

  std::optional<std::string> store(std::uint32_t address, int thread, float value);

  // Starts a copy: the word has no readable value until its thread has waited for it.
  std::optional<std::string> copy(std::uint32_t address, int thread, float value);
  void commit(int thread) { ++copiers_[static_cast<std::size_t>(thread)].batch; }
  // Until at most `pending` of the thread's committed batches are in flight.
  void wait(int thread, std::uint32_t pending);
  // A thread that ends must not leave copies in flight.
  std::optional<std::string> end_thread(int thread) const;

  // A broadcast passes its value through the first word.
  std::optional<std::string> broadcast();

 private:
  static constexpr std::uint32_t kWordBytes = 4;
  static constexpr std::uint32_t kInFlight = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint16_t kManyReaders = std::numeric_limits<std::uint16_t>::max();

  struct Word {
    float value = 0;
    std::uint32_t written = 0;  // interval; before the block's first interval: never; kInFlight: a copy is under way
    std::uint32_t read = 0;     // interval of the last read
    std::uint16_t writer = 0;
    std::uint16_t reader = 0;  // of that interval; kManyReaders: several threads
  };
  // Words in flight are chained in the order of their copies, one chain per thread: nothing is allocated.
  struct Flight {
    std::uint32_t next = kNone;
    std::uint32_t batch = 0;
  };
  struct Copier {
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t batch = 0;  // of copies issued now: the number of commits so far
  };

  std::optional<std::string> outside(const char* access, std::uint32_t address) const;
  std::optional<std::string> unreadable(std::uint32_t address, int thread) const;
  std::optional<std::string> check_write(const char* access, std::uint32_t address, int thread) const;

  std::vector<Word> words_;
  std::vector<Flight> flights_;
  std::vector<Copier> copiers_;
  // Intervals are counted on from block to block, so that a new block need not clear the words.
  std::uint32_t first_interval_ = 1, interval_ = 1;
};

}  // namespace burin
