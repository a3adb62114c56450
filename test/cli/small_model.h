// Small ONNX models for tests of the tool.
#pragma once

#include <string>

#include "test/import/onnx_model.h"

namespace burin_test {

// x (3x12x12) -> conv1, relu -> conv2 and conv3 -> concat -> max pool -> global average -> fc -> softmax -> y (5).
// About a third of the weights are not zero. `scale`: of conv3's weights.
OnnxModel branched_model(float scale = 1);

// x (3x12x12) -> conv1, relu -> conv2, relu -> conv3, relu -> y (4x12x12). Two channels of the first relu
// are zero whatever x is. `scale`: of conv2's weights.
OnnxModel chain_model(float scale = 1);

// As DenseNet: of five convolutions each reads what all before it have made, the first (6 channels) and the others (3
// each), some as it is, some through a normalization and a relu; the last one makes y (2 channels).
OnnxModel dense_model(int extent);

// Two inputs, a and b (2x6x6), each through a convolution; their sum `s` and a relu of it, `r`, are the outputs.
OnnxModel model_of_two_inputs();

}  // namespace burin_test
