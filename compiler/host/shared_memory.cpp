#include "compiler/host/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace burin {
namespace {

// Intervals of one block that the counter must still have room for when the block begins.
constexpr std::uint32_t kIntervalHeadroom = std::uint32_t{1} << 31;

}  // namespace

SharedMemory::SharedMemory(int bytes, int threads)
    : words_(static_cast<std::size_t>(bytes) / kWordBytes),
      flights_(words_.size()),
      copiers_(static_cast<std::size_t>(threads)) {}

void SharedMemory::begin_block() {
  for (Copier& copier : copiers_) {
    for (std::uint32_t index = copier.first; index != kNone; index = flights_[index].next) words_[index] = Word{};
    copier = Copier{};
  }
  if (interval_ >= kIntervalHeadroom) {
    std::fill(words_.begin(), words_.end(), Word{});
    interval_ = 0;
  }
  first_interval_ = ++interval_;
}

std::optional<std::string> SharedMemory::store(std::uint32_t address, int thread, float value) {
  if (auto fault = check_write("store to", address, thread)) return fault;
  Word& word = words_[address / kWordBytes];
  word.value = value;
  word.written = interval_;
  word.writer = static_cast<std::uint16_t>(thread);
  return std::nullopt;
}

std::optional<std::string> SharedMemory::copy(std::uint32_t address, int thread, float value) {
  if (auto fault = check_write("copy into", address, thread)) return fault;
  const std::uint32_t index = address / kWordBytes;
  Word& word = words_[index];
  word.value = value;
  word.written = kInFlight;
  word.writer = static_cast<std::uint16_t>(thread);
  Copier& copier = copiers_[static_cast<std::size_t>(thread)];
  flights_[index] = {kNone, copier.batch};
  if (copier.first == kNone) {
    copier.first = index;
  } else {
    flights_[copier.last].next = index;
  }
  copier.last = index;
  return std::nullopt;
}

void SharedMemory::wait(int thread, std::uint32_t pending) {
  Copier& copier = copiers_[static_cast<std::size_t>(thread)];
  if (copier.batch <= pending) return;
  const std::uint32_t finished = copier.batch - pending;  // batches before this one
  while (copier.first != kNone && flights_[copier.first].batch < finished) {
    words_[copier.first].written = interval_;
    copier.first = flights_[copier.first].next;
  }
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

std::optional<std::string> SharedMemory::unreadable(std::uint32_t address, int thread) const {
  const std::uint32_t index = address / kWordBytes;
  const Word& word = words_[index];
  if (word.written == kInFlight) {
    const bool committed = flights_[index].batch < copiers_[word.writer].batch;
    return fmt::format(
        "load from shared memory at byte {} while a copy into it is in flight: thread {} issued it and has not {} it",
        address, word.writer, committed ? "waited for" : "committed");
  }
  if (word.written == interval_) {
    return fmt::format(
        "race on shared memory at byte {}: load by thread {} of what thread {} wrote, without a barrier in between",
        address, thread, word.writer);
  }
  return fmt::format("load from shared memory at byte {}, which no thread of the block has written", address);
}

std::optional<std::string> SharedMemory::check_write(const char* access, std::uint32_t address, int thread) const {
  const std::uint32_t index = address / kWordBytes;
  if (address % kWordBytes != 0 || index >= words_.size()) return outside(access, address);
  const Word& word = words_[index];
  if (word.written == kInFlight) {
    return fmt::format("{} shared memory at byte {} while a copy into it, issued by thread {}, is in flight", access,
                       address, word.writer);
  }
  if (word.written == interval_ && word.writer != thread) {
    return fmt::format(
        "race on shared memory at byte {}: {} it by thread {} and written by thread {}, without a barrier "
        "in between",
        address, access, thread, word.writer);
  }
  if (word.read == interval_ && word.reader != thread) {
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
