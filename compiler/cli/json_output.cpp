#include "compiler/cli/json_output.h"

namespace burin {
namespace {

nlohmann::ordered_json to_json(const Place& place) {
  return {{"buffer", place.buffer},       {"offset", place.offset}, {"image_stride", place.image_stride},
          {"run_bytes", place.run_bytes}, {"runs", place.runs},     {"run_stride", place.run_stride}};
}

nlohmann::ordered_json to_json(const std::optional<Place>& place) {
  return place ? to_json(*place) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const Buffer& buffer) {
  return {
      {"tensor", buffer.tensor},
      {"shape", buffer.shape},
      {"home", to_string(buffer.home)},
      {"argument", known_json(buffer.argument)},
      {"format", buffer.format_text()},
      {"bytes", buffer.bytes},
      {"offset", buffer.home == BufferHome::arena ? nlohmann::ordered_json(buffer.offset) : nlohmann::ordered_json()},
      {"first", buffer.first},
      {"last", buffer.last}};
}

nlohmann::ordered_json to_json(const Step& step) {
  nlohmann::ordered_json reads = nlohmann::ordered_json::array();
  for (const Place& place : step.reads) reads.push_back(to_json(place));
  return {{"name", step.name},
          {"kind", step.kind},
          {"operator", step.is_copy() ? nlohmann::ordered_json() : nlohmann::ordered_json(step.op)},
          {"tensor", step.tensor},
          {"reads", reads},
          {"writes", to_json(step.writes)},
          {"input_map", to_json(step.input_map)},
          {"output_map", to_json(step.output_map)},
          {"after", step.after},
          {"kernel", step.kernel},
          {"options", options_json(step.options)}};
}

}  // namespace

nlohmann::ordered_json options_json(const std::vector<KernelOption>& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KernelOption& option : options) {
    list.push_back(
        {{"provider", option.provider}, {"us", option.us}, {"source", option.measured ? "measured" : "model"}});
  }
  return list;
}

nlohmann::ordered_json to_json(const Program& program) {
  nlohmann::ordered_json document = {{"name", program.name},
                                     {"batch", program.batch},
                                     {"arena_bytes", program.arena_bytes},
                                     {"naive_bytes", program.naive_bytes},
                                     {"steps", nlohmann::ordered_json::array()},
                                     {"buffers", nlohmann::ordered_json::array()}};
  for (const Step& step : program.steps) document["steps"].push_back(to_json(step));
  for (const Buffer& buffer : program.buffers) document["buffers"].push_back(to_json(buffer));
  return document;
}

}  // namespace burin
