// Gates that warps release, and the products of warpgroups: what the executor knows of their order. What kernels make
// of both is in test/providers/test_conv_warpgroup.cpp.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "compiler/host/group_products.h"
#include "compiler/host/shared_memory.h"
#include "test/catch.h"

using namespace burin;
using burin_test::Contains;

namespace {

// Two warps: the first one reads what the second one copies.
constexpr int kTwoWarps = 64, kReader = 0, kCopier = 32, kFilledPlace = 128;
constexpr std::uint32_t kFilled = 0, kEmpty = 4;

class Buffer {
 public:
  Buffer() : memory_(512, kTwoWarps) {
    memory_.begin_block();
    no_fault(memory_.gate_init(kFilled, kReader));
    no_fault(memory_.gate_init(kEmpty, kReader, 1));
    memory_.begin_interval();
  }

  std::optional<std::string> copy() {
    if (auto fault = memory_.gate_expect(kFilled, 16, kCopier)) return fault;
    return memory_.bulk_copy(kFilledPlace, values_, kFilled, kCopier);
  }
  std::optional<std::string> wait(std::uint32_t gate, std::uint32_t phase, int thread) {
    bool open = false;
    auto fault = memory_.gate_wait(gate, phase, thread, open);
    if (!fault && !open) return "the gate is closed";
    return fault;
  }
  std::optional<std::string> read(int thread = kReader) {
    float value = 0;
    return memory_.load(kFilledPlace, thread, value);
  }
  std::optional<std::string> release(int thread = kReader) { return memory_.gate_release(kEmpty, thread, true); }

  static void no_fault(const std::optional<std::string>& fault) {
    INFO(fault.value_or(""));
    CHECK_FALSE(fault);
  }
  static void has_fault(const std::optional<std::string>& fault, const std::string& part) {
    REQUIRE(fault);
    CHECK_THAT(*fault, Contains(part));
  }

 private:
  SharedMemory memory_;
  std::vector<float> values_ = {1, 2, 3, 4};
};

const auto no_fault = Buffer::no_fault;
const auto has_fault = Buffer::has_fault;

// A buffer that was filled, waited for, read and released.
Buffer released() {
  Buffer buffer;
  no_fault(buffer.copy());
  no_fault(buffer.wait(kFilled, 0, kReader));
  no_fault(buffer.read());
  no_fault(buffer.release());
  return buffer;
}

GroupOperands operands() { return {.a = 0, .b = 2048, .next_rows = 128, .next_octet = 128, .octets = 2}; }
constexpr std::uint32_t kSums = 8;

}  // namespace

TEST_CASE("releases: what was released and waited for may be copied over") {
  Buffer buffer = released();
  no_fault(buffer.wait(kEmpty, 0, kCopier));
  no_fault(buffer.copy());
  no_fault(buffer.wait(kFilled, 1, kReader));
  no_fault(buffer.read());
}

TEST_CASE("releases: a release that nobody has waited for orders nothing") {
  Buffer buffer = released();
  has_fault(buffer.copy(), "gate 0");
}

TEST_CASE("releases: what is read after the release is not released") {
  Buffer buffer = released();
  no_fault(buffer.read());
  no_fault(buffer.wait(kEmpty, 0, kCopier));
  has_fault(buffer.copy(), "race on shared memory at byte 128: bulk copy into it");
}

TEST_CASE("releases: a warp that has released nothing may still read") {
  Buffer buffer = released();
  no_fault(buffer.wait(kEmpty, 0, kCopier));
  no_fault(buffer.wait(kFilled, 0, kCopier));
  no_fault(buffer.read(kCopier));
  has_fault(buffer.copy(), "gate 0");
}

TEST_CASE("releases: a gate counts its warps") {
  Buffer buffer = released();
  has_fault(buffer.release(), "when the 1 warps that open it have done so");
  Buffer closed;
  has_fault(closed.wait(kEmpty, 0, kCopier), "the gate is closed");
}

TEST_CASE("releases: gates of bytes are not released, nor are bytes announced at others") {
  SharedMemory memory(512, kTwoWarps);
  memory.begin_block();
  no_fault(memory.gate_init(0, 0));
  no_fault(memory.gate_init(1, 0, 2));
  memory.begin_interval();
  has_fault(memory.gate_release(0, 0, true), "which bytes open");
  has_fault(memory.gate_expect(1, 16, 0), "which warps release");
}

namespace {

// What one warp stores, another one reads, and the gate that counts bytes and releases tells of.
class StoredBuffer {
 public:
  static constexpr int kStorer = 32;
  StoredBuffer() : memory_(512, kTwoWarps) {
    memory_.begin_block();
    no_fault(memory_.gate_init(kFilled, kReader, 1, true));
    no_fault(memory_.gate_init(kEmpty, kReader, 1));
    memory_.begin_interval();
  }
  std::optional<std::string> store() { return memory_.store(kFilledPlace + 64, kStorer, 7); }
  std::optional<std::string> copy() { return memory_.copy(kFilledPlace + 64, kStorer, 7); }
  void land() {
    memory_.commit(kStorer);
    memory_.wait(kStorer, 0);
  }
  std::optional<std::string> bytes() {
    if (auto fault = memory_.gate_expect(kFilled, 16, kStorer)) return fault;
    return memory_.bulk_copy(kFilledPlace, values_, kFilled, kStorer);
  }
  std::optional<std::string> release(std::uint32_t gate, int thread) {
    return memory_.gate_release(gate, thread, true);
  }
  bool is_open(std::uint32_t gate, std::uint32_t phase, int thread) {
    bool open = false;
    no_fault(memory_.gate_wait(gate, phase, thread, open));
    return open;
  }
  std::optional<std::string> read(int thread = kReader) {
    float value = 0;
    auto fault = memory_.load(kFilledPlace + 64, thread, value);
    if (!fault) CHECK(value == 7);
    return fault;
  }
  void offer() { memory_.offer(kStorer); }
  std::optional<std::string> multiply() { return memory_.check_offered(kFilledPlace + 64, kReader); }
  std::optional<std::string> read_bytes() {
    float value = 0;
    return memory_.load(kFilledPlace, kReader, value);
  }

 private:
  SharedMemory memory_;
  std::vector<float> values_ = {1, 2, 3, 4};
};

constexpr int kStorer = StoredBuffer::kStorer;

}  // namespace

TEST_CASE("releases: a gate that counts bytes and releases opens when it has both, in each phase") {
  StoredBuffer buffer;
  for (const std::uint32_t phase : {0U, 1U, 0U}) {
    no_fault(buffer.bytes());
    CHECK_FALSE(buffer.is_open(kFilled, phase, kReader));
    no_fault(buffer.release(kFilled, kStorer));
    CHECK(buffer.is_open(kFilled, phase, kReader));
    no_fault(buffer.read_bytes());
    no_fault(buffer.release(kEmpty, kReader));
    CHECK(buffer.is_open(kEmpty, phase, kStorer));
  }
  StoredBuffer released;
  no_fault(released.release(kFilled, kStorer));
  CHECK_FALSE(released.is_open(kFilled, 0, kReader));
  no_fault(released.bytes());
  CHECK(released.is_open(kFilled, 0, kReader));
}

TEST_CASE("releases: what a warp has stored is read by those who have waited for its release") {
  for (const bool copies : {false, true}) {
    INFO("copies " << copies);
    StoredBuffer buffer;
    const auto fill = [&] {
      no_fault(copies ? buffer.copy() : buffer.store());
      if (copies) buffer.land();
    };
    fill();
    no_fault(buffer.bytes());
    has_fault(buffer.read(), "race on shared memory at byte 192: load by thread 0");
    no_fault(buffer.release(kFilled, kStorer));
    has_fault(buffer.read(), "race on shared memory at byte 192: load by thread 0");
    CHECK(buffer.is_open(kFilled, 0, kReader));
    no_fault(buffer.read());
    // It may be stored to again when its readers have released it, and that was waited for.
    has_fault(copies ? buffer.copy() : buffer.store(), "after a load by thread 0");
    no_fault(buffer.release(kEmpty, kReader));
    has_fault(copies ? buffer.copy() : buffer.store(), "after a load by thread 0");
    CHECK(buffer.is_open(kEmpty, 0, kStorer));
    fill();
    // What was stored after the release is not known by it.
    has_fault(buffer.read(), "race on shared memory at byte 192: load by thread 0");
  }
}

TEST_CASE("releases: what was stored is offered to products before it is released") {
  for (const bool in_time : {false, true}) {
    StoredBuffer buffer;
    no_fault(buffer.store());
    no_fault(buffer.bytes());
    if (in_time) buffer.offer();
    no_fault(buffer.release(kFilled, kStorer));
    if (!in_time) buffer.offer();
    CHECK(buffer.is_open(kFilled, 0, kReader));
    if (in_time) {
      no_fault(buffer.multiply());
    } else {
      has_fault(buffer.multiply(), "has stored without offering it to products");
    }
  }
}

TEST_CASE("group products: sums are there when they have been waited for, and not before") {
  GroupProducts products;
  float sums[kSums] = {};
  sums[3] = 5;
  std::span<double> values;
  products.begin();
  no_fault(products.add(sums, operands(), values));
  REQUIRE(values.size() == kSums);
  CHECK(values[3] == 5);
  values[3] += 2;
  products.commit();
  CHECK(std::isnan(sums[3]));
  std::vector<GroupOperands> ended;
  no_fault(products.wait(sums, 2, 1, ended));
  CHECK(ended.empty());
  CHECK(std::isnan(sums[3]));
  no_fault(products.wait(sums, 2, 0, ended));
  CHECK(ended.size() == 1);
  CHECK(sums[3] == 7);
  CHECK_FALSE(products.end_thread());
}

TEST_CASE("group products: misuse") {
  float sums[kSums] = {}, others[kSums] = {};
  std::span<double> values;
  GroupProducts products;
  has_fault(products.add(sums, operands(), values), "without having begun");
  products.begin();
  GroupOperands odd = operands();
  odd.b += 4;
  has_fault(products.add(sums, odd, values), "must be a multiple of 16");
  GroupOperands none = operands();
  none.octets = 33;
  has_fault(products.add(sums, none, values), "it can be 1 to 32");
  no_fault(products.add(sums, operands(), values));
  GroupOperands shorter = operands();
  shorter.octets = 1;
  has_fault(products.add(sums, shorter, values), "into other sums");
  has_fault(products.add(sums + 1, operands(), values), "into a part of sums");
  std::vector<GroupOperands> ended;
  has_fault(products.wait(others, 2, 0, ended), "waits for other sums");
  has_fault(products.end_thread(), "under way");
  // Products that were not committed are not waited for.
  no_fault(products.wait(sums, 2, 0, ended));
  CHECK(ended.empty());
  has_fault(products.end_thread(), "under way");
}

TEST_CASE("group products: several sums are under way, and each is there when it has been waited for") {
  GroupProducts products;
  float first[kSums] = {}, second[kSums] = {};
  std::span<double> values;
  const GroupOperands in_registers = {.a = std::nullopt, .b = 2048, .next_rows = 128, .next_octet = 256, .octets = 2};
  products.begin();
  for (int step = 0; step < 2; ++step) {
    no_fault(products.add(first, in_registers, values));
    values[0] += 1;
    no_fault(products.add(second, in_registers, values));
    values[0] += 10;
    products.commit();
  }
  std::vector<GroupOperands> ended;
  products.release(1, ended);
  CHECK(ended.size() == 2);
  CHECK_FALSE(ended[0].a.has_value());
  CHECK(std::isnan(first[0]));
  no_fault(products.wait(first, 2, 0, ended));
  CHECK(ended.size() == 2);
  CHECK(first[0] == 2);
  CHECK(std::isnan(second[0]));
  has_fault(products.end_thread(), "under way");
  no_fault(products.add(second, in_registers, values));
  products.commit();
  no_fault(products.wait(second, 2, 0, ended));
  CHECK(second[0] == 20);
  CHECK_FALSE(products.end_thread());
  has_fault(products.add(first, in_registers, values), "without having begun");
}
