#include "ir/kernel_program.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/place_activity_maps.h"

namespace burin {
namespace {

Buffer argument_buffer(const Kernel& kernel, const KernelTensor& tensor, BufferHome home, int argument) {
  if (tensor.image_words != tensor.words() || tensor.runs != 1) {
    fail(ErrorKind::unsupported, "{}: its {} is part of a larger tensor, so it cannot be run by itself", kernel.owner(),
         to_string(tensor.role));
  }
  Buffer buffer;
  buffer.tensor = fmt::format("{}.{}", kernel.op, to_string(tensor.role));
  buffer.shape = {tensor.words()};
  if (tensor.is_image()) buffer.shape = {tensor.channels, tensor.rows, tensor.cols};
  buffer.home = home;
  buffer.argument = argument;
  buffer.format = tensor.format();
  return buffer;
}

}  // namespace

Program program_of(const Kernel& kernel, int batch) {
  Program program;
  program.name = kernel.op;
  program.batch = batch;
  Step& step = program.steps.emplace_back();
  step.name = kernel.op;
  step.kind = kernel.kind;
  step.op = kernel.kind == kCopyKind ? -1 : 0;
  step.kernel = kernel.symbol;
  const auto add = [&](const KernelTensor& tensor, BufferHome home, int argument) {
    program.buffers.push_back(argument_buffer(kernel, tensor, home, argument));
    const std::int64_t piece = tensor.image_words * tensor.word_bytes();
    return Place{static_cast<int>(program.buffers.size()) - 1, 0, piece, piece, 1, 0};
  };
  for (int argument = 0;; ++argument) {
    const auto reads = [&](const KernelTensor& tensor) {
      return tensor.exists() && tensor.is_read() && tensor.argument == argument;
    };
    const auto found = std::ranges::find_if(kernel.form.tensors, reads);
    if (found == kernel.form.tensors.end()) break;
    step.reads.push_back(add(*found, BufferHome::input, argument));
  }
  step.writes = add(kernel.form.output(), BufferHome::output, 0);
  step.tensor = program.buffers.back().tensor;
  place_activity_maps(program, {&kernel.form}, true);
  return program;
}

}  // namespace burin
