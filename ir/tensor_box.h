// TensorBox: how a kernel copies boxes of one of its tensors into shared memory, each with one instruction. The kernel
// is given it as a parameter of its own: of kBoxBytes, made by the driver, which calls it a tensor map, from the
// tensor's address and the number of images.
//
// A box is a rectangle of lines of some octets of channels of the images that lie side by side, in n8c8hw or n4c8hw:
// [octet][row][column] and the 128 bytes of a pixel. It may begin anywhere, also before the image or behind the last
// octet: what lies outside of the tensor's images is copied as zeros.
//
// A swizzled box has the eight places of a line in another order: place p of what lies in line n of shared memory (its
// byte / 128) is at p ^ n % 8. So the same place of neighbouring pixels lies in other banks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace burin {

struct KernelTensor;

inline constexpr int kBoxBytes = 128, kBoxAlignment = 64;  // of the parameter
inline constexpr int kBoxTargetAlignment = 128;            // of where a box is copied to: a line
inline constexpr int kMaxKernelBoxes = 2;
// The driver's: places of a box along an axis, with those that it steps over; and its steps.
inline constexpr int kMaxBoxExtent = 256, kMaxBoxStep = 8;

struct TensorBox {
  int tensor = 0;  // which of the kernel's tensors
  // Images as boxes see them, of the tensor's pixels in their order.
  int image_rows = 1, image_cols = 1;
  // What one copy brings: rows and columns that are so many steps apart.
  int octets = 1, rows = 1, cols = 1;
  int step_rows = 1, step_cols = 1;
  bool swizzled = false;

  std::int64_t bytes() const { return std::int64_t{octets} * rows * cols * kBoxTargetAlignment; }
  bool operator==(const TensorBox&) const = default;
};

// All faults, each a sentence; empty when boxes of the tensors can be copied.
std::vector<std::string> verify(const TensorBox& box, const std::vector<KernelTensor>& tensors);

// The tensor as the driver is told of it, the innermost axis first: a pixel, in halves whatever it holds, columns,
// rows, octets of channels, images that lie side by side.
struct BoxAxes {
  static constexpr int kAxes = 5;
  std::array<std::uint64_t, kAxes> extents{};
  std::array<std::uint64_t, kAxes - 1> strides{};  // bytes from one of an axis to the next, from columns on
  std::array<std::uint32_t, kAxes> box{};          // with what it steps over
  std::array<std::uint32_t, kAxes> steps{};
};
BoxAxes axes_of(const TensorBox& box, const KernelTensor& tensor, int batch);

// Where a byte of a box is copied to that would lie at `address` of shared memory were the box not swizzled.
constexpr std::uint32_t swizzled_address(std::uint32_t address) {
  return address ^ (address / kBoxTargetAlignment % 8 * 16);
}

// "of tensor 0, 14x14, 4x8x10[, steps 2x2][, swizzled]": the images' rows and columns, then the octets, rows and
// columns of a box.
std::string print(const TensorBox& box);

}  // namespace burin
