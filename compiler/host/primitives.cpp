#include "compiler/host/primitives.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/host/block.h"
#include "ir/element_type.h"
#include "ir/factor_type.h"

namespace burin {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

using f32x4 = float __attribute__((vector_size(16)));  // passed and returned like LLVM's <4 x float>
constexpr u32 kQuad = 4, kWordBytes = 4, kQuadBytes = kQuad * kWordBytes;

// The thread ends where it is: its frames are abandoned, so none of them may own memory.
void require(std::optional<std::string>&& fault) {
  if (fault) [[unlikely]]
    Block::current().fail_thread(std::move(*fault));
}

u32 thread() noexcept { return Block::current().thread(); }
u32 block_x() noexcept { return Block::current().x(); }
u32 block_y() noexcept { return Block::current().y(); }

float shared_load(u32 base, u32 offset) noexcept {
  Block& block = Block::current();
  float value = 0;
  require(block.shared().load(base + offset, static_cast<int>(block.thread()), value));
  return value;
}

// The GPU loads in any case, so there must be a word; what is in it nobody may use.
float shared_load_if(u32 condition, u32 base, u32 offset) noexcept {
  if (condition != 0) return shared_load(base, offset);
  require(Block::current().shared().check_place(base + offset));
  return std::numeric_limits<float>::quiet_NaN();
}

void shared_store(u32 base, u32 offset, float value) noexcept {
  Block& block = Block::current();
  require(block.shared().store(base + offset, static_cast<int>(block.thread()), value));
}

void shared_store_word(u32 base, u32 offset, u32 value) noexcept {
  shared_store(base, offset, std::bit_cast<float>(value));
}

void shared_store_half(u32 base, u32 offset, u32 half) noexcept {
  Block& block = Block::current();
  const auto low = static_cast<std::uint16_t>(half);
  require(block.shared().store_half(base + offset, static_cast<int>(block.thread()), low));
}

void require_awaited(const char* access) { require(Block::current().check_awaited(access)); }

void shared_or(u32 base, u32 offset, u32 bits) noexcept {
  Block& block = Block::current();
  block.warp_action(base + offset);
  require(block.shared().set_bits(base + offset, static_cast<int>(block.thread()), bits));
}

u32 map_load(u64 base, i64 offset) noexcept {
  require_awaited("load of an activity map");
  u32 value = 0;
  require(Block::current().memory().load_activity(base + static_cast<u64>(offset), value));
  return value;
}

void map_store_if(u32 condition, u64 base, i64 offset, u32 value) noexcept {
  if (condition == 0) return;
  require_awaited("store to an activity map");
  Block& block = Block::current();
  require(block.memory().store_activity(base + static_cast<u64>(offset), value, block.accessor()));
}

float global_load(u64 base, i64 byte_offset) noexcept {
  if (!Block::current().memory().is_weight(base)) require_awaited("load");
  float value = 0;
  require(Block::current().memory().load(base + static_cast<u64>(byte_offset), value));
  return value;
}

float global_load_if(u32 condition, u64 base, i64 byte_offset) noexcept {
  return condition != 0 ? global_load(base, byte_offset) : 0;
}

void global_store(u64 base, i64 byte_offset, float value) noexcept {
  require_awaited("store");
  Block& block = Block::current();
  require(block.memory().store_output(base + static_cast<u64>(byte_offset), value, block.accessor()));
}

u32 global_load_half(u64 base, i64 byte_offset) noexcept {
  require_awaited("load");
  std::uint16_t value = 0;
  require(Block::current().memory().load_half(base + static_cast<u64>(byte_offset), value));
  return value;
}

void global_store_half(u64 base, i64 byte_offset, u32 value) noexcept {
  require_awaited("store");
  Block& block = Block::current();
  require(block.memory().store_half(base + static_cast<u64>(byte_offset), static_cast<std::uint16_t>(value),
                                    block.accessor()));
}

void require_shared_quad(const char* access, u32 address) {
  if (address % kQuadBytes == 0) return;
  Block::current().fail_thread(
      fmt::format("misaligned {} four words of shared memory at byte {}, which is not a "
                  "multiple of {}",
                  access, address, kQuadBytes));
}

f32x4 shared_load4(u32 base, u32 offset) noexcept {
  require_shared_quad("load of", base + offset);
  f32x4 values{};
  for (u32 i = 0; i < kQuad; ++i) values[i] = shared_load(base, offset + i * kWordBytes);
  return values;
}

f32x4 shared_load4_if(u32 condition, u32 base, u32 offset) noexcept {
  require_shared_quad("load of", base + offset);
  f32x4 values{};
  for (u32 i = 0; i < kQuad; ++i) values[i] = shared_load_if(condition, base, offset + i * kWordBytes);
  return values;
}

void shared_store4(u32 base, u32 offset, f32x4 values) noexcept {
  require_shared_quad("store to", base + offset);
  for (u32 i = 0; i < kQuad; ++i) shared_store(base, offset + i * kWordBytes, values[i]);
}

f32x4 global_load4(u64 base, i64 byte_offset) noexcept {
  require(Block::current().memory().check_quad("load", base + static_cast<u64>(byte_offset)));
  f32x4 values{};
  for (u32 i = 0; i < kQuad; ++i) values[i] = global_load(base, byte_offset + i * kWordBytes);
  return values;
}

void global_store4(u64 base, i64 byte_offset, f32x4 values) noexcept {
  require(Block::current().memory().check_quad("store", base + static_cast<u64>(byte_offset)));
  for (u32 i = 0; i < kQuad; ++i) global_store(base, byte_offset + i * kWordBytes, values[i]);
}

float scratch_load(u64 base, i64 byte_offset) noexcept {
  require_awaited("load of a partial sum");
  Block& block = Block::current();
  float value = 0;
  require(block.memory().load_partial(base + static_cast<u64>(byte_offset), value, block.accessor()));
  return value;
}

void scratch_store(u64 base, i64 byte_offset, float value) noexcept {
  require_awaited("store of a partial sum");
  Block& block = Block::current();
  require(block.check_partial_store());
  require(block.memory().store_partial(base + static_cast<u64>(byte_offset), value, block.accessor()));
}

// Weights may be copied before the launch is awaited: no earlier kernel writes them.
void copy_async(u32 shared_base, u32 shared_offset, u64 source, i64 byte_offset, u32 valid) noexcept {
  Block& block = Block::current();
  if (!block.memory().is_weight(source)) require_awaited("asynchronous copy");
  float value = 0;
  if (valid != 0) require(block.memory().load(source + static_cast<u64>(byte_offset), value));
  require(block.shared().copy(shared_base + shared_offset, static_cast<int>(block.thread()), value));
}

void copy_async4(u32 shared_base, u32 shared_offset, u64 source, i64 byte_offset, u32 valid) noexcept {
  require_shared_quad("copy to", shared_base + shared_offset);
  if (valid != 0) require(Block::current().memory().check_quad("copy", source + static_cast<u64>(byte_offset)));
  for (u32 i = 0; i < kQuad; ++i) {
    copy_async(shared_base, shared_offset + i * kWordBytes, source, byte_offset + i * kWordBytes, valid);
  }
}

void copy_commit() noexcept {
  Block& block = Block::current();
  block.shared().commit(static_cast<int>(block.thread()));
}

void copy_wait(u32 pending) noexcept {
  Block& block = Block::current();
  block.shared().wait(static_cast<int>(block.thread()), pending);
}

void gate_init(u32 gate) noexcept {
  Block& block = Block::current();
  require(block.shared().gate_init(gate, static_cast<int>(block.thread())));
}

void gate_init_released(u32 gate, u32 warps) noexcept {
  Block& block = Block::current();
  if (warps < 1) block.fail_thread(fmt::format("initialises gate {} for releases by no warp", gate));
  require(block.shared().gate_init(gate, static_cast<int>(block.thread()), warps));
}

void gate_init_filled(u32 gate, u32 warps) noexcept {
  Block& block = Block::current();
  if (warps < 1) block.fail_thread(fmt::format("initialises gate {} for releases by no warp", gate));
  require(block.shared().gate_init(gate, static_cast<int>(block.thread()), warps, true));
}

void gate_release(u32 gate) noexcept { require(Block::current().gate_release(gate)); }

void gate_expect(u32 gate, u32 bytes) noexcept {
  Block& block = Block::current();
  require(block.shared().gate_expect(gate, bytes, static_cast<int>(block.thread())));
}

void gate_wait(u32 gate, u32 phase) noexcept { require(Block::current().gate_wait(gate, phase)); }

void bulk_copy(u32 shared_base, u32 shared_offset, u64 source, i64 byte_offset, u32 bytes, u32 gate) noexcept {
  Block& block = Block::current();
  if (!block.memory().is_weight(source)) require_awaited("bulk copy");
  std::span<const float> values;
  require(block.memory().load_run(source + static_cast<u64>(byte_offset), bytes, values));
  require(block.shared().bulk_copy(shared_base + shared_offset, values, gate, static_cast<int>(block.thread())));
}

void box_copy(u32 shared_base, u32 shared_offset, u64 box, std::int32_t col, std::int32_t row, std::int32_t octet,
              std::int32_t images, u32 gate) noexcept {
  static thread_local std::vector<float> values;
  Block& block = Block::current();
  require_awaited("copy of a box");
  bool swizzled = false;
  require(block.memory().load_box(box, {col, row, octet, images}, values, swizzled));
  const u32 target = shared_base + shared_offset;
  if (target % kBoxTargetAlignment != 0) {
    block.fail_thread(
        fmt::format("misaligned copy of a box into shared memory at byte {}, which is not a multiple of {}", target,
                    kBoxTargetAlignment));
  }
  if (swizzled) {
    static thread_local std::vector<float> moved;
    moved.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto address = target + static_cast<u32>(i) * kWordBytes;
      moved[(swizzled_address(address) - target) / kWordBytes] = values[i];
    }
    values.swap(moved);
  }
  require(block.shared().bulk_copy(target, values, gate, static_cast<int>(block.thread())));
}

u32 cluster_rank() noexcept { return Block::current().rank(); }
void cluster_barrier() noexcept { require(Block::current().cluster_barrier()); }
void cluster_arrive() noexcept { require(Block::current().cluster_arrive()); }
void cluster_meet() noexcept { require(Block::current().cluster_meet()); }
void cluster_send(u32 shared_base, u32 source, u32 target, u32 bytes, u32 rank, u32 gate) noexcept {
  require(Block::current().cluster_send(shared_base + source, shared_base + target, bytes, rank, gate));
}

float cluster_load(u32 base, u32 offset, u32 rank) noexcept {
  float value = 0;
  require(Block::current().cluster_load(base + offset, rank, value));
  return value;
}

void barrier() noexcept { Block::current().barrier(); }
void keep_order(u32) noexcept {}  // what a thread does keeps its order anyway
void fence() noexcept { Block::current().fence(); }
u32 broadcast(u32 value) noexcept { return Block::current().broadcast(value); }
float shuffle_xor(float value, u32 distance) noexcept { return Block::current().shuffle_xor(value, distance); }
u32 ballot(u32 condition) noexcept { return Block::current().ballot(condition); }
void warp_barrier() noexcept { Block::current().warp_barrier(); }
void exit_thread() noexcept { Block::current().end_thread(); }

u32 count_arrival(u64 counter, u32 last) noexcept {
  require_awaited("count of an arrival");
  Block& block = Block::current();
  require(block.check_arrival());
  u32 old = 0;
  require(block.memory().count_arrival(counter, last, old, block.accessor()));
  return old;
}

float fma_if(u32 condition, float a, float b, float sum) noexcept { return condition != 0 ? std::fma(a, b, sum) : sum; }

// ---- words of two halves
constexpr int kHalfBits = 16;
constexpr u32 kTwoNegativeZeros = 0x80008000;

u32 shared_load_word(u32 base, u32 offset) noexcept { return std::bit_cast<u32>(shared_load(base, offset)); }
u32 shared_load_word_if(u32 condition, u32 base, u32 offset) noexcept {
  constexpr u32 kTwoNaNs = 0xFFFFFFFF;
  const float value = shared_load_if(condition, base, offset);
  return condition != 0 ? std::bit_cast<u32>(value) : kTwoNaNs;
}
u32 global_load_word(u64 base, i64 byte_offset) noexcept { return std::bit_cast<u32>(global_load(base, byte_offset)); }
void global_store_word(u64 base, i64 byte_offset, u32 value) noexcept {
  global_store(base, byte_offset, std::bit_cast<float>(value));
}

std::uint16_t low_of(u32 word) { return static_cast<std::uint16_t>(word); }
std::uint16_t high_of(u32 word) { return static_cast<std::uint16_t>(word >> kHalfBits); }
u32 word_of(u32 low, u32 high) { return high << kHalfBits | low; }

float f16_low(u32 word) noexcept { return from_half(ElementType::f16, low_of(word)); }
float f16_high(u32 word) noexcept { return from_half(ElementType::f16, high_of(word)); }
u32 f16_pack(float low, float high) noexcept {
  return word_of(to_half(ElementType::f16, low), to_half(ElementType::f16, high));
}
u32 bf16_pack(float low, float high) noexcept {
  return word_of(to_half(ElementType::bf16, low), to_half(ElementType::bf16, high));
}
u32 f16x2_fma(u32 word, u32 weights, u32 sum) noexcept {
  return word_of(fma_f16(low_of(word), low_of(weights), low_of(sum)),
                 fma_f16(high_of(word), high_of(weights), high_of(sum)));
}
std::uint16_t larger_half(ElementType type, std::uint16_t one, std::uint16_t other) {
  return to_half(type, std::fmax(from_half(type, one), from_half(type, other)));
}
u32 f16x2_max(u32 word, u32 other) noexcept {
  return word_of(larger_half(ElementType::f16, low_of(word), low_of(other)),
                 larger_half(ElementType::f16, high_of(word), high_of(other)));
}
u32 bf16x2_max(u32 word, u32 other) noexcept {
  return word_of(larger_half(ElementType::bf16, low_of(word), low_of(other)),
                 larger_half(ElementType::bf16, high_of(word), high_of(other)));
}
// A product and -0 give the product, its sign included.
u32 f16x2_mul(u32 word, u32 weights) noexcept { return f16x2_fma(word, weights, kTwoNegativeZeros); }

// ---- tensor cores
using u32x4 = std::uint32_t __attribute__((vector_size(16)));
// What a warp meets for: rows; products of a type of factors; sparse ones of a type, and of a pair of lanes.
constexpr u32 kMeetForRows = 0, kMeetForDense = 1, kMeetForSparse = kMeetForDense + names_of(FactorType{}).names.size();

u32x4 shared_load_rows(u32 base, u32 offset) noexcept {
  constexpr u32 kRows = 8;
  require_shared_quad("load of a row of", base + offset);
  const Block::Warp warp = Block::current().meet_warp(kMeetForRows, {base + offset});
  const u32 column = warp.lane / 4, pair = warp.lane % 4 * 2;
  u32x4 words{};
  for (u32 i = 0; i < kQuad; ++i) {
    u32 halves[2] = {};
    for (u32 row = 0; row < 2; ++row) {
      const u32 word = shared_load_word(warp[kRows * i + pair + row][0], column / 2 * kWordBytes);
      halves[row] = column % 2 == 0 ? low_of(word) : high_of(word);
    }
    words[i] = word_of(halves[0], halves[1]);
  }
  return words;
}

u32 to_tf32(float value) noexcept { return std::bit_cast<u32>(rounded(FactorType::tf32, value)); }

// One of the values of a word that is multiplied.
template <FactorType kType>
float factor_of(u32 word, u32 number) {
  if constexpr (kType == FactorType::tf32) {
    constexpr u32 kDropped = 0x1FFF;
    const auto value = std::bit_cast<float>(word);
    if ((word & kDropped) != 0 && !std::isnan(value)) {
      Block::current().fail_thread(fmt::format("{} is multiplied in TF32, which it was not rounded to", value));
    }
    return value;
  } else {
    return from_half(kType == FactorType::f16 ? ElementType::f16 : ElementType::bf16,
                     number == 0 ? low_of(word) : high_of(word));
  }
}
constexpr u32 kMaxDepth = 32;  // of a product
template <FactorType kType>
constexpr u32 kWordValues = kWordBytes / static_cast<u32>(bytes_of(kType));

// A value of a row of the first matrix, and the row of the second that it is multiplied with.
struct Term {
  u32 k;
  double value;
};

// What a lane adds to its sums: those of two rows, eight apart, and of two columns that lie side by side.
template <FactorType kType, std::size_t kTerms>
f32x4 add_products(const Block::Warp& warp, const Term (&rows)[2][kTerms], u32 first_b, u32 b_words, f32x4 sums) {
  constexpr u32 kValues = kWordValues<kType>, kRows = 4 * kValues;  // of a word, and of a word of four lanes
  double columns[2][kMaxDepth];
  for (u32 i = 0; i < 2; ++i) {
    const u32 first_lane = (2 * (warp.lane % 4) + i) * 4;
    for (u32 k = 0; k < b_words * kRows; ++k) {
      const u32 word = warp[first_lane + k % kRows / kValues][first_b + k / kRows];
      columns[i][k] = static_cast<double>(factor_of<kType>(word, k % kValues));
    }
  }
  f32x4 result{};
  for (u32 i = 0; i < kQuad; ++i) {
    double sum = static_cast<double>(sums[i]);
    for (const Term& term : rows[i / 2]) sum += term.value * columns[i % 2][term.k];
    result[i] = static_cast<float>(sum);
  }
  return result;
}

template <FactorType kType>
f32x4 multiply(u32x4 a, u32 b0, u32 b1, f32x4 sums) noexcept {
  constexpr u32 kValues = kWordValues<kType>, kColumns = 4 * kValues, kDepth = 2 * kColumns;
  const Block::Warp warp =
      Block::current().meet_warp(kMeetForDense + static_cast<u32>(kType), {a[0], a[1], a[2], a[3], b0, b1});
  Term rows[2][kDepth];
  for (u32 half = 0; half < 2; ++half) {
    for (u32 k = 0; k < kDepth; ++k) {
      const u32 word = warp[warp.lane / 4 * 4 + k % kColumns / kValues][half + k / kColumns * 2];
      rows[half][k] = {k, static_cast<double>(factor_of<kType>(word, k % kValues))};
    }
  }
  return add_products<kType>(warp, rows, 4, 2, sums);
}

// What is stored lies in four halves, two words in TF32: as places say it.
template <FactorType kType>
f32x4 multiply_sparse(u32x4 a, u32x4 b, f32x4 sums, u32 places, u32 pair) noexcept {
  constexpr u32 kPlaces = 8, kPairs = 2, kNumbers = 8;
  constexpr u32 kValues = kWordValues<kType>, kColumns = 2 * kValues, kHalves = 4 / kColumns;
  if (pair >= kPairs) Block::current().fail_thread(fmt::format("the places of pair {} of lanes; there are two", pair));
  const u32 what = kMeetForSparse + static_cast<u32>(kType) * kPairs + pair;
  const Block::Warp warp = Block::current().meet_warp(what, {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], places});
  const u32 first_lane = warp.lane / 4 * 4;
  Term rows[2][kNumbers * kValues];
  for (u32 half = 0; half < 2; ++half) {
    for (u32 number = 0; number < kNumbers; ++number) {
      const u32 word = warp[first_lane + pair * 2 + number / 4][kPlaces];
      const u32 stored_at = (half == 0 ? low_of(word) : high_of(word)) >> (number % 4 * 4) & 15U;
      const u32 row = warp.lane / 4 + half * 8, first = stored_at & 3U, second = stored_at >> 2;
      if (kType == FactorType::tf32 && (first % 2 != 0 || second != first + 1)) {
        Block::current().fail_thread(fmt::format(
            "row {} of a sparse matrix has the places {} of two columns; 4 and 14 are known in TF32", row, stored_at));
      }
      if (first >= second) {
        Block::current().fail_thread(
            fmt::format("row {} of a sparse matrix stores columns {} and {} of four {}; the first must be the smaller",
                        row, first, second, number));
      }
      const u32 stored = warp[first_lane + number % 4][half + number / 4 * 2];
      for (u32 i = 0; i < kValues; ++i) {
        const u32 k = number * kColumns + (i == 0 ? first : second) / kHalves;
        rows[half][number * kValues + i] = {k, static_cast<double>(factor_of<kType>(stored, i))};
      }
    }
  }
  return add_products<kType>(warp, rows, 4, 4, sums);
}

// ---- warpgroups
// A row of the first matrix as products see it: its values, and which of them are stored.
constexpr u32 kGroupThreads = 128, kRowsOfWarp = 16;
struct GroupRow {
  float values[kMaxDepth];
  bool stored[kMaxDepth];
};

// It loads what lies in shared memory, if whoever stored it has offered it to products. Several lanes of a warp load a
// word; one of them looks.
class OperandLoader {
 public:
  OperandLoader() : memory_(Block::current().shared()), thread_(static_cast<int>(Block::current().thread())) {}
  u32 load(u32 place, bool looks) {
    float value = 0;
    if (looks) {
      require(memory_.check_offered(place, thread_));
      require(memory_.load(place, thread_, value));
      memory_.note_other_readers(place);
    } else if (!memory_.load_as_well(place, thread_, value)) {
      require(memory_.load(place, thread_, value));  // which finds the fault
    }
    return std::bit_cast<u32>(value);
  }

 private:
  SharedMemory& memory_;
  int thread_;
};

u32 word_of_a(const GroupOperands& operands, u32 row, u32 column) {
  const u32 place = operands.a.value() + row / 8 * 256 + column / 8 * 128 + row % 8 * 16 + column % 8 / 2 * kWordBytes;
  return OperandLoader().load(place, thread() % 4 == 0);
}

// The words of an octet in which a pair of columns has values, row by row.
u32 words_of_octet(const GroupOperands& operands) {
  return operands.order == GroupOperands::Order::words ? operands.depth * 2 : operands.depth;
}
u32 place_in_octet(const GroupOperands& operands, u32 pair, u32 word) {
  if (operands.order == GroupOperands::Order::octets) {
    return word / 8 * operands.next_rows + word % 8 * 16 + pair * kWordBytes;
  }
  const u32 of_column = word / 2, column = pair * 2 + word % 2;
  return of_column / 4 * operands.next_rows + column * 16 + of_column % 4 * kWordBytes;
}

// The words of the thread's pair of columns lie octet by octet. In each warp eight lanes have the same pair; the first
// of them looks, and the others take what was found last where they may read it.
const std::vector<u32>& words_of_b(const GroupOperands& operands) {
  Block& block = Block::current();
  const u32 pair = thread() % 4;
  const bool looks = thread() % 32 < 4;
  LoadedOperands& loaded = block.loaded_operands(operands.b);
  const SharedMemory& memory = block.shared();
  const bool may_take = loaded.operands.has_b_of(operands) && memory.meets(loaded.needs, static_cast<int>(thread()));
  if (!looks && may_take) return loaded.words;
  loaded.operands = operands;
  loaded.needs.others = false;  // until all is there
  loaded.words.clear();
  OperandLoader loader;
  SharedMemory::Needs needs = memory.needs();
  for (u32 octet = 0; octet < operands.octets; ++octet) {
    for (u32 word = 0; word < words_of_octet(operands); ++word) {
      const u32 place = operands.b + octet * operands.next_octet + place_in_octet(operands, pair, word);
      loaded.words.push_back(loader.load(place, looks));
      memory.add(needs, place);
    }
  }
  loaded.needs = needs;
  return loaded.words;
}
// use(factor, k, column) for each value of an octet in the thread's pair of columns, which lie in `words`.
template <FactorType kType, typename Use>
void for_each_factor_of_b(const GroupOperands& operands, const u32* words, const Use& use) {
  constexpr u32 kValues = kWordValues<kType>;
  const auto factor = [](u32 word, u32 i) { return static_cast<double>(factor_of<kType>(word, i)); };
  if (operands.order == GroupOperands::Order::octets) {
    for (u32 k = 0; k < operands.depth; ++k) {
      for (u32 i = 0; i < kValues; ++i) use(factor(words[k], i), k, i);
    }
    return;
  }
  for (u32 k = 0; k < operands.depth; k += kValues) {
    for (u32 column = 0; column < 2; ++column) {
      const u32 word = *words++;
      for (u32 i = 0; i < kValues; ++i) use(factor(word, i), k + i, column);
    }
  }
}
// The thread's first row in the warpgroup; the second one is eight below.
u32 first_group_row(u32 thread) { return thread % kGroupThreads / 32 * kRowsOfWarp + thread % 32 / 4; }

// The operands' words that the thread reads.
void look_at(const GroupOperands& operands) {
  const u32 number = thread(), stored = 16;
  for (u32 half = 0; operands.a && half < 2; ++half) {
    for (u32 column = 0; column < stored; column += 2) word_of_a(operands, first_group_row(number) + half * 8, column);
  }
  words_of_b(operands);
}

template <FactorType kType>
void add_group_product(float* sums, const GroupOperands& operands, const GroupRow (&rows)[2]) {
  std::span<double> values;
  require(Block::current().products().add(sums, operands, values));
  const std::vector<u32>& words = words_of_b(operands);
  for (u32 octet = 0; octet < operands.octets; ++octet) {
    const u32* of_octet = words.data() + octet * words_of_octet(operands);
    for_each_factor_of_b<kType>(operands, of_octet, [&](double factor, u32 k, u32 column) {
      for (u32 half = 0; half < 2; ++half) {
        if (!rows[half].stored[k]) continue;
        values[octet * kQuad + half * 2 + column] += static_cast<double>(rows[half].values[k]) * factor;
      }
    });
  }
}

GroupOperands group_operands(u32 octets, u32 a, u32 b, u32 next_rows, u32 next_octet, u32 depth,
                             GroupOperands::Order order = GroupOperands::Order::octets) {
  Block::current().warp_action(a * 31 + b);
  return {a, b, next_rows, next_octet, octets, depth, order};
}

// All of a row is stored.
template <FactorType kType>
void multiply_whole(float* sums, const GroupOperands& operands) {
  constexpr u32 kValues = kWordValues<kType>;
  GroupRow rows[2] = {};
  for (u32 half = 0; half < 2; ++half) {
    for (u32 k = 0; k < operands.depth; ++k) {
      const u32 word = word_of_a(operands, first_group_row(thread()) + half * 8, k * 2 / kValues);
      rows[half].values[k] = factor_of<kType>(word, k % kValues);
      rows[half].stored[k] = true;
    }
  }
  add_group_product<kType>(sums, operands, rows);
}

template <FactorType kType>
void group_multiply(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base, u32 b_offset, u32 next_rows,
                    u32 next_octet) noexcept {
  multiply_whole<kType>(sums, group_operands(octets, a_base + a_offset, b_base + b_offset, next_rows, next_octet, 16));
}

template <FactorType kType>
void group_multiply_columns(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base, u32 b_offset,
                            u32 next_rows) noexcept {
  constexpr bool kWords = kType == FactorType::tf32;
  constexpr u32 kOctetBytes = 128, kDepth = kWords ? 8 : 16;
  const auto order = kWords ? GroupOperands::Order::words : GroupOperands::Order::columns;
  multiply_whole<kType>(
      sums, group_operands(octets, a_base + a_offset, b_base + b_offset, next_rows, kOctetBytes, kDepth, order));
}

template <FactorType kType>
void group_multiply_sparse(float* sums, u32 octets, u32 a_base, u32 a_offset, u32 b_base, u32 b_offset, u32 next_rows,
                           u32 next_octet, u32 places, u32 pair) noexcept {
  constexpr u32 kMeetForPlaces = 64, kPairs = 2;
  if (pair >= kPairs) Block::current().fail_thread(fmt::format("the places of pair {} of lanes; there are two", pair));
  const GroupOperands operands =
      group_operands(octets, a_base + a_offset, b_base + b_offset, next_rows, next_octet, kMaxDepth);
  const Block::Warp warp = Block::current().meet_warp(kMeetForPlaces + pair, {places});
  GroupRow rows[2] = {};
  for (u32 half = 0; half < 2; ++half) {
    for (u32 four = 0; four < kMaxDepth / 4; ++four) {
      const u32 word = warp[warp.lane / 4 * 4 + pair * 2 + four / 4][0];
      const u32 places_of_four = (half == 0 ? low_of(word) : high_of(word)) >> (four % 4 * 4) & 15U;
      const u32 first = places_of_four & 3U, second = places_of_four >> 2;
      if (first >= second) {
        Block::current().fail_thread(
            fmt::format("a row of a sparse matrix stores columns {} and {} of four {}; the first must be the smaller",
                        first, second, four));
      }
      const u32 stored = word_of_a(operands, first_group_row(thread()) + half * 8, four * 2);
      for (u32 i = 0; i < 2; ++i) {
        const u32 k = four * 4 + (i == 0 ? first : second);
        rows[half].values[k] = factor_of<kType>(stored, i);
        rows[half].stored[k] = true;
      }
    }
  }
  add_group_product<kType>(sums, operands, rows);
}

void group_multiply_tf32(float* sums, u32 octets, u32x4 a, u32 b_base, u32 b_offset) noexcept {
  constexpr u32 kMeetForRegisters = 96, kDepth = 8;
  const GroupOperands operands = {std::nullopt, b_base + b_offset,          128, 256, octets,
                                  kDepth,       GroupOperands::Order::words};
  const Block::Warp warp = Block::current().meet_warp(kMeetForRegisters, {a[0], a[1], a[2], a[3], operands.b, octets});
  std::span<double> values;
  require(Block::current().products().add(sums, operands, values));
  const std::vector<u32>& words = words_of_b(operands);
  for (u32 octet = 0; octet < octets; ++octet) {
    const auto add = [&](double of_b, u32 k, u32 column) {
      for (u32 half = 0; half < 2; ++half) {
        const u32 of_a = warp[warp.lane / 4 * 4 + k % 4][half + k / 4 * 2];
        values[octet * kQuad + half * 2 + column] += static_cast<double>(factor_of<FactorType::tf32>(of_a, 0)) * of_b;
      }
    };
    for_each_factor_of_b<FactorType::tf32>(operands, words.data() + octet * words_of_octet(operands), add);
  }
}
void group_take(u32x4*, u32x4*) noexcept {}
void group_offer() noexcept { Block::current().shared().offer(static_cast<int>(thread())); }

void group_begin(float*, u32) noexcept { Block::current().products().begin(); }
void group_commit() noexcept { Block::current().products().commit(); }
void group_release(u32 pending) noexcept {
  static thread_local std::vector<GroupOperands> ended;
  Block::current().products().release(pending, ended);
  for (const GroupOperands& operands : ended) look_at(operands);
}
void group_wait(float* sums, u32 octets, u32 pending) noexcept {
  static thread_local std::vector<GroupOperands> ended;
  require(Block::current().products().wait(sums, octets, pending, ended));
  for (const GroupOperands& operands : ended) look_at(operands);
}

void await_launch() noexcept { Block::current().await_launch(); }

float zero() { return 0.0F; }
float exponential(float x) noexcept { return std::exp(x); }
float reciprocal(float x) noexcept { return 1.0F / x; }
float power(float base, float exponent) noexcept { return std::pow(base, exponent); }
float square_root(float x) noexcept { return std::sqrt(x); }
float logarithm(float x) noexcept { return std::log(x); }

void unreachable_reached() noexcept { Block::current().fail_thread("reached code that is marked as unreachable"); }

// `bits` is 0 for an unsigned division; else the width, whose smallest value has no quotient by -1.
void check_division(i64 dividend, i64 divisor, u32 bits) noexcept {
  if (divisor == 0) Block::current().fail_thread("integer division by zero");
  if (bits != 0 && divisor == -1 && dividend == std::numeric_limits<i64>::min() >> (64 - bits)) {
    Block::current().fail_thread("integer division overflows");
  }
}

template <typename Function>
const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace

std::span<const HostFunction> device_primitives() {
  static const HostFunction table[] = {
      {"burin_dev_thread", address_of(thread)},
      {"burin_dev_block_x", address_of(block_x)},
      {"burin_dev_block_y", address_of(block_y)},
      {"burin_dev_shared_load", address_of(shared_load)},
      {"burin_dev_shared_load_if", address_of(shared_load_if)},
      {"burin_dev_shared_load4", address_of(shared_load4)},
      {"burin_dev_shared_load4_if", address_of(shared_load4_if)},
      {"burin_dev_shared_store", address_of(shared_store)},
      {"burin_dev_shared_store4", address_of(shared_store4)},
      {"burin_dev_shared_store_word", address_of(shared_store_word)},
      {"burin_dev_shared_store_half", address_of(shared_store_half)},
      {"burin_dev_shared_or", address_of(shared_or)},
      {"burin_dev_global_load_half", address_of(global_load_half)},
      {"burin_dev_global_store_half", address_of(global_store_half)},
      {"burin_dev_map_load", address_of(map_load)},
      {"burin_dev_map_store_if", address_of(map_store_if)},
      {"burin_dev_global_load", address_of(global_load)},
      {"burin_dev_global_load_if", address_of(global_load_if)},
      {"burin_dev_global_store", address_of(global_store)},
      {"burin_dev_global_load4", address_of(global_load4)},
      {"burin_dev_global_store4", address_of(global_store4)},
      {"burin_dev_scratch_load", address_of(scratch_load)},
      {"burin_dev_scratch_store", address_of(scratch_store)},
      {"burin_dev_copy_async", address_of(copy_async)},
      {"burin_dev_copy_async4", address_of(copy_async4)},
      {"burin_dev_copy_commit", address_of(copy_commit)},
      {"burin_dev_copy_wait", address_of(copy_wait)},
      {"burin_dev_gate_init", address_of(gate_init)},
      {"burin_dev_gate_init_released", address_of(gate_init_released)},
      {"burin_dev_gate_init_filled", address_of(gate_init_filled)},
      {"burin_dev_gate_release", address_of(gate_release)},
      {"burin_dev_gate_expect", address_of(gate_expect)},
      {"burin_dev_gate_wait", address_of(gate_wait)},
      {"burin_dev_gate_sleep", address_of(gate_wait)},
      {"burin_dev_bulk_copy", address_of(bulk_copy)},
      {"burin_dev_box_copy", address_of(box_copy)},
      {"burin_dev_cluster_rank", address_of(cluster_rank)},
      {"burin_dev_cluster_barrier", address_of(cluster_barrier)},
      {"burin_dev_cluster_arrive", address_of(cluster_arrive)},
      {"burin_dev_cluster_meet", address_of(cluster_meet)},
      {"burin_dev_cluster_send", address_of(cluster_send)},
      {"burin_dev_cluster_load", address_of(cluster_load)},
      {kAwaitLaunch, address_of(await_launch)},
      {"burin_dev_barrier", address_of(barrier)},
      {"burin_dev_keep_order", address_of(keep_order)},
      {"burin_dev_fence", address_of(fence)},
      {"burin_dev_count_arrival", address_of(count_arrival)},
      {"burin_dev_broadcast", address_of(broadcast)},
      {"burin_dev_shuffle_xor", address_of(shuffle_xor)},
      {"burin_dev_ballot", address_of(ballot)},
      {"burin_dev_warp_barrier", address_of(warp_barrier)},
      {"burin_dev_shared_load_rows", address_of(shared_load_rows)},
      {"burin_dev_multiply_f16", address_of(multiply<FactorType::f16>)},
      {"burin_dev_multiply_bf16", address_of(multiply<FactorType::bf16>)},
      {"burin_dev_multiply_tf32", address_of(multiply<FactorType::tf32>)},
      {"burin_dev_multiply_sparse_f16", address_of(multiply_sparse<FactorType::f16>)},
      {"burin_dev_multiply_sparse_bf16", address_of(multiply_sparse<FactorType::bf16>)},
      {"burin_dev_multiply_sparse_tf32", address_of(multiply_sparse<FactorType::tf32>)},
      {"burin_dev_group_begin", address_of(group_begin)},
      {"burin_dev_group_multiply_f16", address_of(group_multiply<FactorType::f16>)},
      {"burin_dev_group_multiply_bf16", address_of(group_multiply<FactorType::bf16>)},
      {"burin_dev_group_multiply_columns_f16", address_of(group_multiply_columns<FactorType::f16>)},
      {"burin_dev_group_multiply_columns_bf16", address_of(group_multiply_columns<FactorType::bf16>)},
      {"burin_dev_group_multiply_columns_tf32", address_of(group_multiply_columns<FactorType::tf32>)},
      {"burin_dev_group_offer", address_of(group_offer)},
      {"burin_dev_group_multiply_sparse_f16", address_of(group_multiply_sparse<FactorType::f16>)},
      {"burin_dev_group_multiply_sparse_bf16", address_of(group_multiply_sparse<FactorType::bf16>)},
      {"burin_dev_group_multiply_tf32", address_of(group_multiply_tf32)},
      {"burin_dev_group_take", address_of(group_take)},
      {"burin_dev_group_release", address_of(group_release)},
      {"burin_dev_group_commit", address_of(group_commit)},
      {"burin_dev_group_wait", address_of(group_wait)},
      {"burin_dev_tf32", address_of(to_tf32)},
      {"burin_dev_exit", address_of(exit_thread)},
      {"burin_dev_fma_if", address_of(fma_if)},
      {"burin_dev_shared_load_word", address_of(shared_load_word)},
      {"burin_dev_shared_load_word_if", address_of(shared_load_word_if)},
      {"burin_dev_global_load_word", address_of(global_load_word)},
      {"burin_dev_global_store_word", address_of(global_store_word)},
      {"burin_dev_f16_low", address_of(f16_low)},
      {"burin_dev_f16_high", address_of(f16_high)},
      {"burin_dev_f16_pack", address_of(f16_pack)},
      {"burin_dev_bf16_pack", address_of(bf16_pack)},
      {"burin_dev_f16x2_mul", address_of(f16x2_mul)},
      {"burin_dev_f16x2_fma", address_of(f16x2_fma)},
      {"burin_dev_f16x2_max", address_of(f16x2_max)},
      {"burin_dev_bf16x2_max", address_of(bf16x2_max)},
      {"burin_dev_zero", address_of(zero)},
      {"burin_dev_exp", address_of(exponential)},
      {"burin_dev_reciprocal", address_of(reciprocal)},
      {"burin_dev_power", address_of(power)},
      {"burin_dev_sqrt", address_of(square_root)},
      {"burin_dev_log", address_of(logarithm)},
  };
  return table;
}

std::span<const HostFunction> support_functions() {
  static const HostFunction table[] = {
      {kUnreachableReached, address_of(unreachable_reached)},
      {kCheckDivision, address_of(check_division)},
      {"fmaf", address_of(::fmaf)},
      {"fma", address_of(::fma)},
      {"fmodf", address_of(::fmodf)},
      {"fmod", address_of(::fmod)},
      {"floorf", address_of(::floorf)},
      {"floor", address_of<double(double)>(::floor)},
      {"ceilf", address_of(::ceilf)},
      {"ceil", address_of<double(double)>(::ceil)},
      {"truncf", address_of(::truncf)},
      {"trunc", address_of<double(double)>(::trunc)},
      {"roundf", address_of(::roundf)},
      {"round", address_of<double(double)>(::round)},
      {"rintf", address_of(::rintf)},
      {"rint", address_of<double(double)>(::rint)},
      {"nearbyintf", address_of(::nearbyintf)},
      {"nearbyint", address_of<double(double)>(::nearbyint)},
      {"fminf", address_of(::fminf)},
      {"fmin", address_of<double(double, double)>(::fmin)},
      {"fmaxf", address_of(::fmaxf)},
      {"fmax", address_of<double(double, double)>(::fmax)},
      {"memcpy", address_of<void*(void*, const void*, std::size_t)>(std::memcpy)},
      {"memmove", address_of<void*(void*, const void*, std::size_t)>(std::memmove)},
      {"memset", address_of<void*(void*, int, std::size_t)>(std::memset)},
  };
  return table;
}

}  // namespace burin
