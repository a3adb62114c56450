// The products of warpgroups of one thread: between a multiplication and the wait that ends it the GPU works behind the
// thread's back. Here sums are computed at once, but nobody sees them: until they have been waited for, the thread
// finds NaN in their places, and the operands are looked at again then, so that an operand that was overwritten
// meanwhile is found by whoever checks shared memory.
//
// Functions return std::nullopt, or the fault as a sentence without its subject.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/host/shared_memory.h"

namespace burin {

// Where the matrices of a product lie (templates/device.h), in bytes of shared memory; the first one may be in
// registers.
struct GroupOperands {
  // Which values of the second matrix lie side by side, 16 bytes of them: halves of a row in an octet, or of a column
  // in eight rows, or words of a column in four rows.
  enum class Order { octets, columns, words };

  std::optional<std::uint32_t> a;
  std::uint32_t b = 0;
  std::uint32_t next_rows = 0, next_octet = 0;
  std::uint32_t octets = 0;
  std::uint32_t depth = 16;  // rows of the second matrix
  Order order = Order::octets;

  // Whether the second matrices are the same.
  bool has_b_of(const GroupOperands& other) const {
    return b == other.b && next_rows == other.next_rows && next_octet == other.next_octet && octets == other.octets &&
           depth == other.depth && order == other.order;
  }
};

// What a lane found in one pair of columns of a second matrix, and who may take that: many lanes multiply with the same
// columns.
struct LoadedOperands {
  GroupOperands operands;
  std::vector<std::uint32_t> words;  // octet by octet
  SharedMemory::Needs needs;
};

class GroupProducts {
 public:
  static constexpr std::uint32_t kMaxOctets = 32, kOctetSums = 4;

  void begin_thread();
  void begin() { begun_ = true; }
  // The sums so far, to which the product is to be added.
  std::optional<std::string> add(float* sums, const GroupOperands& operands, std::span<double>& values);
  void commit();
  // Takes the operands of batches that must have ended; `sums` are there when no product is left.
  std::optional<std::string> wait(float* sums, std::uint32_t octets, std::uint32_t pending,
                                  std::vector<GroupOperands>& ended);
  // Takes the operands of batches that must have ended; no sums are there yet.
  void release(std::uint32_t pending, std::vector<GroupOperands>& ended);
  std::optional<std::string> end_thread() const;

 private:
  struct Sums {
    float* of = nullptr;
    std::vector<double> values;
  };
  std::vector<Sums> sums_;                           // to which products were added
  std::vector<std::vector<GroupOperands>> batches_;  // the last one is not committed yet
  bool begun_ = false;
};

}  // namespace burin
