#include "ir/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/faults.h"
#include "ir/limits.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::int64_t kMaxImageWords = kMaxImageBytes / kWordBytes;
constexpr int kMaxAlignment = 256;  // what the driver's allocations have
constexpr int kMaxArguments = 2;    // tensors that a launch reads

void check_extents(Faults& faults, const std::string& name, const KernelTensor& tensor) {
  if (tensor.channels == 0 && tensor.rows == 0 && tensor.cols == 0) return;
  if (!can_lie_in(tensor.element, tensor.layout)) return;  // which was said before
  if (tensor.channels < 1 || tensor.rows < 1 || tensor.cols < 1) {
    return faults.add("{} has images of {}x{}x{}", name, tensor.channels, tensor.rows, tensor.cols);
  }
  const std::int64_t words = image_words(tensor.format(), {tensor.channels, tensor.rows, tensor.cols});
  if (words != saturating_product({tensor.runs, tensor.run_words})) {
    faults.add("{} has {} x {} words, and an image of {}x{}x{} in {} has {}", name, tensor.runs, tensor.run_words,
               tensor.channels, tensor.rows, tensor.cols, to_string(tensor.layout), words);
  }
}

// How its values lie in words.
void check_element(Faults& faults, const std::string& name, const KernelTensor& tensor) {
  if (!can_lie_in(tensor.element, tensor.layout)) {
    faults.add("{} holds {} in {}: {}", name, to_string(tensor.element), to_string(tensor.layout), kWhatLiesWhere);
  }
  const int word = tensor.word_bytes(), at_once = words_together(tensor.layout) * word;
  if (tensor.alignment < word || tensor.alignment > kMaxAlignment ||
      !std::has_single_bit(static_cast<unsigned>(tensor.alignment))) {
    faults.add("{} is aligned to {} bytes, allowed are powers of two from {} to {}", name, tensor.alignment, word,
               kMaxAlignment);
  } else if (tensor.alignment < at_once) {
    faults.add("{} is aligned to {} bytes, and {} bytes of a pixel are accessed at once in {}", name, tensor.alignment,
               at_once, to_string(tensor.layout));
  }
}

void check_runs(Faults& faults, const std::string& name, const KernelTensor& tensor) {
  const std::size_t before = faults.list().size();
  const auto require = [&](std::string_view what, std::int64_t value, std::int64_t low) {
    faults.require_range(fmt::format("{}'s {}", name, what), value, low, kMaxImageWords, "kMaxImageBytes");
  };
  require("length of a run", tensor.run_words, 1);
  require("number of runs", tensor.runs, 1);
  require("distance between runs", tensor.run_pitch, 0);
  require("distance between images", tensor.image_words, 1);
  if (faults.list().size() != before) return;
  if (tensor.runs == 1 && tensor.run_pitch != 0) {
    faults.add("{}'s distance between runs is {}, with one run it must be 0", name, tensor.run_pitch);
  }
  if (tensor.runs > 1 && tensor.run_pitch < tensor.run_words) {
    faults.add("{}'s runs of {} words are {} apart: they would overlap", name, tensor.run_words, tensor.run_pitch);
  }
  if (saturating_product({tensor.runs - 1, tensor.run_pitch}) > kMaxImageWords || tensor.end() > tensor.image_words) {
    faults.add("{} reaches word {} of images that are {} words apart", name, tensor.end(), tensor.image_words);
  }
}

void check_wide(Faults& faults, const std::string& name, const KernelTensor& tensor) {
  const std::int64_t bytes = std::min(tensor.alignment, kWideAccessBytes);
  const int word = tensor.word_bytes();
  if (bytes <= word || bytes % word != 0 || !can_be_slices(tensor.layout)) return;
  const std::int64_t words = bytes / word;
  if (tensor.image_words % words != 0 || tensor.run_pitch % words != 0) {
    faults.add(
        "{} is aligned to {} bytes: the distances {} between images and {} between runs, in words, "
        "must be multiples of {}",
        name, tensor.alignment, tensor.image_words, tensor.run_pitch, words);
  }
}

// Words of FP32, of pairs of halves or of a loose one; of a slice of a larger tensor, channels lie one after the other.
void check_activations(Faults& faults, const std::string& name, const KernelTensor& tensor) {
  check_element(faults, name, tensor);
  const std::size_t before = faults.list().size();
  check_runs(faults, name, tensor);
  if (faults.list().size() != before) return;
  check_extents(faults, name, tensor);
  const bool is_slice = tensor.runs != 1 || tensor.image_words != tensor.run_words;
  const bool is_loose = tensor.format().is_loose();
  if (is_loose && tensor.role == TensorRole::residual) {
    faults.add("{} is {}, which is converted before anything is added", name, to_string(tensor.format()));
  }
  if (!is_slice) return;
  if (is_loose) {
    return faults.add("{} is a slice of a larger tensor, and {} is never part of one", name,
                      to_string(tensor.format()));
  }
  if (!can_be_slices(tensor.layout)) {
    return faults.add("{} is a slice of a larger tensor, which cannot lie in {}", name, to_string(tensor.layout));
  }
  // Of what is only moved, it is not said what the octets are.
  const int together = channels_together(tensor.layout);
  if (together == 1 || !tensor.is_image()) return;
  const std::int64_t octet = image_words(tensor.format(), {together, tensor.rows, tensor.cols});
  if (tensor.runs != 1 || tensor.image_words % octet != 0) {
    faults.add(
        "{} is a slice of a larger tensor in {}: it must be one run, and the distance between images, {} words, "
        "a multiple of the {} words of {} channels",
        name, to_string(tensor.layout), tensor.image_words, octet, together);
  }
}

// Neither runs nor extents of an image are said of what is no tensor of the network.
void check_bare(Faults& faults, const std::string& name, const KernelTensor& tensor) {
  KernelTensor bare{.role = tensor.role, .argument = tensor.argument, .run_words = tensor.run_words};
  if (tensor.map) {
    bare.map = tensor.map;
    bare.channels = tensor.channels;
    bare.rows = tensor.rows;
    bare.cols = tensor.cols;
    bare.run_words = 0;
  }
  if (tensor != bare) faults.add("{} says more than it has", name);
}

void check_map(Faults& faults, const std::string& name, const KernelTensor& tensor, const KernelForm& form) {
  if (!tensor.map) return faults.add("{} has no cells", name);
  const KernelTensor* of = form.find(tensor.role == TensorRole::input_map ? TensorRole::input : TensorRole::output);
  if (of == nullptr || !of->is_image() || of->channels != tensor.channels || of->rows != tensor.rows ||
      of->cols != tensor.cols) {
    return faults.add("{} is of a tensor that the kernel does not have", name);
  }
  const ActivityExtent extent = {1, tensor.channels, tensor.rows, tensor.cols};
  if (faults.add_all(verify(*tensor.map, extent, images_together(of->layout), name))) return;
  if (tensor.role == TensorRole::input_map) return;
  const LaunchGeometry& launch = form.launch;
  if (tensor.map->images != launch.tile_images || cells_per_images(*tensor.map, extent) != launch.tiles_per_image) {
    faults.add("{} has cells of {}, which are not the kernel's tiles: {} images, {} tiles", name, print(*tensor.map),
               launch.tile_images, launch.tiles_per_image);
  }
}

void check_tensor(Faults& faults, const KernelTensor& tensor, const KernelForm& form) {
  const std::string name = fmt::format("the tensor '{}'", to_string(tensor.role));
  if (!tensor.exists()) {
    const KernelTensor empty{.role = tensor.role, .argument = tensor.argument};
    if (tensor != empty) faults.add("{} has no words, but a place", name);
    return;
  }
  switch (tensor.role) {
    case TensorRole::input:
    case TensorRole::residual:
    case TensorRole::output:
      if (tensor.map) faults.add("{} has cells, and is no map", name);
      check_activations(faults, name, tensor);
      check_wide(faults, name, tensor);
      break;
    case TensorRole::weights:
      if (tensor.map) faults.add("{} has cells, and is no map", name);
      check_bare(faults, name, tensor);
      faults.require_range(fmt::format("{}'s number of words", name), tensor.run_words, 1, 2 * kMaxLayerWeights,
                           "2 * kMaxLayerWeights");
      break;
    case TensorRole::partials:
    case TensorRole::counters:
      check_bare(faults, name, tensor);
      break;  // they are as many as the launch says
    case TensorRole::input_map:
    case TensorRole::output_map:
      check_bare(faults, name, tensor);
      check_map(faults, name, tensor, form);
      break;
  }
  if (tensor.is_read()) {
    faults.require_range(fmt::format("the argument of {}", name), tensor.argument, 0, kMaxArguments - 1);
  } else if (tensor.argument != 0) {
    faults.add("{} is argument {}, and is no tensor that a launch reads", name, tensor.argument);
  }
}

void check_tensors(Faults& faults, const KernelForm& form) {
  if (form.tensors.size() > std::size_t{kMaxKernelTensors}) {
    return faults.add("it has {} tensors, at most {} are allowed (kMaxKernelTensors)", form.tensors.size(),
                      kMaxKernelTensors);
  }
  const auto count = [&](auto is) { return std::ranges::count_if(form.tensors, is); };
  for (const KernelTensor& tensor : form.tensors) {
    const auto same = [&](const KernelTensor& other) {
      return other.role == tensor.role && (tensor.role != TensorRole::input || other.argument == tensor.argument);
    };
    if (&tensor == &*std::ranges::find_if(form.tensors, same) && count(same) > 1) {
      faults.add("it has {} tensors '{}'", count(same), to_string(tensor.role));
    }
    check_tensor(faults, tensor, form);
  }
  if (!form.has(TensorRole::input)) faults.add("it has no input");
  if (!form.has(TensorRole::output)) faults.add("it has no output");
  const LaunchGeometry& launch = form.launch;
  const auto check_scratch = [&](TensorRole role, std::int64_t words_of_tile) {
    const KernelTensor* tensor = form.find(role);
    if ((tensor == nullptr ? 0 : tensor->run_words) != words_of_tile) {
      faults.add("its launch has {} words of {} for a tile, its tensor {}", words_of_tile, to_string(role),
                 tensor == nullptr ? 0 : tensor->run_words);
    }
  };
  check_scratch(TensorRole::partials, launch.workspace_bytes_per_tile / kWordBytes);
  check_scratch(TensorRole::counters, launch.counters_per_tile);
  int together = 1;
  for (const KernelTensor& tensor : form.tensors) together = std::max(together, images_together(tensor.layout));
  if (launch.tile_images % together != 0) {
    faults.add("tile_images is {}, which is not a multiple of {}: that many images lie side by side",
               launch.tile_images, together);
  }
}

void check_boxes(Faults& faults, const KernelForm& form) {
  if (form.boxes.size() > std::size_t{kMaxKernelBoxes}) {
    return faults.add("it has {} boxes, at most {} are allowed (kMaxKernelBoxes)", form.boxes.size(), kMaxKernelBoxes);
  }
  for (std::size_t i = 0; i < form.boxes.size(); ++i) {
    faults.add_all(verify(form.boxes[i], form.tensors), fmt::format("box {}: ", i));
  }
}

void check_launch(Faults& faults, const LaunchGeometry& launch) {
  faults.require_range("threads", launch.threads, 1, kMaxThreadsPerBlock, "kMaxThreadsPerBlock");
  faults.require_range("shared_bytes", launch.shared_bytes, 0, kMaxSharedBytes, "kMaxSharedBytes");
  if (launch.shared_bytes % kWordBytes != 0) {
    faults.add("shared_bytes is {}, whole words of {} bytes are needed", launch.shared_bytes, kWordBytes);
  }
  faults.require_range("slices", launch.slices, 1, kMaxSlices, "kMaxSlices");
  faults.require_range("tile_images", launch.tile_images, 1, kMaxBatch, "kMaxBatch");
  faults.require_range("tiles_per_image", launch.tiles_per_image, 1, kMaxTiles, "kMaxTiles");
  faults.require_range("cluster_tiles", launch.cluster_tiles, 1, kMaxClusterBlocks, "kMaxClusterBlocks");
  faults.require_range("workspace_bytes_per_tile", launch.workspace_bytes_per_tile, 0, kMaxWorkspaceBytes,
                       "kMaxWorkspaceBytes");
  if (launch.workspace_bytes_per_tile % kWordBytes != 0) {
    faults.add("workspace_bytes_per_tile is {}, whole words of {} bytes are needed", launch.workspace_bytes_per_tile,
               kWordBytes);
  }
  faults.require_range("counters_per_tile", launch.counters_per_tile, 0, kMaxSlices, "kMaxSlices");
}

}  // namespace

bool KernelTensor::contains(std::int64_t word) const {
  if (word < 0 || word >= end()) return false;
  return runs == 1 || word % run_pitch < run_words;
}

std::int64_t KernelTensor::spanned_words(std::int64_t batch) const {
  const std::int64_t before = saturating_product({ceil_div(batch, images_together(layout)) - 1, image_words});
  return before > kSaturated - end() ? kSaturated : before + end();
}

std::int64_t KernelTensor::spanned_memory(std::int64_t batch) const {
  return ceil_div(spanned_words(batch), kWordBytes / word_bytes());
}

std::int64_t tile_count(const LaunchGeometry& launch, std::int64_t batch) {
  return saturating_product({ceil_div(batch, launch.tile_images), launch.tiles_per_image});
}

std::int64_t grid_width(const LaunchGeometry& launch, std::int64_t batch) {
  return saturating_product({ceil_div(tile_count(launch, batch), launch.cluster_tiles), launch.cluster_tiles});
}

std::int64_t counter_bytes(const LaunchGeometry& launch, std::int64_t batch) {
  const std::int64_t bytes =
      saturating_product({tile_count(launch, batch), launch.counters_per_tile, std::int64_t{sizeof(std::uint32_t)}});
  return saturating_product({ceil_div(bytes, kWorkspaceAlignment), kWorkspaceAlignment});
}

std::int64_t partial_bytes(const LaunchGeometry& launch, std::int64_t batch) {
  return saturating_product({tile_count(launch, batch), launch.workspace_bytes_per_tile});
}

const KernelTensor* KernelForm::find(TensorRole role) const {
  const auto found = std::ranges::find_if(tensors, [&](const KernelTensor& t) { return t.role == role && t.exists(); });
  return found == tensors.end() ? nullptr : &*found;
}

const KernelTensor& KernelForm::the(TensorRole role) const {
  const KernelTensor* found = find(role);
  BURIN_CHECK(found != nullptr, "a kernel without an {}", to_string(role));
  return *found;
}

std::vector<std::string> verify(const KernelForm& form) {
  Faults faults;
  check_launch(faults, form.launch);
  if (!faults.empty()) return faults.take();
  check_tensors(faults, form);
  if (!faults.empty()) return faults.take();
  check_boxes(faults, form);
  return faults.take();
}

std::string symbol_of(const std::string& op) {
  std::string symbol = "burin_";
  for (const char c : op) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    symbol += plain ? c : '_';
  }
  return symbol;
}

std::optional<double> KernelLayer::fill() const {
  if (!multiplied || multiplied->slots == 0) return std::nullopt;
  return static_cast<double>(nonzeros) / static_cast<double>(multiplied->slots);
}

std::string multiplied_text(const KernelLayer& layer) {
  if (!layer.multiplied) return {};
  const std::optional<double> fill = layer.fill();
  return fmt::format("{:.1f} % of the columns live{}", 100 * layer.multiplied->live_share(),
                     fill ? fmt::format(", {:.1f} % of what is multiplied is not zero", 100 * *fill) : "");
}

std::string Kernel::own_provider() const {
  return is_library_plan(plan) ? parse_library_plan(plan).provider : provider;
}

std::string Kernel::own_plan() const { return is_library_plan(plan) ? parse_library_plan(plan).plan : plan; }

ConvShape Kernel::called_shape() const {
  if (layer) return layer->shape;
  BURIN_CHECK(linear && called, "kernel {} computes nothing that a library does", symbol);
  const std::optional<Elementwise> function =
      called->relu ? std::optional(function_of(Activation::relu)) : std::nullopt;
  return fully_connected_shape(saturate_to_int(linear->columns), saturate_to_int(linear->rows), called->bias, function);
}

std::string Kernel::layer_data() const { return layer ? layer->data : called ? called->data : std::string(); }

std::optional<std::string> Kernel::shared_code() const {
  if (edited || provider == kBakedProvider) return std::nullopt;
  std::string name = provider + "\n";
  for (const KernelFunction& function : functions) name += function.path + "\n";
  return name + plan;
}

std::optional<WeightMatrix> Kernel::matrix() const {
  if (!layer) return linear;
  const ConvShape& shape = layer->shape;
  return WeightMatrix{shape.out_channels, shape.weight_elements() / shape.out_channels, layer->nonzeros};
}

const WeightZeros* Kernel::weight_zeros_of(int batch) const {
  const auto found = std::ranges::find(weight_zeros, batch, &WeightZeros::batch);
  return found == weight_zeros.end() ? nullptr : &*found;
}

KernelBinary described_code(const Kernel& kernel, const std::optional<std::string>& arch) {
  // Code for sm_90a is that of an sm_90.
  const auto fits = [&](const KernelBinary& binary) {
    return binary.kind == BinaryKind::cubin && (!arch || binary.arch == *arch || binary.arch == *arch + "a");
  };
  const auto found = std::ranges::find_if(kernel.binaries, fits);
  return found == kernel.binaries.end() ? KernelBinary{} : *found;
}

std::string Kernel::owner() const { return fmt::format("{} {}", is_convolution() ? "layer" : "operator", op); }

}  // namespace burin
