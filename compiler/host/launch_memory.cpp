#include "compiler/host/launch_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace burin {
namespace {

std::string_view name_of(TensorRole role) {
  switch (role) {
    case TensorRole::partials:
      return "partial sums";
    case TensorRole::input_map:
      return "activity map of the input";
    case TensorRole::output_map:
      return "activity map of the output";
    default:
      return to_string(role);
  }
}

// Each buffer begins in the middle of a range of 2^44 bytes; the top bits are such that the CPU has no such address.
constexpr int kRangeBits = 44;
constexpr std::uint64_t kRangeMiddle = std::uint64_t{1} << (kRangeBits - 1);
constexpr std::uint64_t kNoSuchMemory = std::uint64_t{1} << 62;

constexpr std::uint64_t base_of(TensorRole role) {
  return kNoSuchMemory | (static_cast<std::uint64_t>(role) << kRangeBits) | kRangeMiddle;
}
std::array<std::int64_t, kRoles> element_bytes_of(const KernelForm& form) {
  std::array<std::int64_t, kRoles> bytes{};
  bytes.fill(kWordBytes);
  for (const KernelTensor& tensor : form.tensors) {
    bytes[static_cast<std::size_t>(tensor.role)] = tensor.map ? 1 : tensor.word_bytes();
  }
  return bytes;
}

// The elements of a tensor whose memory has so many words.
std::int64_t elements_of(const KernelForm& form, TensorRole role, std::size_t words, int batch) {
  const KernelTensor* tensor = form.find(role);
  const bool loose = tensor != nullptr && tensor->format().is_loose() && words > 0;
  return loose ? tensor->spanned_words(batch) : static_cast<std::int64_t>(words);
}

// Loose halves that may begin in the middle of a word are accessed one by one.
std::uint64_t bytes_of_words(const KernelTensor& tensor, std::int64_t elements) {
  if (tensor.alignment < kWordBytes) return 0;
  return static_cast<std::uint64_t>(elements * tensor.word_bytes() / kWordBytes * kWordBytes);
}

std::string misplaced_half(const char* access, TensorRole role) {
  return fmt::format("{} {}, which is accessed in whole words", access, name_of(role));
}

// The role whose range the address lies in, or a number that is none.
constexpr std::uint64_t range_of(std::uint64_t address) { return (address ^ kNoSuchMemory) >> kRangeBits; }

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

TensorPlace place(const KernelTensor& tensor, std::int64_t element) {
  return place_of(tensor.layout, tensor.channels, tensor.rows, tensor.cols, element * tensor.elements_per_word());
}

}  // namespace

LaunchMemory::LaunchMemory(const KernelForm& form, const HostLaunchArguments& arguments)
    : form_(form),
      written_(form.output()),
      output_has_filling_(written_.channels % channels_together(written_.layout) != 0),
      partials_per_tile_(form.launch.workspace_bytes_per_tile / kWordBytes),
      width_(grid_width(form.launch, arguments.batch)),
      input_base_(base_of(TensorRole::input)),
      arguments_(arguments),
      elements_({elements_of(form, TensorRole::input, arguments.input.size(), arguments.batch),
                 elements_of(form, TensorRole::residual, arguments.residual.size(), arguments.batch),
                 elements_of(form, TensorRole::output, arguments.output.size(), arguments.batch),
                 std::ssize(arguments.weights), partials_per_tile_ * tile_count(form.launch, arguments.batch),
                 form.launch.counters_per_tile * tile_count(form.launch, arguments.batch),
                 std::ssize(arguments.input_map), std::ssize(arguments.output_map)}),
      element_bytes_(element_bytes_of(form)),
      output_writer_(
          std::make_unique<std::atomic<std::uint32_t>[]>(static_cast<std::size_t>(elements(TensorRole::output)))),
      map_writer_(std::make_unique<std::atomic<std::uint32_t>[]>(arguments.output_map.size())),
      partials_(std::make_unique<Partial[]>(static_cast<std::size_t>(elements(TensorRole::partials)))),
      counters_(
          std::make_unique<std::atomic<std::uint32_t>[]>(static_cast<std::size_t>(elements(TensorRole::counters)))),
      arrived_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(width_ * form.launch.slices))) {
  input_bytes_ = bytes_of_words(form.input(), elements(TensorRole::input));
}

std::uint64_t LaunchMemory::box_address(std::size_t number) {
  return kNoSuchMemory | ((kRoles + number) << kRangeBits) | kRangeMiddle;
}

std::uint64_t LaunchMemory::base(TensorRole role) const { return elements(role) == 0 ? 0 : base_of(role); }

bool LaunchMemory::is_weight(std::uint64_t address) const {
  return range_of(address) == static_cast<std::uint64_t>(TensorRole::weights);
}

std::string LaunchMemory::describe_block(std::uint32_t block) const {
  return fmt::format("block ({}, {})", block % width_, block / width_);
}

std::string LaunchMemory::describe_element(TensorRole role, std::int64_t element) const {
  const KernelTensor& tensor = *form_.find(role);
  switch (role) {
    case TensorRole::partials:
      return fmt::format("{} (tile {}, word {})", element, element / partials_per_tile_, element % partials_per_tile_);
    case TensorRole::counters:
    case TensorRole::weights:
      return std::to_string(element);
    case TensorRole::input_map:
    case TensorRole::output_map:
      return fmt::format("{} (cell {}, channel {})", element, element / tensor.channels, element % tensor.channels);
    default:
      break;
  }
  if (!tensor.is_image() || tensor.image_words != tensor.words()) {
    return fmt::format("{} (image {}, word {})", element, element / tensor.image_words, element % tensor.image_words);
  }
  const TensorPlace at = place(tensor, element);
  if (has_places(tensor.layout)) {
    const std::string channels = tensor.elements_per_word() == 2
                                     ? fmt::format("channels {} and {}", at.channel, at.channel + 1)
                                     : fmt::format("channel {}", at.channel);
    return fmt::format("{} (image {}, {}, row {}, col {})", element, at.image, channels, at.row, at.col);
  }
  if (tensor.elements_per_word() == 2) {
    return fmt::format("{} (images {} and {}, channel {}, row {}, col {})", element, at.image, at.image + 1, at.channel,
                       at.row, at.col);
  }
  return fmt::format("{} (image {}, channel {}, row {}, col {})", element, at.image, at.channel, at.row, at.col);
}

bool LaunchMemory::is_filling(std::int64_t output_element) const {
  // In a place of halves a word has another channel as well.
  const std::int64_t last = has_places(written_.layout) ? written_.elements_per_word() - 1 : 0;
  return output_has_filling_ &&
         place(written_, output_element % written_.image_words).channel + last >= written_.channels;
}

bool LaunchMemory::means_nothing(std::int64_t output_element) const {
  return is_filling(output_element) && !fills_with_zeros(written_.layout);
}

bool LaunchMemory::has_zeros(std::int64_t output_element, float value) const {
  const int together = images_together(written_.layout);
  const TensorPlace at = place(written_, output_element % written_.image_words);
  if (has_places(written_.layout)) {
    std::int64_t channel = at.channel;
    for (const float each : unpack_words(written_.element, {&value, 1})) {
      if (channel++ >= written_.channels && each != 0) return false;
    }
    return true;
  }
  std::int64_t image = output_element / written_.image_words * together + at.image;
  for (const float each : unpack_words(written_.element, {&value, 1})) {
    if (image++ < arguments_.batch && each != 0) return false;
  }
  return true;
}

bool LaunchMemory::is_written(std::int64_t output_element) const {
  return written_.contains(output_element % written_.image_words);
}

std::string LaunchMemory::misplaced(TensorRole wanted, const char* access, std::uint64_t address) const {
  const std::uint64_t range = range_of(address);
  if (range >= kRoles) {
    return fmt::format("{} {} at address {:#x}, which belongs to no buffer of the launch", access, name_of(wanted),
                       address);
  }
  const auto found = static_cast<TensorRole>(range);
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
                       element_bytes(found));
  }
  const std::int64_t element = offset / element_bytes(found);
  return fmt::format("{} {} out of bounds: element {}, {} the {} of the launch", access, name_of(found), element,
                     element < 0 ? "before" : "past", count);
}

std::optional<std::string> LaunchMemory::locate(TensorRole role, const char* access, std::uint64_t address,
                                                std::size_t& index) const {
  const std::uint64_t offset = address - base_of(role);
  const auto bytes = static_cast<std::uint64_t>(element_bytes(role));
  index = offset / bytes;
  if (offset % bytes == 0 && index < static_cast<std::uint64_t>(elements(role))) return std::nullopt;
  return misplaced(role, access, address);
}

std::optional<std::string> LaunchMemory::locate_word(TensorRole role, const char* access, std::uint64_t address,
                                                     std::size_t& index) const {
  if (auto fault = locate(role, access, address, index)) return fault;
  if (element_bytes(role) == kWordBytes) return std::nullopt;
  const std::uint64_t offset = address - base_of(role);
  index = offset / kWordBytes;
  if (form_.the(role).alignment < kWordBytes || offset % kWordBytes != 0) {
    return fmt::format("misaligned {} {} of a whole word at byte {}, where loose halves begin at multiples of {}",
                       access, name_of(role), offset, std::min(form_.the(role).alignment, kWordBytes));
  }
  return std::nullopt;  // where words may be accessed, images are whole words
}

std::optional<std::string> LaunchMemory::load_half(std::uint64_t address, std::uint16_t& value) const {
  const bool is_residual = range_of(address) == static_cast<std::uint64_t>(TensorRole::residual);
  const TensorRole role = is_residual ? TensorRole::residual : TensorRole::input;
  std::size_t index = 0;
  if (auto fault = locate(role, "load of a half from", address, index)) return fault;
  if (element_bytes(role) != sizeof value) return misplaced_half("load of a half from", role);
  const std::span<const float> memory = is_residual ? arguments_.residual : arguments_.input;
  std::memcpy(&value, std::as_bytes(memory).data() + index * sizeof value, sizeof value);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_half(std::uint64_t address, std::uint16_t value, const Accessor& who) {
  std::size_t index = 0;
  if (auto fault = locate(TensorRole::output, "store of a half to", address, index)) return fault;
  if (element_bytes(TensorRole::output) != sizeof value) {
    return misplaced_half("store of a half to", TensorRole::output);
  }
  if (auto fault = claim(static_cast<std::int64_t>(index), who)) return fault;
  std::memcpy(std::as_writable_bytes(arguments_.output).data() + index * sizeof value, &value, sizeof value);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::load_other(std::uint64_t address, float& value) const {
  const auto range = static_cast<TensorRole>(range_of(address));
  const bool is_known = range == TensorRole::residual || range == TensorRole::weights;
  const TensorRole role = is_known ? range : TensorRole::input;
  std::size_t index = 0;
  if (auto fault = locate_word(role, "load from", address, index)) return fault;
  if (role == TensorRole::weights) {
    value = std::bit_cast<float>(arguments_.weights[index]);
  } else {
    value = role == TensorRole::residual ? arguments_.residual[index] : arguments_.input[index];
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::check_quad(const char* access, std::uint64_t address) const {
  constexpr std::uint64_t kQuadBytes = 16;
  if (address % kQuadBytes == 0) return std::nullopt;
  const std::uint64_t range = range_of(address);
  if (range >= kRoles) {
    return fmt::format("{} of four words at address {:#x}, which belongs to no buffer of the launch", access, address);
  }
  const auto role = static_cast<TensorRole>(range);
  return fmt::format("misaligned {} of four words at byte {} of the {}, which is not a multiple of {}", access,
                     static_cast<std::int64_t>(address - base_of(role)), name_of(role), kQuadBytes);
}

std::optional<std::string> LaunchMemory::load_run(std::uint64_t address, std::uint32_t bytes,
                                                  std::span<const float>& values) const {
  constexpr std::uint32_t kBulkBytes = 16;
  const bool of_weights = is_weight(address);
  const TensorRole role = of_weights ? TensorRole::weights : TensorRole::input;
  // Words are copied as they are, whatever they mean.
  const std::span<const float> source =
      of_weights ? std::span(reinterpret_cast<const float*>(arguments_.weights.data()), arguments_.weights.size())
                 : arguments_.input;
  const std::uint64_t offset = address - base(role);
  if (offset >= source.size_bytes() || offset % kWordBytes != 0) return misplaced(role, "bulk copy from", address);
  if (offset % kBulkBytes != 0) {
    return fmt::format("misaligned bulk copy from {} at byte {}, which is not a multiple of {}", name_of(role), offset,
                       kBulkBytes);
  }
  if (bytes == 0 || bytes % kBulkBytes != 0) {
    return fmt::format("bulk copy of {} bytes from {}; it must be a multiple of {} and not 0", bytes, name_of(role),
                       kBulkBytes);
  }
  if (bytes > source.size_bytes() - offset) {
    return fmt::format("bulk copy from {} out of bounds: {} bytes from element {} on, of the {} elements of the launch",
                       name_of(role), bytes, offset / kWordBytes, source.size());
  }
  values = source.subspan(offset / kWordBytes, bytes / kWordBytes);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::load_box(std::uint64_t address, const BoxPlace& place,
                                                  std::vector<float>& values, bool& swizzled) const {
  std::size_t number = 0;
  while (number < form_.boxes.size() && address != box_address(number)) ++number;
  if (number == form_.boxes.size())
    return fmt::format("copy of a box at {:#x}, which the kernel is not given", address);
  const TensorBox& box = form_.boxes[number];
  swizzled = box.swizzled;
  const KernelTensor& tensor = form_.tensors[static_cast<std::size_t>(box.tensor)];
  const std::uint64_t first = base_of(tensor.role);
  const BoxAxes axes = axes_of(box, tensor, arguments_.batch);
  constexpr std::size_t kPixelWords = kBoxTargetAlignment / kWordBytes;
  values.assign(static_cast<std::size_t>(box.bytes()) / kWordBytes, 0);
  // Of a coordinate before the first one there are zeros, as behind the last one.
  const auto is_inside = [&](std::size_t axis, std::int64_t at) {
    return at >= 0 && static_cast<std::uint64_t>(at) < axes.extents[axis];
  };
  float* pixel = values.data();
  for (int octet = 0; octet < box.octets; ++octet) {
    for (int row = 0; row < box.rows; ++row) {
      for (int col = 0; col < box.cols; ++col, pixel += kPixelWords) {
        const std::array<std::int64_t, BoxAxes::kAxes> at = {0, place.col + std::int64_t{col} * box.step_cols,
                                                             place.row + std::int64_t{row} * box.step_rows,
                                                             std::int64_t{place.octet} + octet, place.images};
        std::uint64_t offset = 0;
        bool inside = true;
        for (std::size_t axis = 1; axis < at.size(); ++axis) {
          inside = inside && is_inside(axis, at[axis]);
          offset += axes.strides[axis - 1] * static_cast<std::uint64_t>(at[axis]);
        }
        for (std::size_t word = 0; inside && word < kPixelWords; ++word) {
          if (auto fault = load(first + offset + word * kWordBytes, pixel[word])) return fault;
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_output(std::uint64_t address, float value, const Accessor& who) {
  std::size_t index = 0;
  if (auto fault = locate_word(TensorRole::output, "store to", address, index)) return fault;
  const auto together = static_cast<std::int64_t>(kWordBytes / element_bytes(TensorRole::output));
  const std::int64_t first = static_cast<std::int64_t>(index) * together;
  if (means_nothing(first)) return std::nullopt;
  for (std::int64_t element = first; element < first + together; ++element) {
    if (auto fault = claim(element, who)) return fault;
  }
  if (is_filling(first) && !has_zeros(first, value)) {
    return fmt::format("store to output element {}, which fills up the channels and must be zero in {}",
                       describe_element(TensorRole::output, first), to_string(written_.layout));
  }
  arguments_.output[index] = value;
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::claim(std::int64_t output_element, const Accessor& who) {
  if (!is_written(output_element)) {
    return fmt::format("store to output element {}, which is not the kernel's",
                       describe_element(TensorRole::output, output_element));
  }
  const std::uint32_t first =
      output_writer_[static_cast<std::size_t>(output_element)].exchange(who.block + 1, std::memory_order_relaxed);
  if (first == 0) return std::nullopt;
  return fmt::format("store to output element {} a second time, after {}",
                     describe_element(TensorRole::output, output_element), describe_block(first - 1));
}

std::optional<std::string> LaunchMemory::load_activity(std::uint64_t address, std::uint32_t& value) const {
  std::size_t index = 0;
  if (auto fault = locate(TensorRole::input_map, "load from", address, index)) return fault;
  value = arguments_.input_map[index];
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_activity(std::uint64_t address, std::uint32_t value,
                                                        const Accessor& who) {
  std::size_t index = 0;
  if (auto fault = locate(TensorRole::output_map, "store to", address, index)) return fault;
  const std::uint32_t first = map_writer_[index].exchange(who.block + 1, std::memory_order_relaxed);
  if (first != 0) {
    return fmt::format("store to byte {} of the {} a second time, after {}",
                       describe_element(TensorRole::output_map, index), name_of(TensorRole::output_map),
                       describe_block(first - 1));
  }
  arguments_.output_map[index] = static_cast<std::uint8_t>(value);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::load_partial(std::uint64_t address, float& value, const Accessor& who) const {
  std::size_t index = 0;
  if (auto fault = locate(TensorRole::partials, "scratch load from", address, index)) return fault;
  const Partial& partial = partials_[index];
  const std::uint64_t packed = partial.writer.load(std::memory_order_acquire);
  if (packed == 0) {
    return fmt::format("load of partial sum {}, which nobody has written in this launch",
                       describe_element(TensorRole::partials, index));
  }
  const Accessor writer = unpack(packed);
  if (writer.block != who.block) {
    if (!arrived_[writer.block].load(std::memory_order_acquire) ||
        !arrived_[who.block].load(std::memory_order_acquire)) {
      return fmt::format("load of partial sum {} of {} before both blocks have counted their arrival",
                         describe_element(TensorRole::partials, index), describe_block(writer.block));
    }
  } else if (writer.thread != who.thread && writer.interval == who.interval) {
    return fmt::format("race on partial sum {}: written by thread {}, without a barrier in between",
                       describe_element(TensorRole::partials, index), writer.thread);
  }
  value = partial.value.load(std::memory_order_relaxed);
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::store_partial(std::uint64_t address, float value, const Accessor& who) {
  std::size_t index = 0;
  if (auto fault = locate(TensorRole::partials, "scratch store to", address, index)) return fault;
  Partial& partial = partials_[index];
  partial.value.store(value, std::memory_order_relaxed);
  const std::uint64_t packed = partial.writer.exchange(pack(who), std::memory_order_acq_rel);
  if (packed != 0) {
    const Accessor writer = unpack(packed);
    if (writer.block != who.block || writer.thread != who.thread) {
      return fmt::format("store to partial sum {}, which {}, thread {} has written",
                         describe_element(TensorRole::partials, index), describe_block(writer.block), writer.thread);
    }
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::count_arrival(std::uint64_t address, std::uint32_t last, std::uint32_t& old,
                                                       const Accessor& who) {
  std::size_t index = 0;
  if (auto fault = locate(TensorRole::counters, "count of an arrival in", address, index)) return fault;
  arrived_[who.block].store(true, std::memory_order_release);
  std::atomic<std::uint32_t>& counter = counters_[index];
  old = counter.load(std::memory_order_relaxed);
  while (!counter.compare_exchange_weak(old, old >= last ? 0 : old + 1, std::memory_order_acq_rel)) {
  }
  return std::nullopt;
}

std::optional<std::string> LaunchMemory::incomplete() const {
  std::int64_t missing = 0, first = -1;
  for (std::int64_t i = 0; i < elements(TensorRole::output); ++i) {
    if (output_writer_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) != 0 || means_nothing(i)) continue;
    if (!is_written(i)) continue;
    if (missing++ == 0) first = i;
  }
  if (missing != 0) {
    return fmt::format("output element {} was not written by any thread; {} of {} elements are missing",
                       describe_element(TensorRole::output, first), missing, elements(TensorRole::output));
  }
  for (std::int64_t i = 0; i < elements(TensorRole::output_map); ++i) {
    if (map_writer_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) != 0) continue;
    return fmt::format("byte {} of the {} was not written by any thread", describe_element(TensorRole::output_map, i),
                       name_of(TensorRole::output_map));
  }
  for (std::int64_t i = 0; i < elements(TensorRole::counters); ++i) {
    const std::uint32_t value = counters_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
    if (value != 0) return fmt::format("arrival counter {} is {} after the launch, not zero", i, value);
  }
  return std::nullopt;
}

}  // namespace burin
