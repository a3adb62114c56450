#include "ir/tensor_box.h"

#include <fmt/format.h>

#include "ir/faults.h"
#include "ir/kernel.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr int kOctet = 8, kPixelHalves = kOctet * kOctet;

void check_axis(Faults& faults, const char* axis, int places, int step) {
  faults.require_range(fmt::format("the step of its {}", axis), step, 1, kMaxBoxStep, "kMaxBoxStep");
  faults.require_range(fmt::format("its number of {}, those between its steps included,", axis),
                       std::int64_t{places} * step, 1, kMaxBoxExtent, "kMaxBoxExtent");
}

}  // namespace

std::vector<std::string> verify(const TensorBox& box, const std::vector<KernelTensor>& tensors) {
  Faults faults;
  if (box.tensor < 0 || box.tensor >= static_cast<int>(tensors.size())) {
    faults.add("it is of tensor {}, and the kernel has {}", box.tensor, tensors.size());
    return faults.take();
  }
  const KernelTensor& tensor = tensors[static_cast<std::size_t>(box.tensor)];
  if (!tensor.exists() || !tensor.is_read() || !tensor.is_image() || !has_lines(tensor.layout)) {
    faults.add("it is of tensor {}, which is not one of images in n8c8hw or n4c8hw that the kernel reads", box.tensor);
    return faults.take();
  }
  const std::int64_t pixels = std::int64_t{tensor.rows} * tensor.cols;
  if (box.image_rows < 1 || box.image_cols < 1 || std::int64_t{box.image_rows} * box.image_cols != pixels) {
    faults.add("it takes images for {}x{}, which are not the {}x{} pixels of tensor {}", box.image_rows, box.image_cols,
               tensor.rows, tensor.cols, box.tensor);
  }
  check_axis(faults, "octets", box.octets, 1);
  check_axis(faults, "rows", box.rows, box.step_rows);
  check_axis(faults, "columns", box.cols, box.step_cols);
  if (faults.empty() && box.bytes() > kMaxSharedBytes) {
    faults.add("it has {} bytes, more than the {} of shared memory", box.bytes(), kMaxSharedBytes);
  }
  return faults.take();
}

BoxAxes axes_of(const TensorBox& box, const KernelTensor& tensor, int batch) {
  const auto u64 = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  const std::int64_t row = std::int64_t{box.image_cols} * kBoxTargetAlignment, plane = row * box.image_rows;
  BoxAxes axes;
  axes.extents = {u64(kPixelHalves), u64(box.image_cols), u64(box.image_rows), u64(ceil_div(tensor.channels, kOctet)),
                  u64(ceil_div(batch, images_together(tensor.layout)))};
  axes.strides = {u64(kBoxTargetAlignment), u64(row), u64(plane), u64(tensor.image_words * kWordBytes)};
  axes.box = {u32(kPixelHalves), u32(box.cols * box.step_cols), u32(box.rows * box.step_rows), u32(box.octets), 1};
  axes.steps = {1, u32(box.step_cols), u32(box.step_rows), 1, 1};
  return axes;
}

std::string print(const TensorBox& box) {
  std::string text = fmt::format("of tensor {}, {}x{}, {}x{}x{}", box.tensor, box.image_rows, box.image_cols,
                                 box.octets, box.rows, box.cols);
  if (box.step_rows != 1 || box.step_cols != 1) text += fmt::format(", steps {}x{}", box.step_rows, box.step_cols);
  if (box.swizzled) text += ", swizzled";
  return text;
}

}  // namespace burin
