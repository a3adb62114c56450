#include "compiler/cli/network_plan_json.h"

namespace burin {
namespace {

nlohmann::ordered_json to_json(const Place& place) {
  return {{"buffer", place.buffer},       {"offset", place.offset}, {"image_stride", place.image_stride},
          {"run_bytes", place.run_bytes}, {"runs", place.runs},     {"run_stride", place.run_stride}};
}

nlohmann::ordered_json to_json(const Buffer& buffer) {
  return {
      {"tensor", buffer.tensor},
      {"shape", buffer.shape},
      {"home", to_string(buffer.home)},
      {"argument", buffer.argument < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(buffer.argument)},
      {"element", to_string(buffer.element)},
      {"layout", to_string(buffer.layout)},
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
          {"after", step.after}};
}

}  // namespace

nlohmann::ordered_json to_json(const NetworkPlan& plan) {
  nlohmann::ordered_json document = {{"batch", plan.batch},
                                     {"arena_bytes", plan.arena_bytes},
                                     {"naive_bytes", plan.naive_bytes},
                                     {"steps", nlohmann::ordered_json::array()},
                                     {"buffers", nlohmann::ordered_json::array()}};
  for (const Step& step : plan.steps) document["steps"].push_back(to_json(step));
  for (const Buffer& buffer : plan.buffers) document["buffers"].push_back(to_json(buffer));
  return document;
}

}  // namespace burin
