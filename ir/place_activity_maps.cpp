#include "ir/place_activity_maps.h"

#include <algorithm>
#include <optional>

namespace burin {
namespace {

class MapPlacer {
 public:
  MapPlacer(Program& program, const std::vector<const KernelForm*>& forms, bool as_arguments)
      : program_(program), forms_(forms), as_arguments_(as_arguments) {}

  void run() {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      Step& step = program_.steps[i];
      const Place read = step.reads.front();
      if (const KernelTensor* wanted = forms_[i]->find(TensorRole::input_map)) {
        if (program_.buffer(read).home != BufferHome::input) {
          step.input_map = made_before(static_cast<int>(i), read, *wanted);
        } else if (as_arguments_) {
          step.input_map = add_buffer(read, *wanted, BufferHome::input);
        }
      }
      const KernelTensor* written = forms_[i]->find(TensorRole::output_map);
      if (written != nullptr && as_arguments_ && program_.buffer(step.writes).home == BufferHome::output) {
        step.output_map = add_buffer(step.writes, *written, BufferHome::output);
      }
    }
    complete(program_);
  }

 private:
  // The map that the one step before has written which made the tensor, if its cells are those that are wanted.
  std::optional<Place> made_before(int reader, const Place& read, const KernelTensor& wanted) {
    std::optional<int> maker;
    for (int i = 0; i < reader; ++i) {
      const Step& step = program_.steps[static_cast<std::size_t>(i)];
      const bool apart = step.writes.end() <= read.offset || read.end() <= step.writes.offset;
      if (step.writes.buffer != read.buffer || apart) continue;
      if (maker || step.writes != read) return std::nullopt;
      maker = i;
    }
    if (!maker) return std::nullopt;
    const KernelTensor* made = forms_[static_cast<std::size_t>(*maker)]->find(TensorRole::output_map);
    if (made == nullptr || made->map != wanted.map || made->channels != wanted.channels || made->rows != wanted.rows ||
        made->cols != wanted.cols) {
      return std::nullopt;
    }
    Step& step = program_.steps[static_cast<std::size_t>(*maker)];
    if (!step.output_map) step.output_map = add_buffer(read, *made, BufferHome::arena);
    return step.output_map;
  }

  // Maps are small: they share no bytes with other buffers.
  Place add_buffer(const Place& of, const KernelTensor& map, BufferHome home) {
    Buffer added;
    added.tensor = program_.buffer(of).tensor + ".activity";
    added.shape = {map.channels, map.rows, map.cols};
    added.home = home;
    added.map = map.map;
    const std::int64_t bytes = map_bytes(*map.map, {program_.batch, map.channels, map.rows, map.cols});
    if (added.home == BufferHome::arena) {
      added.offset = end_of_arena_;
      end_of_arena_ += aligned_bytes(bytes);
      program_.naive_bytes += aligned_bytes(bytes);
    } else {
      added.argument = static_cast<int>(program_.arguments(added.home).size());
    }
    program_.buffers.push_back(added);
    const std::int64_t stride = bytes / program_.pieces(added);
    return {static_cast<int>(program_.buffers.size()) - 1, 0, stride, stride, 1, 0};
  }

  Program& program_;
  const std::vector<const KernelForm*>& forms_;
  bool as_arguments_;
  std::int64_t end_of_arena_ = aligned_bytes(program_.arena_bytes);
};

}  // namespace

void place_activity_maps(Program& program, const std::vector<const KernelForm*>& forms, bool as_arguments) {
  MapPlacer(program, forms, as_arguments).run();
}

}  // namespace burin
