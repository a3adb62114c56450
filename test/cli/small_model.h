// Small ONNX models for tests of the tool.
#pragma once

#include <string>

#include "test/import/onnx_model.h"

namespace burin_test {

// x (3x12x12) -> conv1, relu -> conv2, and conv3, relu -> concat -> max pool -> global average -> fc -> softmax -> y
// (5). About a third of the weights are not zero. `scale`: of conv3's weights.
OnnxModel branched_model(float scale = 1);

// x (3x12x12) -> conv1, relu -> conv2, relu -> conv3, relu -> y (4x12x12). Two channels of the first relu
// are zero whatever x is. `scale`: of conv2's weights.
OnnxModel chain_model(float scale = 1);

// x (3x12x12) -> conv1, relu -> m.1x1, m.reduce3 -> m.3x3, m.reduce5 -> m.5x5, a pool of 3x3 -> m.proj, all with a
// relu; a concat of m.1x1, m.3x3, m.5x5 and m.proj -> last, which makes y.
OnnxModel inception_model();

// x (3x12x12) -> squeeze -> expand1x1 and expand3x3, all with a relu -> concat -> last, which makes y.
OnnxModel fire_model();

// As DenseNet: of five convolutions each reads what all before it have made, the first (6 channels) and the others (3
// each), some as it is, some through a normalization and a relu; the last one makes y (2 channels).
OnnxModel dense_model(int extent);

// Two inputs, a and b (2x6x6), each through a convolution; their sum `s` and a relu of it, `r`, are the outputs.
OnnxModel model_of_two_inputs();

}  // namespace burin_test
