// The global memory of one launch: its buffers, of which the kernel sees addresses that are not addresses of this
// process. They lie so far apart that an access outside a buffer never falls into another one, and only the primitives
// can turn them into memory.
//
// An element of a buffer is a word as the kernel's tensor counts them: of 4 bytes, which with the layout n2chw hold the
// values of two images, or a loose half. Elements of activity maps are bytes. Two loose halves may be accessed as a
// word of 4 bytes, where the tensor is aligned so.
//
// Blocks may run at the same time on several CPU threads. Each access returns std::nullopt, or the fault as a sentence
// without its subject.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel.h"

namespace burin {

inline constexpr std::size_t kRoles = names_of(TensorRole{}).names.size();

// What a launch is given: for each tensor of the kernel's form, its words of 4 bytes from its first one on (of loose
// halves the last may be half of one), or the bytes of a map.
struct HostLaunchArguments {
  int batch = 1;
  std::span<const float> input;
  std::span<float> output;  // filling channels and words between a slice's images stay as they are
  std::span<const float> residual = {};
  std::span<const std::uint32_t> weights = {};
  // Empty: a launch without the map. Every byte of the output's must be written, and nothing is known of what it holds
  // before.
  std::span<const std::uint8_t> input_map = {};
  std::span<std::uint8_t> output_map = {};
};

// Who accesses.
struct Accessor {
  std::uint32_t block = 0;  // linear
  int thread = 0;
  std::uint32_t interval = 0;  // barriers that the block has passed
};

class LaunchMemory {
 public:
  // The spans must have the sizes that the form asks for; `form` must outlive this.
  LaunchMemory(const KernelForm& form, const HostLaunchArguments& arguments);

  // What the kernel's parameter is; 0 for a buffer that this launch has not.
  std::uint64_t base(TensorRole role) const;
  // The address of a box that the kernel is given: nothing lies there.
  static std::uint64_t box_address(std::size_t number);

  bool is_weight(std::uint64_t address) const;

  // Loads a value of the input, the residual or the weights.
  std::optional<std::string> load(std::uint64_t address, float& value) const {
    const std::uint64_t offset = address - input_base_;
    if (offset < input_bytes_ && offset % kWordBytes == 0) {
      value = arguments_.input[offset / kWordBytes];
      return std::nullopt;
    }
    return load_other(address, value);
  }
  // A loose half of the input or the residual, or of the output.
  std::optional<std::string> load_half(std::uint64_t address, std::uint16_t& value) const;
  std::optional<std::string> store_half(std::uint64_t address, std::uint16_t value, const Accessor& who);
  // Four words that are accessed at once begin at a multiple of 16 bytes.
  std::optional<std::string> check_quad(const char* access, std::uint64_t address) const;
  // A run of the input or of the weights.
  std::optional<std::string> load_run(std::uint64_t address, std::uint32_t bytes, std::span<const float>& values) const;
  // Where a box begins: a column and a row, an octet of channels and one of images.
  struct BoxPlace {
    std::int32_t col = 0, row = 0, octet = 0, images = 0;
  };
  // The words of a box of the input or the residual, with zeros where it lies outside, and whether it is `swizzled`,
  // which they are not yet.
  std::optional<std::string> load_box(std::uint64_t address, const BoxPlace& place, std::vector<float>& values,
                                      bool& swizzled) const;
  // A value for a filling channel that means nothing goes nowhere, and whoever wants to may write it. Of those that are
  // zeros each is written, like any other element, and another value is a fault.
  std::optional<std::string> store_output(std::uint64_t address, float value, const Accessor& who);
  // These two access the maps. What a launch without the map is asked for is a fault.
  std::optional<std::string> load_activity(std::uint64_t address, std::uint32_t& value) const;
  std::optional<std::string> store_activity(std::uint64_t address, std::uint32_t value, const Accessor& who);
  std::optional<std::string> load_partial(std::uint64_t address, float& value, const Accessor& who) const;
  std::optional<std::string> store_partial(std::uint64_t address, float value, const Accessor& who);
  std::optional<std::string> count_arrival(std::uint64_t address, std::uint32_t last, std::uint32_t& old,
                                           const Accessor& who);

  // After the last block: output elements, but those of filling channels that mean nothing, and bytes of its map that
  // nobody wrote; counters that are not zero.
  std::optional<std::string> incomplete() const;

 private:
  // A partial sum and who wrote it, in one word each; block 0 in `writer` is nobody, so blocks count from 1 here.
  struct Partial {
    std::atomic<float> value = 0;
    std::atomic<std::uint64_t> writer = 0;
  };

  std::optional<std::string> load_other(std::uint64_t address, float& value) const;
  std::int64_t elements(TensorRole role) const { return elements_[static_cast<std::size_t>(role)]; }
  std::int64_t element_bytes(TensorRole role) const { return element_bytes_[static_cast<std::size_t>(role)]; }
  // Which element lies at `address`.
  std::optional<std::string> locate(TensorRole role, const char* access, std::uint64_t address,
                                    std::size_t& index) const;
  // Which word of the memory lies at `address`, where it is accessed as a whole.
  std::optional<std::string> locate_word(TensorRole role, const char* access, std::uint64_t address,
                                         std::size_t& index) const;
  // Notes who wrote the element.
  std::optional<std::string> claim(std::int64_t output_element, const Accessor& who);
  // A word of a filling channel.
  bool is_filling(std::int64_t output_element) const;
  bool means_nothing(std::int64_t output_element) const;
  // They are about the images of the launch.
  bool has_zeros(std::int64_t output_element, float value) const;
  bool is_written(std::int64_t output_element) const;
  std::string misplaced(TensorRole wanted, const char* access, std::uint64_t address) const;
  std::string describe_element(TensorRole role, std::int64_t element) const;
  std::string describe_block(std::uint32_t block) const;

  const KernelForm& form_;
  const KernelTensor& written_;
  bool output_has_filling_ = false;
  std::int64_t partials_per_tile_ = 0;
  std::int64_t width_ = 1;  // blocks in x
  std::uint64_t input_base_ = 0;
  std::uint64_t input_bytes_ = 0;  // that may be accessed as words
  HostLaunchArguments arguments_;
  std::array<std::int64_t, kRoles> elements_{}, element_bytes_{};
  std::unique_ptr<std::atomic<std::uint32_t>[]> output_writer_;  // block, counted from 1
  std::unique_ptr<std::atomic<std::uint32_t>[]> map_writer_;     // the same
  std::unique_ptr<Partial[]> partials_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> counters_;
  std::unique_ptr<std::atomic<bool>[]> arrived_;  // per block: it has counted its arrival
};

}  // namespace burin
