// The form of a kernel: every rule of verify(), what a plan implies, and the text form.
#include <fmt/format.h>

#include <functional>
#include <limits>
#include <tuple>

#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/saturate.h"
#include "ir/text_lines.h"
#include "test/catch.h"
#include "test/ir/random_layers.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::error_of;
using burin_test::small_half_plan;
using burin_test::small_plan;
using burin_test::small_shape;

namespace {

using Faults = std::vector<std::string>;

// Images of 8x6x4 in nchw, a residual and weights: 192 words.
KernelTensor small_image(TensorRole role) {
  return {.role = role,
          .argument = role == TensorRole::residual ? 1 : 0,
          .channels = 8,
          .rows = 6,
          .cols = 4,
          .image_words = 192,
          .run_words = 192};
}

// The tensors of a form, in the order in which small_form() has them.
enum SmallTensor { kInput, kOutput, kResidual, kWeights, kPartials, kCounters, kInputMap, kOutputMap };

// With every role there is.
KernelForm small_form() {
  KernelForm form;
  form.launch = {.threads = 64,
                 .shared_bytes = 1024,
                 .slices = 4,
                 .tile_images = 2,
                 .tiles_per_image = 6,
                 .cluster_tiles = 2,
                 .workspace_bytes_per_tile = 4096,
                 .counters_per_tile = 2};
  form.tensors = {small_image(TensorRole::input),
                  small_image(TensorRole::output),
                  small_image(TensorRole::residual),
                  {.role = TensorRole::weights, .run_words = 59},
                  {.role = TensorRole::partials, .run_words = 1024},
                  {.role = TensorRole::counters, .run_words = 2},
                  {.role = TensorRole::input_map, .channels = 8, .rows = 6, .cols = 4, .map = ActivityMap{3, 2, 1}},
                  {.role = TensorRole::output_map, .channels = 8, .rows = 6, .cols = 4, .map = ActivityMap{2, 2, 2}}};
  return form;
}

Faults faults_after(const std::function<void(KernelForm&)>& edit) {
  KernelForm form = small_form();
  edit(form);
  return verify(form);
}
Faults launch_faults(const std::function<void(LaunchGeometry&)>& edit) {
  return faults_after([&](KernelForm& form) { edit(form.launch); });
}
Faults tensor_faults(SmallTensor which, const std::function<void(KernelTensor&)>& edit) {
  return faults_after([&](KernelForm& form) { edit(form.tensors[which]); });
}

KernelForm parsed(const std::string& source) {
  LineReader text(source, "plan");
  KernelForm form = parse_kernel_form(text);
  text.finish();
  return form;
}

const std::string kHead = "threads: 64\nshared_bytes: 0\ntile_images: 1\ntiles_per_image: 1\n";

std::string tensor_error(const std::string& value) {
  return error_of([&] { parsed(kHead + "tensor 0: " + value + "\n"); });
}

}  // namespace

TEST_CASE("kernel form: one with every role is legal") {
  const KernelForm form = small_form();
  CHECK(verify(form) == Faults{});
  CHECK(form.has_maps());
  CHECK(form.find(TensorRole::weights)->run_words == 59);
  CHECK(&form.input() == &form.tensors[kInput]);
  CHECK(&form.output() == &form.tensors[kOutput]);
}

TEST_CASE("kernel form: a tensor that is not there is not found") {
  KernelForm form = small_form();
  form.tensors[kResidual] = {.role = TensorRole::residual, .argument = 1};
  form.tensors[kInputMap] = {.role = TensorRole::input_map};
  form.tensors[kOutputMap] = {.role = TensorRole::output_map};
  CHECK(verify(form) == Faults{});
  CHECK_FALSE(form.has(TensorRole::residual));
  CHECK_FALSE(form.has_maps());
  CHECK(form.find(TensorRole::input_map) == nullptr);
}

TEST_CASE("kernel form: limits of a launch") {
  using Launch = LaunchGeometry;
  const auto limit = [](const std::string& attribute, const std::string& value, const std::string& allowed) {
    return Faults{attribute + " is " + value + ", allowed is " + allowed};
  };
  const std::string threads = "1 to 1024 (kMaxThreadsPerBlock)";
  CHECK(launch_faults([](Launch& l) { l.threads = 1056; }) == limit("threads", "1056", threads));
  CHECK(launch_faults([](Launch& l) { l.threads = 0; }) == limit("threads", "0", threads));
  CHECK(launch_faults([](Launch& l) { l.threads = -32; }) == limit("threads", "-32", threads));
  const std::string shared = "0 to 232448 (kMaxSharedBytes)";
  CHECK(launch_faults([](Launch& l) { l.shared_bytes = 232'452; }) == limit("shared_bytes", "232452", shared));
  CHECK(launch_faults([](Launch& l) { l.shared_bytes = -4; }) == limit("shared_bytes", "-4", shared));
  CHECK(launch_faults([](Launch& l) { l.shared_bytes = 5; }) ==
        Faults{"shared_bytes is 5, whole words of 4 bytes are needed"});
  CHECK(launch_faults([](Launch& l) { l.slices = 0; }) == limit("slices", "0", "1 to 65535 (kMaxSlices)"));
  CHECK(launch_faults([](Launch& l) { l.slices = 65'536; }) == limit("slices", "65536", "1 to 65535 (kMaxSlices)"));
  CHECK(launch_faults([](Launch& l) { l.tile_images = 0; }) == limit("tile_images", "0", "1 to 1048576 (kMaxBatch)"));
  CHECK(launch_faults([](Launch& l) { l.tile_images = kMaxBatch + 1; }) ==
        limit("tile_images", "1048577", "1 to 1048576 (kMaxBatch)"));
  const std::string tiles = "1 to 2147483647 (kMaxTiles)";
  CHECK(launch_faults([](Launch& l) { l.tiles_per_image = 0; }) == limit("tiles_per_image", "0", tiles));
  CHECK(launch_faults([](Launch& l) { l.tiles_per_image = kMaxTiles + 1; }) ==
        limit("tiles_per_image", "2147483648", tiles));
  const std::string cluster = "1 to 8 (kMaxClusterBlocks)";
  CHECK(launch_faults([](Launch& l) { l.cluster_tiles = 0; }) == limit("cluster_tiles", "0", cluster));
  CHECK(launch_faults([](Launch& l) { l.cluster_tiles = 9; }) == limit("cluster_tiles", "9", cluster));
  const std::string workspace = "0 to 1099511627776 (kMaxWorkspaceBytes)";
  CHECK(launch_faults([](Launch& l) { l.workspace_bytes_per_tile = -4; }) ==
        limit("workspace_bytes_per_tile", "-4", workspace));
  CHECK(launch_faults([](Launch& l) { l.workspace_bytes_per_tile = kMaxWorkspaceBytes + 4; }) ==
        limit("workspace_bytes_per_tile", "1099511627780", workspace));
  CHECK(launch_faults([](Launch& l) { l.workspace_bytes_per_tile = 4097; }) ==
        Faults{"workspace_bytes_per_tile is 4097, whole words of 4 bytes are needed"});
  CHECK(launch_faults([](Launch& l) { l.counters_per_tile = -1; }) ==
        limit("counters_per_tile", "-1", "0 to 65535 (kMaxSlices)"));
  CHECK(launch_faults([](Launch& l) { l.counters_per_tile = 65'536; }) ==
        limit("counters_per_tile", "65536", "0 to 65535 (kMaxSlices)"));
}

TEST_CASE("kernel form: scratch memory is that of the launch") {
  CHECK(launch_faults([](LaunchGeometry& l) { l.workspace_bytes_per_tile = 8192; }) ==
        Faults{"its launch has 2048 words of partials for a tile, its tensor 1024"});
  CHECK(launch_faults([](LaunchGeometry& l) { l.counters_per_tile = 0; }) ==
        Faults{"its launch has 0 words of counters for a tile, its tensor 2"});
  CHECK(faults_after([](KernelForm& form) { form.tensors.erase(form.tensors.begin() + kPartials); }) ==
        Faults{"its launch has 1024 words of partials for a tile, its tensor 0"});
}

TEST_CASE("kernel form: which tensors there are") {
  CHECK(faults_after([](KernelForm& f) { f.tensors[kInput] = {}; }) ==
        Faults{"the tensor 'input_map' is of a tensor that the kernel does not have", "it has no input"});
  CHECK(faults_after([](KernelForm& f) { f.tensors[kOutput] = {.role = TensorRole::output}; }) ==
        Faults{"the tensor 'output_map' is of a tensor that the kernel does not have", "it has no output"});
  CHECK(faults_after([](KernelForm& f) { f.tensors.push_back(f.tensors[kWeights]); }) ==
        Faults{"it has 2 tensors 'weights'"});
  CHECK(faults_after([](KernelForm& f) { f.tensors.push_back(f.tensors[kInput]); }) ==
        Faults{"it has 2 tensors 'input'"});
  // A second input is another argument.
  CHECK(faults_after([](KernelForm& f) {
          f.tensors.push_back(f.tensors[kInput]);
          f.tensors.back().argument = 1;
        }) == Faults{});
  CHECK(faults_after([](KernelForm& f) {
          f.tensors.push_back(f.tensors[kResidual]);
          f.tensors.back().argument = 0;
        }) == Faults{"it has 2 tensors 'residual'"});
  CHECK(faults_after([](KernelForm& f) { f.tensors.resize(17, f.tensors[kInput]); }) ==
        Faults{"it has 17 tensors, at most 16 are allowed (kMaxKernelTensors)"});
  CHECK(verify(KernelForm{.tensors = {}, .launch = {.threads = 32}}) == Faults{"it has no input", "it has no output"});
}

TEST_CASE("kernel form: arguments") {
  const std::string allowed = ", allowed is 0 to 1";
  CHECK(tensor_faults(kInput, [](KernelTensor& t) { t.argument = 2; }) ==
        Faults{"the argument of the tensor 'input' is 2" + allowed});
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.argument = -1; }) ==
        Faults{"the argument of the tensor 'residual' is -1" + allowed});
  CHECK(tensor_faults(kOutput, [](KernelTensor& t) { t.argument = 1; }) ==
        Faults{"the tensor 'output' is argument 1, and is no tensor that a launch reads"});
}

TEST_CASE("kernel form: a tensor without words has nothing else") {
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.run_words = 0; }) ==
        Faults{"the tensor 'residual' has no words, but a place"});
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) {
          t = {.role = TensorRole::residual, .argument = 1, .alignment = 16};
        }) == Faults{"the tensor 'residual' has no words, but a place"});
}

TEST_CASE("kernel form: weights") {
  const std::string allowed = ", allowed is 1 to 536870912 (2 * kMaxLayerWeights)";
  CHECK(tensor_faults(kWeights, [](KernelTensor& t) { t.run_words = 2 * kMaxLayerWeights + 1; }) ==
        Faults{"the tensor 'weights''s number of words is 536870913" + allowed});
}

TEST_CASE("kernel form: runs and distances") {
  const auto limit = [](const std::string& what, const std::string& value, int low) {
    return Faults{
        fmt::format("the tensor 'output''s {} is {}, allowed is {} to 536870911 (kMaxImageBytes)", what, value, low)};
  };
  const auto output = [](const std::function<void(KernelTensor&)>& edit) {
    return tensor_faults(kOutput, [&](KernelTensor& t) { edit(t); });
  };
  CHECK(output([](KernelTensor& t) { t.runs = 0; }) == limit("number of runs", "0", 1));
  CHECK(output([](KernelTensor& t) { t.runs = 1 << 30; }) == limit("number of runs", "1073741824", 1));
  CHECK(output([](KernelTensor& t) { t.run_pitch = -1; }) == limit("distance between runs", "-1", 0));
  CHECK(output([](KernelTensor& t) { t.image_words = 0; }) == limit("distance between images", "0", 1));
  CHECK(output([](KernelTensor& t) { t.image_words = 1 << 29; }) == limit("distance between images", "536870912", 1));
  CHECK(output([](KernelTensor& t) { t.run_words = t.image_words = 1 << 29; }).size() == 2);
  CHECK(output([](KernelTensor& t) { t.run_pitch = 192; }) ==
        Faults{"the tensor 'output''s distance between runs is 192, with one run it must be 0"});
  const auto two_runs = [](KernelTensor& t) {
    t.run_words = 96;
    t.runs = 2;
    t.run_pitch = 128;
    t.image_words = 224;
  };
  CHECK(output(two_runs) == Faults{});
  CHECK(output([&](KernelTensor& t) {
          two_runs(t);
          t.run_pitch = 95;
        }) == Faults{"the tensor 'output''s runs of 96 words are 95 apart: they would overlap"});
  CHECK(output([&](KernelTensor& t) {
          two_runs(t);
          t.image_words = 223;
        }) == Faults{"the tensor 'output' reaches word 224 of images that are 223 words apart"});
  // Neither of the factors is too large by itself.
  CHECK(output([](KernelTensor& t) {
          t.run_words = 1;
          t.runs = t.run_pitch = t.image_words = 500'000'000;
        }).size() == 1);
}

TEST_CASE("kernel form: an image has as many words as the layout gives it") {
  CHECK(tensor_faults(kInput, [](KernelTensor& t) { t.image_words = t.run_words = 191; }) ==
        Faults{"the tensor 'input' has 1 x 191 words, and an image of 8x6x4 in nchw has 192"});
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.rows = 0; }) ==
        Faults{"the tensor 'residual' has images of 8x0x4"});
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.channels = t.rows = t.cols = 0; }) == Faults{});
}

TEST_CASE("kernel form: an element type must fill the words of its layout") {
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.element = ElementType::bf16; }) ==
        Faults{"the tensor 'residual' is bf16 nchw, which is converted before anything is added"});
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.layout = TensorLayout::n2chw; }) ==
        Faults{fmt::format("the tensor 'residual' holds f32 in n2chw: {}", burin::kWhatLiesWhere)});
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) {
          t.element = ElementType::f16;
          t.layout = TensorLayout::n2chw;
        }) == Faults{});
  const auto in_eights = [](ElementType element, std::int64_t words) {
    return faults_after([&](KernelForm& form) {
      form.tensors.resize(kWeights);
      form.launch = {.threads = 32, .tile_images = 8};
      KernelTensor& t = form.tensors[kInput];
      t.element = element;
      t.layout = TensorLayout::n8c8hw;
      t.image_words = t.run_words = words;
      t.alignment = 16;
    });
  };
  CHECK(in_eights(ElementType::bf16, 4 * 192) == Faults{});
  CHECK(in_eights(ElementType::bf16, 192) ==
        Faults{"the tensor 'input' has 1 x 192 words, and an image of 8x6x4 in n8c8hw has 768"});
  CHECK(in_eights(ElementType::f32, 4 * 192) ==
        Faults{fmt::format("the tensor 'input' holds f32 in n8c8hw: {}", burin::kWhatLiesWhere)});
}

TEST_CASE("kernel form: images that lie side by side stay together") {
  const auto with = [](int images, TensorLayout layout = TensorLayout::n2chw) {
    return faults_after([&](KernelForm& form) {
      form.tensors.resize(kWeights);
      KernelTensor& input = form.tensors[kInput];
      input.element = ElementType::bf16;
      input.layout = layout;
      input.run_words = input.image_words = input.run_words * element_words(layout);
      input.alignment = 16;
      form.launch = {.threads = 32, .tile_images = images};
    });
  };
  CHECK(with(2) == Faults{});
  CHECK(with(16, TensorLayout::n8c8hw) == Faults{});
  for (const int images : {1, 2, 4, 12}) {
    CHECK(with(images, TensorLayout::n8c8hw) ==
          Faults{fmt::format("tile_images is {}, which is not a multiple of 8: that many images lie side by side",
                             images)});
  }
  for (const int images : {1, 3, kMaxBatch - 1}) {
    CHECK(with(images) ==
          Faults{fmt::format("tile_images is {}, which is not a multiple of 2: that many images lie side by side",
                             images)});
  }
}

TEST_CASE("kernel form: alignments that cannot be") {
  for (const int alignment : {0, -16, 2, 24, 512, std::numeric_limits<int>::min()}) {
    CHECK(tensor_faults(kInput, [&](KernelTensor& t) { t.alignment = alignment; }) ==
          Faults{fmt::format("the tensor 'input' is aligned to {} bytes, allowed are powers of two from 4 to 256",
                             alignment)});
  }
  for (const int alignment : {4, 8}) {
    CHECK(tensor_faults(kResidual,
                        [&](KernelTensor& t) {
                          t.layout = TensorLayout::nchw4;
                          t.alignment = alignment;
                        }) ==
          Faults{fmt::format("the tensor 'residual' is aligned to {} bytes, and 16 bytes of a pixel are accessed at "
                             "once in nchw4",
                             alignment)});
  }
  for (const int alignment : {16, 256}) {
    CHECK(tensor_faults(kResidual, [&](KernelTensor& t) {
            t.layout = TensorLayout::nchw4;
            t.alignment = alignment;
          }) == Faults{});
  }
}

TEST_CASE("kernel form: wide accesses stay aligned from image to image and from run to run") {
  const auto output = [](int alignment, std::int64_t image_words, std::int64_t run_pitch) {
    return tensor_faults(kOutput, [&](KernelTensor& t) {
      t.alignment = alignment;
      t.image_words = image_words;
      t.run_words = 96;
      t.runs = 2;
      t.run_pitch = run_pitch;
    });
  };
  CHECK(output(4, 199, 101) == Faults{});
  CHECK(output(8, 200, 102) == Faults{});
  CHECK(output(16, 200, 100) == Faults{});
  CHECK(output(256, 200, 100) == Faults{});  // more than four words are never accessed at once
  CHECK(output(8, 199, 100) ==
        Faults{"the tensor 'output' is aligned to 8 bytes: the distances 199 between images and 100 between runs, in "
               "words, must be multiples of 2"});
  CHECK(output(16, 200, 102) ==
        Faults{"the tensor 'output' is aligned to 16 bytes: the distances 200 between images and 102 between runs, in "
               "words, must be multiples of 4"});
}

TEST_CASE("kernel form: slices of larger tensors lie in nchw") {
  CHECK(tensor_faults(kResidual, [](KernelTensor& t) { t.image_words = 400; }) == Faults{});
  CHECK(tensor_faults(kResidual,
                      [](KernelTensor& t) {
                        t.image_words = 400;
                        t.layout = TensorLayout::nchw4;
                        t.alignment = 16;
                      }) == Faults{"the tensor 'residual' is a slice of a larger tensor, which cannot lie in "
                                   "nchw4"});
  std::int64_t octet = 0;
  const auto in_eights = [&](std::int64_t octets, std::int64_t others) {
    return faults_after([&](KernelForm& form) {
      form.tensors.resize(kWeights);
      form.launch = {.threads = 32, .tile_images = 8};
      KernelTensor& t = form.tensors[kResidual];
      t.element = ElementType::f16;
      t.layout = TensorLayout::n8c8hw;
      const auto words = burin::image_words(t.format(), {t.channels, t.rows, t.cols});
      octet = words / ceil_div(t.channels, 8);
      t.run_words = words;
      t.image_words = words + octets * octet + others;
      t.alignment = 16;
    });
  };
  CHECK(in_eights(0, 0) == Faults{});
  CHECK(in_eights(1, 0) == Faults{});
  CHECK(in_eights(3, 0) == Faults{});
  const Faults faults = in_eights(1, 4);
  REQUIRE(faults.size() == 1);
  CHECK(
      faults.front().find("the tensor 'residual' is a slice of a larger tensor in n8c8hw: it must be one run, and the "
                          "distance between images, ") == 0);
  CHECK(faults.front().find(fmt::format(" words, a multiple of the {} words of 8 channels", octet)) !=
        std::string::npos);
}

TEST_CASE("kernel form: activity maps that cannot be") {
  const auto in = [](const std::function<void(KernelTensor&)>& edit) { return tensor_faults(kInputMap, edit); };
  const auto out = [](const std::function<void(KernelTensor&)>& edit) { return tensor_faults(kOutputMap, edit); };
  const std::string input = "the tensor 'input_map'", output = "the tensor 'output_map'";
  CHECK(in([](KernelTensor& t) { t.map->images = 0; }) ==
        Faults{input + ": cell images is 0, allowed is 1 to 1048576: kMaxBatch images fit one launch"});
  CHECK(in([](KernelTensor& t) { t.map->rows = -1; }) ==
        Faults{input + ": cell rows is -1, allowed is 1 to 6: the tensor has no more rows"});
  CHECK(in([](KernelTensor& t) { t.map->cols = std::numeric_limits<int>::max(); }) ==
        Faults{input + ": cell columns is 2147483647, allowed is 1 to 4: the tensor has no more columns"});
  CHECK(in([](KernelTensor& t) { t.channels = 7; }) == Faults{input + " is of a tensor that the kernel does not have"});
  CHECK(in([](KernelTensor& t) { t = {.role = TensorRole::input_map, .run_words = 1}; }) ==
        Faults{input + " has no cells"});
  CHECK(out([](KernelTensor& t) { t.map->images = 3; }) ==
        Faults{output + " has cells of 3x2x2, which are not the kernel's tiles: 2 images, 6 tiles"});
  CHECK(out([](KernelTensor& t) { t.map->rows = 1; }) ==
        Faults{output + " has cells of 2x1x2, which are not the kernel's tiles: 2 images, 6 tiles"});
  // Of an input whose images are not known, there is none.
  CHECK(tensor_faults(kInput, [](KernelTensor& t) { t.channels = t.rows = t.cols = 0; }) ==
        Faults{input + " is of a tensor that the kernel does not have"});
}

TEST_CASE("kernel form: an activity map of a half tensor keeps pairs of images together") {
  const Faults faults = tensor_faults(kInput, [](KernelTensor& t) {
    t.element = ElementType::f16;
    t.layout = TensorLayout::n2chw;
  });
  CHECK(faults == Faults{"the tensor 'input_map': cell images is 3, it must be a multiple of 2: that many images lie "
                         "side by side"});
}

TEST_CASE("kernel form: boxes that cannot be") {
  // Slices of 20 channels of 6x4 pixels; the last octet of the larger tensor is none of theirs.
  const auto form_with = [](const std::function<void(KernelForm&)>& edit) {
    return faults_after([&](KernelForm& form) {
      form.tensors.resize(kWeights);
      form.launch = {.threads = 32, .tile_images = 8};
      KernelTensor& t = form.tensors[kInput];
      t.element = ElementType::f16;
      t.layout = TensorLayout::n8c8hw;
      t.channels = 20;
      t.run_words = burin::image_words(t.format(), {t.channels, t.rows, t.cols});
      t.image_words = t.run_words / 3 * 4;
      t.alignment = 16;
      form.boxes = {{.image_rows = 6, .image_cols = 4, .octets = 2, .rows = 3, .cols = 4}};
      edit(form);
    });
  };
  const auto box = [&](const std::function<void(TensorBox&)>& edit) {
    return form_with([&](KernelForm& form) { edit(form.boxes.front()); });
  };
  CHECK(box([](TensorBox&) {}) == Faults{});
  CHECK(box([](TensorBox& b) { std::tie(b.image_rows, b.image_cols) = std::pair(1, 24); }) == Faults{});
  CHECK(box([](TensorBox& b) { std::tie(b.rows, b.cols, b.octets) = std::tuple(256, 1, 1); }) == Faults{});
  CHECK(box([](TensorBox& b) { std::tie(b.cols, b.step_cols) = std::pair(32, 8); }) == Faults{});

  for (const int tensor : {-1, 3}) {
    CHECK(box([&](TensorBox& b) { b.tensor = tensor; }) ==
          Faults{fmt::format("box 0: it is of tensor {}, and the kernel has 3", tensor)});
  }
  const auto no_images = [](int tensor) {
    return Faults{fmt::format(
        "box 0: it is of tensor {}, which is not one of images in n8c8hw or n4c8hw that the kernel reads", tensor)};
  };
  CHECK(box([](TensorBox& b) { b.tensor = kOutput; }) == no_images(kOutput));
  CHECK(box([](TensorBox& b) { b.tensor = kResidual; }) == no_images(kResidual));
  CHECK(form_with([](KernelForm& form) {
          KernelTensor& t = form.tensors[kInput];
          t.channels = t.rows = t.cols = 0;
        }) == no_images(kInput));
  CHECK(form_with([](KernelForm& form) {
          form.tensors[kResidual] = {.role = TensorRole::residual, .argument = 1};
          form.boxes.front().tensor = kResidual;
        }) == no_images(kResidual));
  CHECK(box([](TensorBox& b) { b.image_rows = 5; }) ==
        Faults{"box 0: it takes images for 5x4, which are not the 6x4 pixels of tensor 0"});
  CHECK(box([](TensorBox& b) { std::tie(b.image_rows, b.image_cols) = std::pair(-6, -4); }) ==
        Faults{"box 0: it takes images for -6x-4, which are not the 6x4 pixels of tensor 0"});
  const std::string extents = ", allowed is 1 to 256 (kMaxBoxExtent)";
  CHECK(box([](TensorBox& b) { b.octets = 0; }) ==
        Faults{"box 0: its number of octets, those between its steps included, is 0" + extents});
  CHECK(box([](TensorBox& b) { b.rows = 257; }) ==
        Faults{"box 0: its number of rows, those between its steps included, is 257" + extents});
  CHECK(box([](TensorBox& b) { std::tie(b.cols, b.step_cols) = std::pair(129, 2); }) ==
        Faults{"box 0: its number of columns, those between its steps included, is 258" + extents});
  CHECK(box([](TensorBox& b) { std::tie(b.cols, b.step_cols) = std::pair(std::numeric_limits<int>::max(), 8); }) ==
        Faults{"box 0: its number of columns, those between its steps included, is 17179869176" + extents});
  for (const int step : {0, 9}) {
    const Faults faults = box([&](TensorBox& b) { b.step_rows = step; });
    REQUIRE(!faults.empty());
    CHECK(faults.front() == fmt::format("box 0: the step of its rows is {}, allowed is 1 to 8 (kMaxBoxStep)", step));
  }
  CHECK(box([](TensorBox& b) { std::tie(b.octets, b.rows, b.cols) = std::tuple(8, 16, 15); }) ==
        Faults{"box 0: it has 245760 bytes, more than the 232448 of shared memory"});
  CHECK(form_with([](KernelForm& form) { form.boxes.resize(3, form.boxes.front()); }) ==
        Faults{"it has 3 boxes, at most 2 are allowed (kMaxKernelBoxes)"});
  CHECK(form_with([](KernelForm& form) {
          form.boxes.push_back(form.boxes.front());
          form.boxes.back().rows = 0;
        }) == Faults{"box 1: its number of rows, those between its steps included, is 0" + extents});
}

TEST_CASE("kernel form: what the driver is told of a box") {
  KernelTensor tensor{.element = ElementType::f16, .layout = TensorLayout::n8c8hw};
  std::tie(tensor.channels, tensor.rows, tensor.cols, tensor.image_words) = std::tuple(20, 6, 4, 4 * 6 * 4 * 32);
  const TensorBox box{
      .image_rows = 6, .image_cols = 4, .octets = 2, .rows = 3, .cols = 4, .step_rows = 1, .step_cols = 2};
  const BoxAxes axes = axes_of(box, tensor, 17);
  CHECK(axes.extents == std::array<std::uint64_t, 5>{64, 4, 6, 3, 3});
  CHECK(axes.strides == std::array<std::uint64_t, 4>{128, 4 * 128, 6 * 4 * 128, 4 * 6 * 4 * 128});
  CHECK(axes.box == std::array<std::uint32_t, 5>{64, 8, 3, 2, 1});
  CHECK(axes.steps == std::array<std::uint32_t, 5>{1, 2, 1, 1, 1});
  CHECK(box.bytes() == 2 * 3 * 4 * 128);
  CHECK(axes_of(box, tensor, 8).extents[4] == 1);
  CHECK(axes_of(box, tensor, 9).extents[4] == 2);
  std::tie(tensor.element, tensor.layout) = std::pair(ElementType::f32, TensorLayout::n4c8hw);
  BoxAxes of_floats = axes;
  of_floats.extents[4] = 5;
  const BoxAxes found = axes_of(box, tensor, 17);
  CHECK(std::tie(found.extents, found.strides, found.box, found.steps) ==
        std::tie(of_floats.extents, of_floats.strides, of_floats.box, of_floats.steps));
}

TEST_CASE("kernel form: a swizzled box has the places of eight lines in eight orders") {
  CHECK(burin::swizzled_address(0) == 0);
  CHECK(burin::swizzled_address(112) == 112);
  CHECK(burin::swizzled_address(128) == 128 + 16);
  CHECK(burin::swizzled_address(128 + 20) == 128 + 4);
  CHECK(burin::swizzled_address(7 * 128 + 32) == 7 * 128 + 5 * 16);
  CHECK(burin::swizzled_address(8 * 128 + 32) == 8 * 128 + 32);
}

TEST_CASE("kernel form: text of boxes") {
  const std::string tensors = kHead + "tensor 0: input, f16 n8c8hw 20x6x4, 2304 words, aligned 16\n";
  const KernelForm form =
      parsed(tensors + "box 0: of tensor 0, 1x24, 2x1x12\nbox 1: of tensor 0, 6x4, 1x2x3, steps 2x1\n");
  REQUIRE(form.boxes.size() == 2);
  const KernelForm swizzled = parsed(
      tensors + "box 0: of tensor 0, 6x4, 1x2x3, swizzled\nbox 1: of tensor 0, 6x4, 1x2x3, steps 2x1, swizzled\n");
  REQUIRE(swizzled.boxes.size() == 2);
  CHECK(swizzled.boxes[0] == TensorBox{.image_rows = 6, .image_cols = 4, .rows = 2, .cols = 3, .swizzled = true});
  CHECK(swizzled.boxes[1].step_rows == 2);
  CHECK(swizzled.boxes[1].swizzled);
  CHECK(print(swizzled.boxes[1]) == "of tensor 0, 6x4, 1x2x3, steps 2x1, swizzled");
  CHECK(form.boxes[0] == TensorBox{.image_rows = 1, .image_cols = 24, .octets = 2, .rows = 1, .cols = 12});
  CHECK(form.boxes[1] == TensorBox{.tensor = 0,
                                   .image_rows = 6,
                                   .image_cols = 4,
                                   .octets = 1,
                                   .rows = 2,
                                   .cols = 3,
                                   .step_rows = 2,
                                   .step_cols = 1});
  CHECK(parsed(print(form)) == form);
  const auto error = [&](const std::string& line) { return error_of([&] { parsed(tensors + line + "\n"); }); };
  for (const char* value :
       {"", "of tensor 0", "of tensor 0, 6x4", "of tensor 0, 6x4x1, 1x1x1", "of tensor 0, 6x4, 1x1",
        "of tensor 0, 6x4, 1x1x1, 2x2", "of tensor 0, 6x4, 1x1x1, steps 2x2x2", "tensor 0, 6x4, 1x1x1",
        "of tensor 0, 6x4, 1x1x1, steps 2x2, steps 2x2", "of tensor 0, 6 x 4, 1x1x1"}) {
    INFO(value);
    CHECK(error(std::string("box 0: ") + value)
              .find("is not of the form 'of tensor N, HxW, OxHxW[, steps NxN][, swizzled]'") != std::string::npos);
  }
  CHECK(error("box 1: of tensor 0, 6x4, 1x1x1").find("'box 1' stands where 'box 0' is expected") != std::string::npos);
  CHECK(error("box 0: of tensor zero, 6x4, 1x1x1").find("zero") != std::string::npos);
  CHECK(error("box 0: of tensor 0, 6x4, 1x1x99999999999").find("99999999999") != std::string::npos);
}

namespace {

// 3x3x3 halves, 27 of them.
KernelTensor loose_image(TensorRole role, int alignment = 2) {
  return {.role = role,
          .element = ElementType::f16,
          .channels = 3,
          .rows = 3,
          .cols = 3,
          .image_words = 27,
          .run_words = 27,
          .alignment = alignment};
}

}  // namespace

TEST_CASE("kernel form: loose halves are counted one by one") {
  const KernelTensor tensor = loose_image(TensorRole::input);
  CHECK(tensor.word_bytes() == 2);
  CHECK(tensor.elements_per_word() == 1);
  CHECK(tensor.words() == 27);
  CHECK(tensor.spanned_words(3) == 81);
  CHECK(tensor.spanned_memory(3) == 41);  // words of 4 bytes, the last of which is half filled
  CHECK(small_image(TensorRole::input).spanned_memory(3) == 3 * 192);
  KernelForm form = small_form();
  form.tensors = {tensor, small_image(TensorRole::output)};
  form.launch.workspace_bytes_per_tile = form.launch.counters_per_tile = 0;
  CHECK(verify(form) == Faults{});
  const std::string text = print(form);
  CHECK_THAT(text, burin_test::Contains("tensor 0: input, f16 nchw 3x3x3, 27 halves, aligned 2\n"));
  CHECK(parsed(text) == form);
  form.tensors[0] = {
      .role = TensorRole::input, .element = ElementType::bf16, .image_words = 10, .run_words = 10, .alignment = 4};
  CHECK(verify(form) == Faults{});
  CHECK_THAT(print(form), burin_test::Contains("tensor 0: input, bf16 nchw, 10 halves\n"));
  CHECK(parsed(print(form)) == form);
  CHECK_THAT(tensor_error("input, f16 nchw 3x3x3, 27 words"), burin_test::Contains("is not of the form"));
  CHECK_THAT(tensor_error("input, f32 nchw 3x3x3, 27 halves"), burin_test::Contains("is not of the form"));
}

TEST_CASE("kernel form: loose halves begin where they may be accessed, and are never part of a larger tensor") {
  const auto faults_of = [](const KernelTensor& tensor) {
    KernelForm form = small_form();
    form.tensors = {tensor, small_image(TensorRole::output)};
    form.launch.workspace_bytes_per_tile = form.launch.counters_per_tile = 0;
    return verify(form);
  };
  CHECK(
      faults_of(loose_image(TensorRole::input, 4)) ==
      Faults{"the tensor 'input' is aligned to 4 bytes: the distances 27 between images and 0 between runs, in words, "
             "must be multiples of 2"});
  CHECK(faults_of(loose_image(TensorRole::input, 1)) ==
        Faults{"the tensor 'input' is aligned to 1 bytes, allowed are powers of two from 2 to 256"});
  KernelTensor slice = loose_image(TensorRole::input);
  slice.image_words = 30;
  CHECK(faults_of(slice) ==
        Faults{"the tensor 'input' is a slice of a larger tensor, and f16 nchw is never part of one"});
  KernelTensor fours = loose_image(TensorRole::input, 16);
  fours.layout = TensorLayout::nchw4;
  fours.image_words = fours.run_words = 4 * 9;
  CHECK(faults_of(fours) == Faults{fmt::format("the tensor 'input' holds f16 in nchw4: {}", burin::kWhatLiesWhere)});
}

TEST_CASE("kernel form: tiles, blocks and words") {
  LaunchGeometry launch = {.tile_images = 4, .tiles_per_image = 3};
  CHECK(tile_count(launch, 1) == 3);
  CHECK(tile_count(launch, 4) == 3);
  CHECK(tile_count(launch, 5) == 6);
  CHECK(grid_width(launch, 5) == 6);
  launch.cluster_tiles = 4;
  CHECK(grid_width(launch, 5) == 8);
  launch.tiles_per_image = std::numeric_limits<std::int64_t>::max() / 2;
  CHECK(tile_count(launch, 5) > kMaxTiles);  // saturated
  CHECK(grid_width(launch, kMaxBatch) > kMaxTiles);

  KernelTensor tensor = {.image_words = 100, .run_words = 10, .runs = 3, .run_pitch = 20};
  CHECK(tensor.words() == 30);
  CHECK(tensor.end() == 50);
  CHECK(tensor.spanned_words(1) == 50);
  CHECK(tensor.spanned_words(3) == 250);
  for (const int word : {0, 9, 20, 29, 49}) CHECK(tensor.contains(word));
  for (const int word : {-1, 10, 19, 30, 50, 100}) CHECK_FALSE(tensor.contains(word));
  tensor.layout = TensorLayout::n2chw;
  CHECK(tensor.spanned_words(3) == 150);  // two pairs
  tensor.layout = TensorLayout::n8c8hw;
  CHECK(tensor.spanned_words(8) == 50);
  CHECK(tensor.spanned_words(9) == 150);
  tensor.image_words = std::numeric_limits<std::int64_t>::max();
  CHECK(tensor.spanned_words(kMaxBatch) > kMaxArenaBytes);  // saturated
}

TEST_CASE("kernel form: what a baked plan implies") {
  const BakedPlan plan = small_plan();
  const KernelForm form = form_of(plan, small_shape());
  CHECK(verify(form) == Faults{});
  const LaunchGeometry launch = {.threads = 416,
                                 .shared_bytes = plan.shared_bytes(),
                                 .slices = 4,
                                 .tile_images = 2,
                                 .tiles_per_image = 1,
                                 .cluster_tiles = 1,
                                 .workspace_bytes_per_tile = 4 * 16 * 416 * 4,
                                 .counters_per_tile = 2};
  CHECK(form.launch == launch);
  REQUIRE(form.tensors.size() == 5);
  const std::vector<TensorRole> roles = {TensorRole::input, TensorRole::output, TensorRole::residual,
                                         TensorRole::partials, TensorRole::counters};
  for (std::size_t i = 0; i < roles.size(); ++i) CHECK(form.tensors[i].role == roles[i]);
  CHECK(form.input().words() == small_shape().input_elements());
  CHECK(form.output().words() == small_shape().output_elements());
  CHECK(form.input().alignment == 4);
  CHECK(form.has(TensorRole::residual) == small_shape().epilogue.residual);
  CHECK(form.find(TensorRole::partials)->run_words == 4 * 16 * 416);
  CHECK(form.find(TensorRole::counters)->run_words == 2);
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp16x2}) {
    const KernelForm half = form_of(small_half_plan(precision), small_shape());
    CHECK(verify(half) == Faults{});
    CHECK(half.launch.tile_images == 4);
    CHECK(half.launch.workspace_bytes_per_tile == 2 * launch.workspace_bytes_per_tile);  // two sums of a thread
    CHECK(half.input().element == element_of(precision));
    CHECK(half.input().layout == TensorLayout::n2chw);
  }
}

TEST_CASE("kernel form: a baked plan without scratch memory, with a slice as its output, and with maps") {
  BakedPlan plan = small_plan();
  plan.reduction = Reduction::cluster;
  plan.cluster = {2, 2};
  plan.output_image_words = 2 * small_shape().output_elements();
  KernelForm form = form_of(plan, small_shape());
  CHECK(verify(form) == Faults{});
  CHECK(form.launch.cluster_tiles == 2);
  CHECK(form.launch.workspace_bytes_per_tile == 0);
  CHECK_FALSE(form.has(TensorRole::partials));
  CHECK_FALSE(form.has(TensorRole::counters));
  CHECK(form.tensors.size() == 5);  // they stand there, as null pointers
  CHECK(form.output().image_words == plan.output_image_words);
  CHECK(form.output().run_words == small_shape().output_elements());

  plan.marks = true;
  form = form_of(plan, small_shape());
  CHECK(verify(form) == Faults{});
  REQUIRE(form.tensors.size() == 7);
  CHECK_FALSE(form.tensors[5].exists());
  CHECK(form.find(TensorRole::output_map)->map == ActivityMap{2, 14, 14});
  plan.skips = ActivityMap{3, 7, 5};
  form = form_of(plan, small_shape());
  CHECK(verify(form) == Faults{});
  CHECK(form.find(TensorRole::input_map)->map == ActivityMap{3, 7, 5});
}

TEST_CASE("kernel form: a template's blocks have something to write") {
  TemplatePlan plan;
  plan.template_name = "pool";
  plan.input() = small_image(TensorRole::input);
  plan.output() = small_image(TensorRole::output);
  const std::int64_t words = plan.output().words();
  plan.launch().tiles_per_image = 8 * words;
  CHECK(verify(plan) == Faults{});
  plan.launch().tiles_per_image = 8 * words + 1;
  CHECK(verify(plan) ==
        Faults{fmt::format(
            "tiles_per_image is {}: more than 8 blocks for each of the {} words of an image that are written",
            8 * words + 1, words)});
  plan.launch().tiles_per_image = 1;
  plan.launch().slices = 2;
  CHECK(verify(plan) == Faults{"slices is 2; a template's blocks are all of one slice"});
}

TEST_CASE("kernel form: a plan, its form and what cannot be derived") {
  Kernel kernel;
  kernel.provider = kBakedProvider;
  kernel.op = "conv1";
  kernel.layer.emplace().shape = small_shape();
  kernel.planned_batch = 2;
  kernel.plan = print(small_plan());
  derive_form(kernel);
  CHECK(kernel.form == form_of(small_plan(), small_shape()));
  CHECK(kernel.plan_short == describe(small_plan()));
  CHECK(kernel.owner() == "layer conv1");
  const auto error = [&](const std::function<void(Kernel&)>& edit) {
    Kernel edited = kernel;
    edit(edited);
    return error_of([&] { derive_form(edited); });
  };
  CHECK(error([](Kernel& k) { k.plan = "threads"; }) ==
        "kernel plan, line 1: 'threads' is not of the form 'key: value'");
  CHECK(error([](Kernel& k) { k.layer->shape.in_channels = 15; }).find("names input channel 15") != std::string::npos);
  CHECK(error([](Kernel& k) { k.layer.reset(); }) == "it is no convolution, which conv_baked kernels are");
  CHECK(error([](Kernel& k) { k.precision = "bf16"; }) == "it computes in fp32, and the kernel is said to in bf16");
  CHECK(error([](Kernel& k) { k.planned_batch = 1; }) == "it is for batch 2, and the kernel is said to be for 1");
  CHECK(error([](Kernel& k) { k.provider = "pool"; }) == "plan: there is no line 'shared_bytes: ...'");

  TemplatePlan plan;
  plan.template_name = "pool";
  plan.input() = small_image(TensorRole::input);
  plan.output() = small_image(TensorRole::output);
  Kernel pool;
  pool.provider = "pool";
  pool.op = "pool1";
  pool.plan = print(plan);
  derive_form(pool);
  CHECK(pool.form == plan.form);
  CHECK(pool.plan_short == describe(plan));
  CHECK(pool.owner() == "operator pool1");
  pool.provider = "copy";
  CHECK(error_of([&] { derive_form(pool); }) == "it is of pool, and the kernel is said to be of copy");
  pool.provider = "pool";
  plan.launch().threads = 48;
  pool.plan = print(plan);
  CHECK(error_of([&] { derive_form(pool); }) == "threads is 48, whole warps of 32 are needed");
}

TEST_CASE("kernel form: text") {
  const KernelForm form = small_form();
  const std::string text = print(form);
  CHECK(text ==
        "threads: 64\n"
        "shared_bytes: 1024\n"
        "tile_images: 2\n"
        "tiles_per_image: 6\n"
        "slices: 4\n"
        "cluster_tiles: 2\n"
        "workspace_bytes_per_tile: 4096\n"
        "counters_per_tile: 2\n"
        "tensor 0: input, f32 nchw 8x6x4, 192 words\n"
        "tensor 1: output, f32 nchw 8x6x4, 192 words\n"
        "tensor 2: residual 1, f32 nchw 8x6x4, 192 words\n"
        "tensor 3: weights, 59 words\n"
        "tensor 4: partials, 1024 words\n"
        "tensor 5: counters, 2 words\n"
        "tensor 6: input_map, 8x6x4, cells 3x2x1\n"
        "tensor 7: output_map, 8x6x4, cells 2x2x2\n");
  CHECK(parsed(text) == form);
}

TEST_CASE("kernel form: what is as usual is left out of the text, and there and back") {
  KernelForm form;
  form.launch = {.threads = 256, .tiles_per_image = std::int64_t{1} << 31};
  form.tensors = {small_image(TensorRole::input),
                  small_image(TensorRole::output),
                  small_image(TensorRole::residual),
                  {.role = TensorRole::weights}};
  form.tensors[kInput] = {.element = ElementType::f16,
                          .layout = TensorLayout::n2chw,
                          .channels = 3,
                          .rows = 5,
                          .cols = 7,
                          .image_words = 105,
                          .run_words = 105,
                          .alignment = 256};
  form.tensors[kOutput] = {
      .role = TensorRole::output, .image_words = 400, .run_words = 96, .runs = 2, .run_pitch = 128, .alignment = 16};
  form.tensors[kResidual] = {.role = TensorRole::residual, .argument = 1};
  const std::string text = print(form);
  CHECK(text ==
        "threads: 256\n"
        "shared_bytes: 0\n"
        "tile_images: 1\n"
        "tiles_per_image: 2147483648\n"
        "tensor 0: input, f16 n2chw 3x5x7, 105 words, aligned 256\n"
        "tensor 1: output, f32 nchw, 96 words of 400, 2 runs 128 apart, aligned 16\n"
        "tensor 2: residual 1, none\n"
        "tensor 3: weights, none\n");
  CHECK(parsed(text) == form);
  form.tensors[kResidual] = small_image(TensorRole::residual);
  form.tensors[kResidual].argument = 0;
  CHECK(parsed(print(form)) == form);
}

TEST_CASE("kernel form: text that cannot be read") {
  const auto error = [](const std::string& text) { return error_of([&] { parsed(text); }); };
  CHECK(error("") == "plan: there is no line 'threads: ...'");
  CHECK(error("threads: 64\nshared_bytes: 0\ntile_images: 1\n") == "plan: there is no line 'tiles_per_image: ...'");
  CHECK(error("threads: many\n") == "plan, line 1: 'many' of 'threads' is not an integer");
  CHECK(error("threads: 4294967360\n") == "plan, line 1: 4294967360 of 'threads' does not fit 32 bits");
  CHECK(error(kHead + "slices: 1.5\n") == "plan, line 5: '1.5' of 'slices' is not an integer");
  CHECK(error(kHead + "workspace_bytes_per_tile: 9223372036854775808\n") ==
        "plan, line 5: '9223372036854775808' of 'workspace_bytes_per_tile' is not an integer");
  CHECK(error(kHead + "block_images: 8\n") == "plan, line 5: unknown key 'block_images'");
  CHECK(error(kHead + "tensor 1: weights, none\n").starts_with("plan, line 5: 'tensor 1' "));
  CHECK(error(kHead + "tensor 0: weights, none\ntensor 0: weights, none\n").starts_with("plan, line 6: 'tensor 0' "));
  CHECK(error(kHead + "tensor x: weights, none\n").starts_with("plan, line 5: 'tensor x' "));
}

TEST_CASE("kernel form: tensors whose text cannot be read") {
  const auto of_no_form = [](const std::string& value) {
    INFO(value);
    CHECK(tensor_error(value).starts_with("plan, line 5: '" + value + "' is not of the form 'ROLE[ ARGUMENT], "));
  };
  for (const std::string value :
       {"input 0 1, none", "input", "input,", "input, f32", "input, f32 nhwc, 9 words", "input, f32 nchw 3x3, 9 words",
        "input, f32 nchw 1x3x3 more, 9 words", "input, f32 nchw, 9 words in", "input, f32 nchw, 9 words of 9 more",
        "input, f32 nchw, 9 words, 2 runs 10", "input, f32 nchw, 0 words", "input_map, 8x6x4, cells 3x2",
        "weights, f64 nchw, 9 words", "weights, 9"}) {
    of_no_form(value);
  }
  CHECK(tensor_error("").starts_with("plan, line 5: '' is not of the form"));
  CHECK(tensor_error("scales, none") ==
        "plan, line 5: 'scales' is not a role of a tensor; known are " + known_names<TensorRole>());
  for (const std::string word : {"none", "aligned", "cells"}) {
    CHECK(tensor_error("input, none, " + word) == "plan, line 5: 'none' of 'tensor 0' is not an integer");
    CHECK(tensor_error("input, f32 nchw, 9 words, " + word) ==
          "plan, line 5: '" + word + "' of 'tensor 0' is not an integer");
  }
  CHECK(tensor_error("input one, none") == "plan, line 5: 'one' of 'tensor 0' is not an integer");
  CHECK(tensor_error("input, f32 nchw, many words") == "plan, line 5: 'many' of 'tensor 0' is not an integer");
  CHECK(tensor_error("input, f32 nchw axbxc, 9 words") == "plan, line 5: 'a' of 'tensor 0' is not an integer");
  CHECK(tensor_error("input, f32 nchw, 9 words, aligned 4294967312") ==
        "plan, line 5: 4294967312 of 'tensor 0' does not fit 32 bits");
}

// The text leaves out what means nothing: a legal form has none of that.
TEST_CASE("kernel form: whatever can be said of a tensor, a legal form comes back from its text", "") {
  TemplatePlan whole;
  whole.template_name = "any";
  for (KernelTensor* tensor : {&whole.input(), &whole.output(), &whole.residual(), &whole.weights()}) {
    tensor->run_words = 5;
    tensor->image_words = tensor->role == TensorRole::weights ? 0 : 5;
  }
  REQUIRE(verify(whole) == Faults{});
  const std::vector<std::string> elements = {"", ", f32 nchw", ", f32 nchw 1x1x5"}, images = {"", ", 1x1x5"},
                                 words = {", 5 words", ", 5 words of 16"}, runs = {"", ", 2 runs 8 apart"},
                                 alignments = {"", ", aligned 16"}, maps = {"", ", cells 1x1x1"};
  int legal = 0, lost = 0;
  std::string first_lost;
  const auto check = [&](std::size_t at, const std::string& value) {
    std::string text = print(whole);
    const std::size_t begin = text.find(fmt::format("tensor {}: ", at));
    const std::size_t end = text.find('\n', begin);
    text.replace(begin, end - begin, fmt::format("tensor {}: {}", at, value));
    const TemplatePlan plan = parse_template_plan(text);
    if (!verify(plan).empty()) return;
    ++legal;
    if (parse_template_plan(print(plan)) != plan && lost++ == 0) first_lost = value;
  };
  const std::vector<std::string> roles = {"input", "output", "residual 1", "weights"};
  for (std::size_t at = 0; at < roles.size(); ++at) {
    for (const std::string& element : elements) {
      for (const std::string& image : images) {
        for (const std::string& count : words) {
          for (const std::string& run : runs) {
            for (const std::string& alignment : alignments) {
              for (const std::string& map : maps)
                check(at, roles[at] + element + image + count + run + alignment + map);
            }
          }
        }
      }
    }
  }
  CAPTURE(first_lost);
  CHECK(legal > 20);
  CHECK(lost == 0);
}

TEST_CASE("kernel form: roles have names") {
  for (int i = 0; i <= static_cast<int>(TensorRole::output_map); ++i) {
    const auto role = static_cast<TensorRole>(i);
    CHECK(parse_enum<TensorRole>(to_string(role)) == role);
  }
  CHECK_FALSE(parse_enum<TensorRole>("second"));
}
