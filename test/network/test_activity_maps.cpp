// Where activity maps of a program lie, and which steps have them; and programs of one kernel.
#include "ir/place_activity_maps.h"

#include <algorithm>

#include "compiler/network/memory_plan.h"
#include "ir/error.h"
#include "ir/kernel_program.h"
#include "test/catch.h"
#include "test/ir/small_network.h"
#include "test/network/pass_checks.h"
#include "test/thrown.h"

using namespace burin;
using namespace burin_test;

namespace {

constexpr ActivityMap kCells = {1, 4, 4};
constexpr int kExtent = 8, kChannels = 2;

KernelTensor map_tensor(TensorRole role, const ActivityMap& map, int channels = kChannels) {
  KernelTensor tensor;
  tensor.role = role;
  tensor.map = map;
  tensor.channels = channels;
  tensor.rows = tensor.cols = kExtent;
  return tensor;
}

// The kernel takes and writes maps in these cells. Nothing else of its form is looked at.
KernelForm form_with(const std::optional<ActivityMap>& reads, const std::optional<ActivityMap>& writes) {
  KernelForm form;
  if (reads) form.tensors.push_back(map_tensor(TensorRole::input_map, *reads));
  if (writes) form.tensors.push_back(map_tensor(TensorRole::output_map, *writes));
  return form;
}

ConvLayer same_extent(const std::string& name) { return conv(name, kChannels, kChannels, {.kernel = 3, .pad = 1}); }

// A chain of convolutions, of which these tensors are outputs: of the first, 0.
Network chain_of(int length, const std::vector<int>& outputs) {
  GraphBuilder graph;
  std::vector<int> tensors = {graph.input({kChannels, kExtent, kExtent})};
  for (int i = 0; i < length; ++i) {
    tensors.push_back(graph.convolution(same_extent("conv" + std::to_string(i)), {tensors.back()}));
  }
  std::vector<int> chosen;
  for (const int output : outputs) chosen.push_back(tensors[static_cast<std::size_t>(output) + 1]);
  return graph.finish(chosen);
}

void place(Program& program, const std::vector<KernelForm>& forms, bool as_arguments = false) {
  std::vector<const KernelForm*> pointers;
  for (const KernelForm& form : forms) pointers.push_back(&form);
  REQUIRE(forms.size() == program.steps.size());
  place_activity_maps(program, pointers, as_arguments);
  CHECK(verify(program) == std::vector<std::string>{});
}

int maps_in(const Program& program) {
  return static_cast<int>(
      std::ranges::count_if(program.buffers, [](const Buffer& buffer) { return buffer.map.has_value(); }));
}

bool has_maps(const Step& step) { return step.input_map || step.output_map; }

}  // namespace

TEST_CASE("activity maps: a step reads the map that the one before it writes") {
  Program program = plan_network(chain_of(3, {2}), "chain", 3);
  const Program before = program;
  const KernelForm form = form_with(kCells, kCells);
  place(program, {form, form, form});
  // Nobody makes a map of the program's input, and nobody reads one of its output.
  CHECK_FALSE(program.steps[0].input_map.has_value());
  CHECK_FALSE(program.steps[2].output_map.has_value());
  for (const int maker : {0, 1}) {
    const Step &writes = program.steps[static_cast<std::size_t>(maker)],
               &reads = program.steps[static_cast<std::size_t>(maker) + 1];
    REQUIRE(writes.output_map.has_value());
    CHECK(reads.input_map == writes.output_map);
    const Buffer& map = program.buffer(*writes.output_map);
    CHECK(map.home == BufferHome::arena);
    CHECK(map.map == kCells);
    CHECK(map.tensor == writes.tensor + ".activity");
    CHECK(map.bytes == 3 * 4 * kChannels);  // four cells of each image
    CHECK(map.first == maker);
    CHECK(map.last == maker + 1);
    CHECK(map.offset % kBufferAlignment == 0);
    CHECK(map.offset >= before.arena_bytes);
  }
  CHECK(maps_in(program) == 2);
  CHECK(program.steps[0].output_map->buffer != program.steps[1].output_map->buffer);
  CHECK(program.arena_bytes == before.arena_bytes + 2 * kBufferAlignment);
  CHECK(program.naive_bytes == before.naive_bytes + 2 * kBufferAlignment);
  CHECK(program.inputs().size() == 1);
  CHECK(program.outputs().size() == 1);
  CHECK(parse_program(to_text(program)) == program);
}

TEST_CASE("activity maps: one that two steps read is one") {
  GraphBuilder graph;
  const int x = graph.input({kChannels, kExtent, kExtent});
  const int a = graph.convolution(same_extent("a"), {x});
  const int b = graph.convolution(same_extent("b"), {a}), c = graph.convolution(same_extent("c"), {a});
  Program program = plan_network(graph.finish({b, c}), "fork", 1);
  const KernelForm form = form_with(kCells, kCells);
  place(program, {form, form, form});
  CHECK(maps_in(program) == 1);
  REQUIRE(program.steps[0].output_map.has_value());
  CHECK(program.steps[1].input_map == program.steps[0].output_map);
  CHECK(program.steps[2].input_map == program.steps[0].output_map);
  CHECK(program.buffer(*program.steps[0].output_map).last == 2);
}

TEST_CASE("activity maps: where cells are others, or nobody writes or reads them, there is none") {
  const KernelForm both = form_with(kCells, kCells), none = form_with({}, {});
  KernelForm wider = both;
  wider.tensors.front().channels = kChannels + 1;
  const ActivityMap other = {1, 4, 8};
  for (const auto& [first, second] : {std::pair{both, form_with(other, kCells)},
                                      {form_with(kCells, other), both},
                                      {both, wider},
                                      {both, none},
                                      {none, both},
                                      {form_with(kCells, {}), both}}) {
    Program program = plan_network(chain_of(2, {1}), "chain", 2);
    const Program before = program;
    place(program, {first, second});
    CHECK(program == before);
  }
}

TEST_CASE("activity maps: of a tensor that several steps write there is none") {
  GraphBuilder graph;
  const int x = graph.input({kChannels, kExtent, kExtent});
  const int a = graph.convolution(same_extent("a"), {x}), b = graph.convolution(same_extent("b"), {x});
  const int both = graph.add("both", Concat{0}, {a, b});
  const int out = graph.convolution(conv("out", 2 * kChannels, kChannels, {.kernel = 3, .pad = 1}), {both});
  Program program = plan_network(graph.finish({out}), "concat", 1);
  REQUIRE(program.steps.size() == 3);
  KernelForm form = form_with(kCells, kCells);
  KernelForm last = form;
  last.tensors.front().channels = 2 * kChannels;
  place(program, {form, form, last});
  CHECK(maps_in(program) == 0);
  CHECK(std::ranges::none_of(program.steps, has_maps));
}

TEST_CASE("activity maps: a part of a tensor that one step writes and another reads has one") {
  GraphBuilder graph;
  const int x = graph.input({kChannels, kExtent, kExtent});
  const int a = graph.convolution(same_extent("a"), {x}), b = graph.convolution(same_extent("b"), {a});
  Program program = plan_network(graph.finish({graph.add("both", Concat{0}, {a, b})}), "concat", 1);
  const Program before = program;
  const KernelForm form = form_with(kCells, kCells);
  place(program, std::vector<KernelForm>(program.steps.size(), form));
  // The second convolution reads what the first one has written, no more and no less.
  CHECK(program.steps[1].input_map == program.steps[0].output_map);
  CHECK(program.steps[1].reads[0] == program.steps[0].writes);
  CHECK(program.steps[1].reads[0].is_slice());
  CHECK(program.outputs().size() == before.outputs().size());
}

TEST_CASE("activity maps: a network's outputs stay what they are, also where a step reads one") {
  // The caller knows nothing of maps: neither of the program's own tensors nor of what lies in his memory.
  Program program = plan_network(chain_of(2, {0, 1}), "chain", 2);
  const KernelForm form = form_with(kCells, kCells);
  place(program, {form, form});
  REQUIRE(program.outputs().size() == 2);
  for (const Buffer* output : program.outputs()) CHECK_FALSE(output->map.has_value());
  CHECK(program.inputs().size() == 1);
}

TEST_CASE("activity maps: those of a layer's input and output are arguments") {
  Network network;
  network.layers = {same_extent("conv")};
  network.layers[0].shape.in_h = network.layers[0].shape.in_w = kExtent;
  network.layers[0].shape.epilogue.residual = true;
  separate_layers(network);
  for (const bool as_arguments : {true, false}) {
    Program program = plan_network(network, "conv", 3);
    const Program before = program;
    place(program, {form_with(kCells, kCells)}, as_arguments);
    if (!as_arguments) {
      CHECK(program == before);
      continue;
    }
    CHECK(program.arena_bytes == 0);
    const std::vector<const Buffer*> inputs = program.inputs(), outputs = program.outputs();
    REQUIRE(inputs.size() == 3);
    CHECK(inputs[1]->tensor == "conv.residual");
    CHECK(inputs[2]->tensor == "conv.input.activity");
    REQUIRE(outputs.size() == 2);
    CHECK(outputs[1]->tensor == "conv.output.activity");
    for (const Buffer* map : {inputs[2], outputs[1]}) {
      CHECK(map->map == kCells);
      CHECK(map->shape == std::vector<std::int64_t>{kChannels, kExtent, kExtent});
      CHECK(map->bytes == 3 * 4 * kChannels);
      CHECK(map->first == 0);
    }
    CHECK(program.buffer(*program.steps[0].input_map).argument == 2);
    CHECK(program.buffer(*program.steps[0].output_map).argument == 1);
  }
}

TEST_CASE("activity maps: cells of two images are counted in pairs") {
  const ActivityMap pairs = {2, 4, 8};
  Program program = plan_network(chain_of(2, {1}), "chain", 3);
  place(program, {form_with({}, pairs), form_with(pairs, {})});
  REQUIRE(program.steps[0].output_map.has_value());
  const Place& map = *program.steps[0].output_map;
  CHECK(program.buffer(map).bytes == 2 * 2 * kChannels);  // of two pairs, the second half filled, two cells each
  CHECK(map.image_stride == 2 * kChannels);
}

namespace {

// The image has so many words.
KernelTensor image_of(TensorRole role, int channels, const TensorFormat& format = {}) {
  KernelTensor tensor;
  tensor.role = role;
  tensor.argument = role == TensorRole::residual ? 1 : 0;
  tensor.element = format.element;
  tensor.layout = format.layout;
  tensor.channels = channels;
  tensor.rows = tensor.cols = kExtent;
  tensor.run_words = tensor.image_words = image_elements(format.layout, channels, kExtent, kExtent);
  return tensor;
}

Kernel kernel_of(std::vector<KernelTensor> tensors) {
  Kernel kernel;
  kernel.symbol = "burin_conv";
  kernel.op = "conv";
  kernel.kind = "convolution";
  kernel.form.tensors = std::move(tensors);
  return kernel;
}

}  // namespace

TEST_CASE("kernel program: one step on the caller's memory, in the kernel's formats") {
  constexpr TensorFormat kHalves = {ElementType::bf16, TensorLayout::n2chw};
  const Program program =
      program_of(kernel_of({image_of(TensorRole::input, 3, kHalves), image_of(TensorRole::output, 5, kHalves),
                            image_of(TensorRole::residual, 5, kHalves), map_tensor(TensorRole::input_map, kCells, 3)}),
                 3);
  CHECK(verify(program) == std::vector<std::string>{});
  CHECK(program.name == "conv");
  CHECK(program.batch == 3);
  CHECK(program.arena_bytes == 0);
  REQUIRE(program.steps.size() == 1);
  CHECK(program.steps[0].kernel == "burin_conv");
  CHECK(program.steps[0].kind == "convolution");
  CHECK(program.steps[0].reads.size() == 2);
  const std::vector<const Buffer*> inputs = program.inputs();
  REQUIRE(inputs.size() == 3);
  CHECK(inputs[0]->tensor == "conv.input");
  CHECK(inputs[0]->format == kHalves);
  CHECK(inputs[0]->bytes == 2 * 3 * kExtent * kExtent * 4);  // two pairs
  CHECK(inputs[1]->tensor == "conv.residual");
  CHECK(inputs[2]->tensor == "conv.input.activity");
  REQUIRE(program.outputs().size() == 1);
  CHECK(program.outputs()[0]->tensor == "conv.output");
  CHECK(program.outputs()[0]->shape == std::vector<std::int64_t>{5, kExtent, kExtent});
}

TEST_CASE("kernel program: a kernel of a part of a tensor cannot be run by itself") {
  KernelTensor further_apart = image_of(TensorRole::output, 5);
  further_apart.image_words *= 2;
  KernelTensor in_runs = image_of(TensorRole::input, 3);
  in_runs.runs = 2;
  in_runs.run_words /= 2;
  in_runs.run_pitch = 2 * in_runs.run_words;
  CHECK_THAT(BURIN_THROWN(unsupported, program_of(kernel_of({image_of(TensorRole::input, 3), further_apart}), 1)).text,
             burin_test::Contains("its output is part of a larger tensor, so it cannot be run by itself"));
  CHECK_THAT(BURIN_THROWN(unsupported, program_of(kernel_of({in_runs, image_of(TensorRole::output, 5)}), 1)).text,
             burin_test::Contains("its input is part of a larger tensor, so it cannot be run by itself"));
}
