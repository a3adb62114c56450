// What is wrong with a model, expected by parts of the message.
#pragma once

#include <initializer_list>
#include <string_view>

#include "test/import/files.h"
#include "test/import/onnx_model.h"

namespace burin_test {

// The model is damaged.
inline void rejects(const OnnxModel& model, std::initializer_list<std::string_view> parts) {
  expect_bad_input(parts, [&] { model.import(); });
}

// The model has something that burin cannot do; the message names the node.
inline void refuses(const OnnxModel& model, std::initializer_list<std::string_view> parts) {
  expect_error(burin::ErrorKind::unsupported, {"net.onnx: node "}, [&] { model.import(); });
  expect_error(burin::ErrorKind::unsupported, parts, [&] { model.import(); });
}

}  // namespace burin_test
