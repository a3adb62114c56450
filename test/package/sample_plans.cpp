#include "test/package/sample_plans.h"

#include <algorithm>

#include "ir/arch.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "test/package/cubin_builder.h"

namespace burin_test {
namespace {

using namespace burin;

constexpr int kStageChannels = 2;
constexpr int kBulkWords = 4;  // bulk copies move 16 bytes at a time

int patch_extent(int tile, int stride, int kernel, int dilation) {
  return (tile - 1) * stride + (kernel - 1) * dilation + 1;
}

int whole_copies(int words) { return static_cast<int>(ceil_div(words, kBulkWords)) * kBulkWords; }

SharedLayout patches(const ConvShape& shape, const PixelTile& tile, int channel_pitch) {
  SharedLayout shared;
  shared.patch_rows = patch_extent(tile.rows, shape.stride_h, shape.kernel_h, shape.dilation_h);
  shared.patch_cols = patch_extent(tile.cols, shape.stride_w, shape.kernel_w, shape.dilation_w);
  shared.row_pitch = shared.patch_cols;
  shared.image_pitch = shared.patch_rows * shared.row_pitch;
  shared.channel_pitch = std::max(channel_pitch, tile.images * shared.image_pitch);
  return shared;
}

SharedLayout whole_images(const ConvShape& shape) {
  SharedLayout shared;
  shared.patch_rows = shape.in_h;
  shared.patch_cols = shared.row_pitch = shape.in_w;
  shared.channel_pitch = shape.in_h * shape.in_w;
  shared.image_pitch = whole_copies(kStageChannels * shared.channel_pitch);
  const int before = shape.pad.top * shape.in_w + shape.pad.left;
  const int behind = shape.pad.bottom * shape.in_w + shape.pad.right;
  shared.margin = whole_copies(std::max(before, behind));
  return shared;
}

// The part `i` of `parts` of so many channels.
std::vector<int> part_of(int channels, int i, int parts) {
  std::vector<int> part;
  for (int c = channels * i / parts; c < channels * (i + 1) / parts; ++c) part.push_back(c);
  return part;
}

}  // namespace

BakedPlan sample_plan(const ConvShape& shape, const SamplePlan& wanted) {
  BakedPlan plan;
  plan.precision = wanted.precision;
  plan.batch = wanted.batch;
  if (is_half(plan.precision)) plan.input_layout = plan.output_layout = TensorLayout::n2chw;
  plan.output_image_words = wanted.output_image_words;
  plan.staging = wanted.staging;
  plan.tile = wanted.tile;
  plan.threads = static_cast<int>(ceil_div(plan.tile.pixels(), kWarpSize)) * kWarpSize;
  const ArchSpec& arch = arch_by_name(plan.arch);
  plan.max_registers = std::min(arch.max_registers_per_thread,
                                most_registers(arch.registers_per_multiprocessor, plan.threads / kWarpSize));
  plan.stage_channels = kStageChannels;
  if (plan.staging == Staging::shared) plan.shared = patches(shape, plan.tile, wanted.channel_pitch);
  if (plan.staging == Staging::bulk) plan.shared = whole_images(shape);
  plan.splits = wanted.splits;
  if (plan.splits > 1) plan.reduction = Reduction::last_block;
  plan.cluster.tiles = wanted.cluster_tiles;
  for (int group = 0; group < wanted.groups; ++group) {
    plan.groups.push_back(part_of(shape.out_channels, group, wanted.groups));
    for (int split = 0; split < plan.splits; ++split) {
      plan.slices.push_back({group, split, part_of(shape.in_channels, split, plan.splits)});
    }
  }
  plan.skips = wanted.skips;
  plan.marks = wanted.marks;
  return plan;
}

TemplatePlan sample_template(const std::string& name, const ConvShape& shape) {
  TemplatePlan plan;
  plan.template_name = name;
  plan.input() = image_tensor(TensorRole::input, shape.in_channels, shape.in_h, shape.in_w);
  plan.output() = image_tensor(TensorRole::output, shape.out_channels, shape.out_h(), shape.out_w());
  if (shape.epilogue.residual) {
    plan.residual() = image_tensor(TensorRole::residual, shape.out_channels, shape.conv_h(), shape.conv_w());
  }
  return plan;
}

KernelTensor image_tensor(TensorRole role, int channels, int rows, int cols, TensorLayout layout, ElementType element) {
  KernelTensor tensor = flat_tensor(role, image_words({element, layout}, {channels, rows, cols}));
  tensor.element = element;
  tensor.layout = layout;
  tensor.alignment = words_together(layout) * kWordBytes;
  tensor.channels = channels;
  tensor.rows = rows;
  tensor.cols = cols;
  return tensor;
}

KernelTensor flat_tensor(TensorRole role, std::int64_t words, int alignment) {
  KernelTensor tensor;
  tensor.role = role;
  tensor.argument = role == TensorRole::residual ? 1 : 0;
  tensor.run_words = words;
  // Weights have no images.
  tensor.image_words = role == TensorRole::weights ? 0 : words;
  tensor.alignment = alignment;
  return tensor;
}

void set_plan(Kernel& kernel, const BakedPlan& plan) {
  kernel.provider = kBakedProvider;
  kernel.precision = to_string(plan.precision);
  kernel.planned_batch = plan.batch;
  kernel.plan = print(plan);
  derive_form(kernel);
}

void set_plan(Kernel& kernel, const TemplatePlan& plan) {
  kernel.provider = plan.template_name;
  kernel.precision = to_string(precision_of(plan.output().element));
  kernel.plan = print(plan);
  derive_form(kernel);
}

void edit_baked(Kernel& kernel, const std::function<void(BakedPlan&)>& edit) {
  BakedPlan plan = parse_baked_plan(kernel.plan);
  edit(plan);
  set_plan(kernel, plan);
}

void edit_template(Kernel& kernel, const std::function<void(TemplatePlan&)>& edit) {
  TemplatePlan plan = parse_template_plan(kernel.plan);
  edit(plan);
  set_plan(kernel, plan);
}

std::string signature(const Kernel& kernel) {
  std::string text = kernel.entry_name() + "(";
  for (const KernelTensor& tensor : kernel.form.tensors) text += std::string(to_string(tensor.role)) + ", ";
  for (std::size_t i = 0; i < kernel.form.boxes.size(); ++i) text += "box, ";
  return text + "batch)";
}

std::string cubin_of(const Kernel& kernel, const std::string& code, const std::string& arch) {
  CubinBuilder cubin;
  std::vector<std::uint32_t> parameters(kernel.form.tensors.size(), 8);
  parameters.insert(parameters.end(), kernel.form.boxes.size(), kBoxBytes);
  parameters.push_back(4);
  cubin.functions = {{kernel.entry_name(), kSampleRegisters, 0, true, code, parameters}};
  if (const auto name = parse_arch_name(arch)) cubin.compute = static_cast<std::uint32_t>(name->compute);
  return cubin.build();
}

void add_code(Package& package, Kernel& kernel, KernelBinary binary, const std::string& beginning) {
  std::string code = beginning + signature(kernel) + "\n";
  if (binary.kind == BinaryKind::cubin) code = cubin_of(kernel, code, binary.arch);
  binary.bytes = static_cast<std::int64_t>(code.size());
  package.files[binary.path] = code;
  kernel.binaries.push_back(std::move(binary));
}

}  // namespace burin_test
