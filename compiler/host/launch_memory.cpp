#include "compiler/host/launch_memory.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string_view>

namespace burin {
namespace {

constexpr std::array<std::string_view, kBuffers> kBufferNames = {"input",
                                                                 "output",
                                                                 "residual",
                                                                 "partial sums",
                                                                 "counters",
                                                                 "activity map of the input",
                                                                 "activity map of the output",
                                                                 "second input",
                                                                 "weights"};

// Each buffer begins in the middle of a range of 2^44 bytes; the top bits are such that the CPU has no such address.
constexpr int kRangeBits = 44;
constexpr std::uint64_t kRangeMiddle = std::uint64_t{1} << (kRangeBits - 1);
constexpr std::uint64_t kNoSuchMemory = std::uint64_t{1} << 62;

constexpr std::uint64_t base_of(LaunchBuffer buffer) {
  return kNoSuchMemory | (static_cast<std::uint64_t>(buffer) << kRangeBits) | kRangeMiddle;
}
constexpr std::int64_t element_bytes(LaunchBuffer buffer) {
  return buffer == LaunchBuffer::input_activity || buffer == LaunchBuffer::output_activity ? 1 : 4;
}
std::string_view name_of(LaunchBuffer buffer) { return kBufferNames[static_cast<std::size_t>(buffer)]; }

// Who wrote a partial sum: block (counted from 1), thread and barrier interval, packed.
constexpr int kIntervalBits = 21, kThreadBits = 11;
constexpr std::uint64_t kLastInterval = (std::uint64_t{1} << kIntervalBits) - 1;
std::uint64_t pack(const Accessor& who) {
  const std::uint64_t interval = who.interval < kLastInterval ? who.interval : kLastInterval;
  return ((static_cast<std::uint64_t>(who.block) + 1) << (kThreadBits + kIntervalBits)) |
         (static_cast<std::uint64_t>(who.thread) << kIntervalBits) | interval;
}
Accessor unpack(std::uint64_t packed) {
  return {static_cast<std::uint32_t>((packed >> (kThreadBits + kIntervalBits)) - 1),
          static_cast<int>((packed >> kIntervalBits) & ((1U << kThreadBits) - 1)),
          static_cast<std::uint32_t>(packed & kLastInterval)};
}

}  // namespace

LaunchMemory::LaunchMemory(const ConvShape& shape, const LaunchGeometry& launch, std::int64_t tiles,
                           std::span<const float> input, std::span<float> output, std::span<const float> residual,
                           std::span<const std::uint8_t> input_activity, std::span<std::uint8_t> output_activity)
    : shape_(shape),
      input_layout_(launch.input_layout),
      output_layout_(launch.output_layout),
      output_has_filling_(shape.out_channels % channels_together(launch.output_layout) != 0),
      partials_per_tile_(launch.workspace_bytes_per_tile / kWordBytes),
      width_((tiles + launch.cluster_tiles - 1) / launch.cluster_tiles * launch.cluster_tiles),
      input_base_(base_of(LaunchBuffer::input)),
      input_(input),
      residual_(residual),
      output_(output),
      input_activity_(input_activity),
      output_activity_(output_activity),
      partial_count_(partials_per_tile_ * tiles),
      counter_count_(launch.counters_per_tile * tiles),
      block_count_(width_ * launch.slices),
      output_writer_(std::make_unique<std::atomic<std::uint32_t>[]>(output.size())),
      activity_writer_(std::make_unique<std::atomic<std::uint32_t>[]>(output_activity.size())),
      partials_(std::make_unique<Partial[]>(static_cast<std::size_t>(partial_count_))),
      counters_(std::make_unique<std::atomic<std::uint32_t>[]>(static_cast<std::size_t>(counter_count_))),
      arrived_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(block_count_))) {
  if (launch.output_image_words == 0) return;
  written_ = OperatorTensor{.image_words = launch.output_image_words, .run_words = shape.output_elements()};
}

LaunchMemory::LaunchMemory(const OperatorTensor& written, std::int64_t blocks, std::span<const float> input,
                           std::span<float> output, std::span<const float> second,
                           std::span<const std::uint32_t> weights)
    : input_layout_(TensorLayout::nchw),
      output_layout_(TensorLayout::nchw),
      written_(written),
      width_(blocks),
      input_base_(base_of(LaunchBuffer::input)),
      input_(input),
      second_(second),
      weights_(weights),
      output_(output),
      block_count_(blocks),
      output_writer_(std::make_unique<std::atomic<std::uint32_t>[]>(output.size())) {}

std::int64_t LaunchMemory::elements(LaunchBuffer buffer) const {
  switch (buffer) {
    case LaunchBuffer::input:
      return static_cast<std::int64_t>(input_.size());
    case LaunchBuffer::output:
      return static_cast<std::int64_t>(output_.size());
    case LaunchBuffer::residual:
      return static_cast<std::int64_t>(residual_.size());
    case LaunchBuffer::partials:
      return partial_count_;
    case LaunchBuffer::counters:
      return counter_count_;
    case LaunchBuffer::input_activity:
      return static_cast<std::int64_t>(input_activity_.size());
    case LaunchBuffer::output_activity:
      return static_cast<std::int64_t>(output_activity_.size());
    case LaunchBuffer::second:
      return static_cast<std::int64_t>(second_.size());
    case LaunchBuffer::weights:
      return static_cast<std::int64_t>(weights_.size());
  }
  return 0;
}

std::uint64_t LaunchMemory::base(LaunchBuffer buffer) const { return elements(buffer) == 0 ? 0 : base_of(buffer); }

bool LaunchMemory::is_weight(std::uint64_t address) const {
  return (address ^ kNoSuchMemory) >> kRangeBits == static_cast<std::uint64_t>(LaunchBuffer::weights);
}

std::string LaunchMemory::describe_block(std::uint32_t block) const {
  return fmt::format("block ({}, {})", block % width_, block / width_);
}

std::string LaunchMemory::describe_element(LaunchBuffer buffer, std::int64_t element) const {
  switch (buffer) {
    case LaunchBuffer::partials:
      return fmt::format("{} (tile {}, word {})", element, element / partials_per_tile_, element % partials_per_tile_);
    case LaunchBuffer::counters:
      return std::to_string(element);
    case LaunchBuffer::input_activity:
    case LaunchBuffer::output_activity: {
      const int channels = buffer == LaunchBuffer::input_activity ? shape_.in_channels : shape_.out_channels;
      return fmt::format("{} (cell {}, channel {})", element, element / channels, element % channels);
    }
    default:
      break;
  }
  if (written_ && (buffer == LaunchBuffer::output || shape_.in_channels == 0)) {
    return fmt::format("{} (image {}, word {})", element, element / written_->image_words,
                       element % written_->image_words);
  }
  const TensorPlace at = place(buffer, element);
  if (images_together(buffer == LaunchBuffer::input ? input_layout_ : output_layout_) == 2) {
    return fmt::format("{} (images {} and {}, channel {}, row {}, col {})", element, at.image, at.image + 1, at.channel,
                       at.row, at.col);
  }
  return fmt::format("{} (image {}, channel {}, row {}, col {})", element, at.image, at.channel, at.row, at.col);
}

TensorPlace LaunchMemory::place(LaunchBuffer buffer, std::int64_t element) const {
  const bool input = buffer == LaunchBuffer::input;
  const TensorLayout layout = input ? input_layout_ : output_layout_;
  return place_of(layout, input ? shape_.in_channels : shape_.out_channels, input ? shape_.in_h : shape_.out_h(),
                  input ? shape_.in_w : shape_.out_w(), element * images_together(layout));
}

bool LaunchMemory::is_filling(std::int64_t output_element) const {
  return output_has_filling_ && place(LaunchBuffer::output, output_element).channel >= shape_.out_channels;
}

bool LaunchMemory::is_written(std::int64_t output_element) const {
  return !written_ || written_->contains(output_element % written_->image_words);
}

std::string LaunchMemory::misplaced(LaunchBuffer wanted, const char* access, std::uint64_t address) const {
  const std::uint64_t range = (address ^ kNoSuchMemory) >> kRangeBits;
  if (range >= kBuffers) {
    return fmt::format("{} {} at address {:#x}, which belongs to no buffer of the launch", access, name_of(wanted),
                       address);
  }
  const auto found = static_cast<LaunchBuffer>(range);
  const auto offset = static_cast<std::int64_t>(address - base_of(found));
  const std::int64_t count = elements(found);
  if (count == 0) {
    return fmt::format("{} {}, which this launch does not have, at byte {}", access, name_of(found), offset);
  }
  if (found != wanted) {
    return fmt::format("{} {} at byte {} of the {}, which is not for this access", access, name_of(wanted), offset,
                       name_of(found));
  }
  if (offset % element_bytes(found) != 0) {
    return fmt::format("misaligned {} {} at byte {}, which is not a multiple of {}", access, name_of(found), offset,
                       kWordBytes);
  }
  const std::int64_t element = offset / element_bytes(found);
  return fmt::format("{} {} out of bounds: element {}, {} the {} of the launch", access, name_of(found), element,
                     element < 0 ? "before" : "past", count);
}

std::int64_t LaunchMemory::locate(LaunchBuffer buffer, const char* access, std::uint64_t address,
                                  std::string& fault) const {
  const std::uint64_t offset = address - base_of(buffer);
  const auto bytes = static_cast<std::uint64_t>(element_bytes(buffer));
  if (offset % bytes == 0 && offset / bytes < static_cast<std::uint64_t>(elements(buffer))) {
    return static_cast<std::int64_t>(offset / bytes);
  }
  fault = misplaced(buffer, access, address);
  return -1;
}

std::optional<std::string> LaunchMemory::load_other(std::uint64_t address, float& value) const {
  const std::uint64_t range = (address ^ kNoSuchMemory) >> kRangeBits;
  const auto meant = [&](LaunchBuffer buffer) { return range == static_cast<std::uint64_t>(buffer); };
  LaunchBuffer buffer = LaunchBuffer::input;
  for (const LaunchBuffer other : {LaunchBuffer::residual, LaunchBuffer::second, LaunchBuffer::weights}) {
    if (meant(other)) buffer = other;
  }
  std::string fault;
  const std::int64_t element = locate(buffer, "load from", address, fault);
  if (element < 0) return fault;
  const auto index = static_cast<std::size_t>(element);
  if (buffer == LaunchBuffer::weights) {
    value = std::bit_cast<float>(weights_[index]);
  } else {
    value = buffer == LaunchBuffer::second     ? second_[index]
            : buffer == LaunchBuffer::residual ? residual_[index]
                                               : input_[index];
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::check_quad(const char* access, std::uint64_t address) const {
  constexpr std::uint64_t kQuadBytes = 16;
  if (address % kQuadBytes == 0) return std::nullopt;
  const std::uint64_t range = (address ^ kNoSuchMemory) >> kRangeBits;
  if (range >= kBuffers) {
    return fmt::format("{} of four words at address {:#x}, which belongs to no buffer of the launch", access, address);
  }
  const auto buffer = static_cast<LaunchBuffer>(range);
  return fmt::format("misaligned {} of four words at byte {} of the {}, which is not a multiple of {}", access,
                     static_cast<std::int64_t>(address - base_of(buffer)), name_of(buffer), kQuadBytes);
}

std::optional<std::string> LaunchMemory::load_run(std::uint64_t address, std::uint32_t bytes,
                                                  std::span<const float>& values) const {
  constexpr std::uint32_t kBulkBytes = 16;
  const bool of_weights = is_weight(address);
  const LaunchBuffer buffer = of_weights ? LaunchBuffer::weights : LaunchBuffer::input;
  // Words are copied as they are, whatever they mean.
  const std::span<const float> source =
      of_weights ? std::span(reinterpret_cast<const float*>(weights_.data()), weights_.size()) : input_;
  const std::uint64_t offset = address - base(buffer);
  if (offset >= source.size_bytes() || offset % kWordBytes != 0) return misplaced(buffer, "bulk copy from", address);
  if (offset % kBulkBytes != 0) {
    return fmt::format("misaligned bulk copy from {} at byte {}, which is not a multiple of {}", name_of(buffer),
                       offset, kBulkBytes);
  }
  if (bytes == 0 || bytes % kBulkBytes != 0) {
    return fmt::format("bulk copy of {} bytes from {}; it must be a multiple of {} and not 0", bytes, name_of(buffer),
                       kBulkBytes);
  }
  if (bytes > source.size_bytes() - offset) {
    return fmt::format("bulk copy from {} out of bounds: {} bytes from element {} on, of the {} elements of the launch",
                       name_of(buffer), bytes, offset / kWordBytes, source.size());
  }
  values = source.subspan(offset / kWordBytes, bytes / kWordBytes);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_output(std::uint64_t address, float value, const Accessor& who) {
  std::string fault;
  const std::int64_t element = locate(LaunchBuffer::output, "store to", address, fault);
  if (element < 0) return fault;
  if (is_filling(element)) return std::nullopt;
  if (!is_written(element)) {
    return fmt::format("store to output element {}, which is not the kernel's",
                       describe_element(LaunchBuffer::output, element));
  }
  const auto index = static_cast<std::size_t>(element);
  const std::uint32_t first = output_writer_[index].exchange(who.block + 1, std::memory_order_relaxed);
  if (first != 0) {
    return fmt::format("store to output element {} a second time, after {}",
                       describe_element(LaunchBuffer::output, element), describe_block(first - 1));
  }
  output_[index] = value;
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::load_activity(std::uint64_t address, std::uint32_t& value) const {
  std::string fault;
  const std::int64_t element = locate(LaunchBuffer::input_activity, "load from", address, fault);
  if (element < 0) return fault;
  value = input_activity_[static_cast<std::size_t>(element)];
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_activity(std::uint64_t address, std::uint32_t value,
                                                        const Accessor& who) {
  std::string fault;
  const std::int64_t element = locate(LaunchBuffer::output_activity, "store to", address, fault);
  if (element < 0) return fault;
  const auto index = static_cast<std::size_t>(element);
  const std::uint32_t first = activity_writer_[index].exchange(who.block + 1, std::memory_order_relaxed);
  if (first != 0) {
    return fmt::format("store to byte {} of the {} a second time, after {}",
                       describe_element(LaunchBuffer::output_activity, element), name_of(LaunchBuffer::output_activity),
                       describe_block(first - 1));
  }
  output_activity_[index] = static_cast<std::uint8_t>(value);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::load_partial(std::uint64_t address, float& value, const Accessor& who) const {
  std::string fault;
  const std::int64_t element = locate(LaunchBuffer::partials, "scratch load from", address, fault);
  if (element < 0) return fault;
  const Partial& partial = partials_[static_cast<std::size_t>(element)];
  const std::uint64_t packed = partial.writer.load(std::memory_order_acquire);
  if (packed == 0) {
    return fmt::format("load of partial sum {}, which nobody has written in this launch",
                       describe_element(LaunchBuffer::partials, element));
  }
  const Accessor writer = unpack(packed);
  if (writer.block != who.block) {
    if (!arrived_[writer.block].load(std::memory_order_acquire) ||
        !arrived_[who.block].load(std::memory_order_acquire)) {
      return fmt::format("load of partial sum {} of {} before both blocks have counted their arrival",
                         describe_element(LaunchBuffer::partials, element), describe_block(writer.block));
    }
  } else if (writer.thread != who.thread && writer.interval == who.interval) {
    return fmt::format("race on partial sum {}: written by thread {}, without a barrier in between",
                       describe_element(LaunchBuffer::partials, element), writer.thread);
  }
  value = partial.value.load(std::memory_order_relaxed);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_partial(std::uint64_t address, float value, const Accessor& who) {
  std::string fault;
  const std::int64_t element = locate(LaunchBuffer::partials, "scratch store to", address, fault);
  if (element < 0) return fault;
  Partial& partial = partials_[static_cast<std::size_t>(element)];
  partial.value.store(value, std::memory_order_relaxed);
  const std::uint64_t packed = partial.writer.exchange(pack(who), std::memory_order_acq_rel);
  if (packed != 0) {
    const Accessor writer = unpack(packed);
    if (writer.block != who.block || writer.thread != who.thread) {
      return fmt::format("store to partial sum {}, which {}, thread {} has written",
                         describe_element(LaunchBuffer::partials, element), describe_block(writer.block),
                         writer.thread);
    }
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::count_arrival(std::uint64_t address, std::uint32_t last, std::uint32_t& old,
                                                       const Accessor& who) {
  std::string fault;
  const std::int64_t element = locate(LaunchBuffer::counters, "count of an arrival in", address, fault);
  if (element < 0) return fault;
  arrived_[who.block].store(true, std::memory_order_release);
  std::atomic<std::uint32_t>& counter = counters_[static_cast<std::size_t>(element)];
  old = counter.load(std::memory_order_relaxed);
  while (!counter.compare_exchange_weak(old, old >= last ? 0 : old + 1, std::memory_order_acq_rel)) {
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::incomplete() const {
  std::int64_t missing = 0, first = -1;
  for (std::int64_t i = 0; i < elements(LaunchBuffer::output); ++i) {
    if (output_writer_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) != 0 || is_filling(i)) continue;
    if (!is_written(i)) continue;
    if (missing++ == 0) first = i;
  }
  if (missing != 0) {
    return fmt::format("output element {} was not written by any thread; {} of {} elements are missing",
                       describe_element(LaunchBuffer::output, first), missing, elements(LaunchBuffer::output));
  }
  for (std::int64_t i = 0; i < elements(LaunchBuffer::output_activity); ++i) {
    if (activity_writer_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) != 0) continue;
    return fmt::format("byte {} of the {} was not written by any thread",
                       describe_element(LaunchBuffer::output_activity, i), name_of(LaunchBuffer::output_activity));
  }
  for (std::int64_t i = 0; i < counter_count_; ++i) {
    const std::uint32_t value = counters_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
    if (value != 0) return fmt::format("arrival counter {} is {} after the launch, not zero", i, value);
  }
  return std::nullopt;
}

}  // namespace burin
