#include "compiler/calibrate/sample_images.h"

#include <algorithm>
#include <cmath>

#include "compiler/reference.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr int kRandomImages = 4;  // as many as verify compares of a network

std::vector<float> random_values(const Network& network, std::int64_t elements, std::uint64_t seed) {
  // random_tensor() is uniform in [-1, 1], whose standard deviation is 1 / sqrt(3).
  const auto scale = static_cast<float>(network.input_std * std::sqrt(3.0));
  std::vector<float> values = random_tensor(elements, seed);
  for (float& value : values) value *= scale;
  return values;
}

const CalibrationInput& input_named(const std::vector<CalibrationInput>& inputs, const std::string& name,
                                    std::string_view option) {
  const auto found = std::ranges::find(inputs, name, &CalibrationInput::input);
  if (found == inputs.end()) fail(ErrorKind::usage, "{}: nothing is given for the input '{}'", option, name);
  return *found;
}

}  // namespace

SampleImages sample_images(const Network& network, const std::vector<CalibrationInput>& given,
                           std::string_view option) {
  SampleImages images;
  for (std::size_t i = 0; i < network.inputs.size(); ++i) {
    const Activations& tensor = network.tensors[static_cast<std::size_t>(network.inputs[i])];
    const std::int64_t elements = tensor.elements();
    if (given.empty()) {
      images.count = kRandomImages;
      images.inputs.push_back(random_values(network, kRandomImages * elements, i + 1));
      continue;
    }
    const std::vector<float>& values = input_named(given, tensor.name, option).values;
    const auto size = static_cast<std::int64_t>(values.size());
    if (size == 0 || size % elements != 0) {
      fail(ErrorKind::bad_input, "{}: {} values are no images of the input '{}', which has {}", option, size,
           tensor.name, elements);
    }
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
      fail(ErrorKind::bad_input, "{}: the images of the input '{}' hold NaN or infinity", option, tensor.name);
    }
    const int count = static_cast<int>(size / elements);
    if (i > 0 && count != images.count) {
      fail(ErrorKind::bad_input, "{}: {} images of the input '{}', but {} of '{}'", option, count, tensor.name,
           images.count, network.tensors[static_cast<std::size_t>(network.inputs[0])].name);
    }
    images.count = count;
    images.inputs.push_back(values);
  }
  return images;
}

SampleImages images_of(const Network& graph, const Network& network, const SampleImages& images) {
  SampleImages result{.inputs = {}, .count = images.count};
  for (const int input : graph.inputs) {
    const std::string& name = graph.tensors[static_cast<std::size_t>(input)].name;
    const auto is_same = [&](int other) { return network.tensors[static_cast<std::size_t>(other)].name == name; };
    const auto at = std::ranges::find_if(network.inputs, is_same) - network.inputs.begin();
    BURIN_CHECK(at < std::ssize(network.inputs), "the input '{}' is one of a layer alone", name);
    result.inputs.push_back(images.inputs[static_cast<std::size_t>(at)]);
  }
  return result;
}

}  // namespace burin
