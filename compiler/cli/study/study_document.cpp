#include "compiler/cli/study/study_document.h"

#include <algorithm>
#include <string_view>

#include "compiler/cli/json_output.h"
#include "compiler/make_kernel.h"
#include "compiler/study/rules.h"
#include "ir/printable.h"

namespace burin {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kStudyVersion = 1;

Json layer_json(const StudyLayer& layer) {
  const ConvShape& shape = layer.shape;
  return {{"text", print(layer)},
          {"n", layer.batch},
          {"c", shape.in_channels},
          {"h", shape.in_h},
          {"w", shape.in_w},
          {"k", shape.out_channels},
          {"r", shape.kernel_h},
          {"s", shape.kernel_w},
          {"stride", shape.stride_h},
          {"pad", {shape.pad.top, shape.pad.bottom, shape.pad.left, shape.pad.right}},
          {"dilation", shape.dilation_h},
          {"groups", shape.groups},
          {"zeros", layer.zeros},
          {"input_zeros", known_json(layer.input_zeros)}};
}

Json device_json(const Study& study) {
  if (study.source == Estimate::Source::model) return nullptr;
  const TuningDevice& device = study.device;
  return {{"name", printable(device.name)},
          {"driver", device.driver_version},
          {"libraries", text_of(device.libraries)},
          {"code_copies", device.code_copies}};
}

class StudyWriter {
 public:
  explicit StudyWriter(const Study& study) : study_(study) {}

  Json document(const std::vector<std::string>& notes) {
    Json document;
    document["study"] = kStudyVersion;
    document["tool"] = tool_version();
    document["source"] = to_string(study_.source);
    document["device"] = device_json(study_);
    document["arch"] = study_.device.arch;
    document["precision"] = to_string(study_.precision);
    document["seed"] = study_.seed;
    document["plans"] = study_.plans;
    document["base"] = layer_json(study_.base);
    document["done"] = study_.done();
    document["stopped"] = study_.stopped;
    Json points = Json::array();
    for (const StudyPoint& point : study_.points) points.push_back(point_json(point));
    document["algorithms"] = algorithms_;
    document["points"] = std::move(points);
    document["curves"] = curves_json();
    document["maps"] = maps_json();
    document["rules"] = rules_json();
    document["notes"] = notes;
    return document;
  }

 private:
  // The number of a candidate's algorithm in the document.
  std::size_t number_of(const StudyCandidate& entry) {
    const auto known = std::ranges::find(names_, entry.algorithm);
    const auto number = static_cast<std::size_t>(known - names_.begin());
    if (known != names_.end()) return number;
    const Provider& provider = *find_provider(entry.candidate.provider);
    names_.push_back(entry.algorithm);
    algorithms_.push_back({{"name", entry.algorithm},
                           {"provider", entry.candidate.provider},
                           {"dense", provider.is_dense()},
                           {"library", provider.needs_measuring()}});
    return number;
  }

  static Json memory_json(const StudyCandidate& entry) {
    if (!entry.memory) return nullptr;
    const CandidateMemory& memory = *entry.memory;
    return {{"code_bytes", memory.code_bytes},
            {"weight_bytes", memory.weight_bytes},
            {"library_bytes", memory.library_bytes},
            {"workspace_bytes", memory.workspace_bytes},
            {"total_bytes", memory.total()}};
  }

  Json candidate_json(const StudyCandidate& entry) {
    return {{"algorithm", number_of(entry)},
            {"plan", entry.plan},
            {"predicted_us", known_json(entry.predicted_us)},
            {"us", known_json(entry.us)},
            {"samples", entry.samples},
            {"error", entry.us ? known_json(entry.error) : Json()},
            {"memory", memory_json(entry)},
            {"fault", entry.fault}};
  }

  Json point_json(const StudyPoint& point) {
    Json candidates = Json::array(), order = Json::array();
    if (point.done) {
      for (const StudyCandidate& entry : point.candidates) candidates.push_back(candidate_json(entry));
    }
    for (const Ranked& ranked : ranking(point, study_.source)) {
      order.push_back({{"algorithm", number_of(point.candidates[ranked.candidate])},
                       {"candidate", ranked.candidate},
                       {"us", ranked.us}});
    }
    return {{"layer", layer_json(point.layer)}, {"done", point.done},       {"known", point.known},
            {"fault", printable(point.fault)},  {"candidates", candidates}, {"ranking", std::move(order)}};
  }

  std::string text_of(std::size_t point, StudyAxis axis) const { return value_text(study_.points[point].layer, axis); }

  Json curves_json() const {
    Json curves = Json::array();
    for (const StudyCurve& curve : study_.curves) {
      Json texts = Json::array();
      for (const std::size_t point : curve.points) texts.push_back(text_of(point, curve.axis));
      curves.push_back(
          {{"axis", to_string(curve.axis)}, {"values", curve.values}, {"texts", texts}, {"points", curve.points}});
    }
    return curves;
  }

  Json maps_json() const {
    Json maps = Json::array();
    for (const StudyMap& map : study_.maps) {
      Json rows = Json::array(), columns = Json::array();
      for (const std::vector<std::size_t>& row : map.points) rows.push_back(text_of(row.front(), map.rows));
      for (const std::size_t point : map.points.front()) columns.push_back(text_of(point, map.columns));
      maps.push_back({{"rows", to_string(map.rows)},
                      {"columns", to_string(map.columns)},
                      {"row_values", map.row_values},
                      {"column_values", map.column_values},
                      {"row_texts", rows},
                      {"column_texts", columns},
                      {"points", map.points}});
    }
    return maps;
  }

  Json rules_json() const {
    Json rules = Json::array();
    for (const StudyRule& rule : read_off(study_)) {
      const auto curve = std::ranges::find(study_.curves, rule.axis, &StudyCurve::axis);
      rules.push_back({{"subject", to_string(rule.subject)},
                       {"axis", to_string(rule.axis)},
                       {"from", curve->values[rule.from]},
                       {"to", curve->values[rule.to]},
                       {"winner", rule.winner},
                       {"least_ratio", known_json(rule.least_ratio)},
                       {"most_ratio", known_json(rule.most_ratio)},
                       {"text", rule_text(study_, rule)}});
    }
    return rules;
  }

  const Study& study_;
  std::vector<std::string> names_;
  Json algorithms_ = Json::array();
};

}  // namespace

nlohmann::ordered_json study_document(const Study& study, const std::vector<std::string>& notes) {
  return StudyWriter(study).document(notes);
}

}  // namespace burin
