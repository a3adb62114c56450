#include "compiler/tune/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/providers/provider.h"

namespace burin {
namespace {

using Json = nlohmann::ordered_json;

Json about(const Task& task, const TuningDevice& device) {
  return {{"layer", task.name},
          {"computes", task.layer != nullptr ? describe(task.layer->shape) : task.description},
          {"batch", task.batch},
          {"precision", to_string(task.precision)},
          {"reads", to_string(task.reads[0].layout)},
          {"writes", to_string(task.writes.layout)},
          {"nonzeros", nonzeros_of(task)},
          {"burin", BURIN_VERSION},
          {"device", device.name},
          {"arch", device.arch},
          {"driver_version", device.driver_version},
          {"libraries", device.libraries},
          {"code_copies", device.code_copies}};
}

// A layer's name may be any bytes.
std::string text_of(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace); }

bool is_time(double us) { return std::isfinite(us) && us > 0; }

// Throws a JSON exception where something is missing or of another type.
Measurements::Entry parse(const Json& json) {
  Measurements::Entry entry;
  entry.candidate.provider = json.at("provider").get<std::string>();
  entry.candidate.plan = json.at("plan").get<std::string>();
  entry.in_short = json.at("in_short").get<std::string>();
  entry.time.us = json.at("us").get<double>();
  entry.time.samples = json.at("samples").get<int>();
  entry.time.workspace_bytes = json.at("workspace_bytes").get<std::int64_t>();
  entry.error = json.at("error").get<double>();
  entry.in_turns = json.at("in_turns").get<bool>();
  return entry;
}

bool is_sound(const Measurements::Entry& entry) {
  return is_time(entry.time.us) && entry.time.samples > 0 && entry.time.workspace_bytes >= 0 && entry.error >= 0 &&
         entry.error <= 1;
}

}  // namespace

Measurements::Measurements(const KernelCache* cache, const Task& task, const TuningDevice& device, bool anew)
    : cache_(cache != nullptr && cache->keeps_kernels() ? cache : nullptr) {
  if (cache_ == nullptr) return;
  about_ = text_of(about(task, device));
  key_ = task_key(task, fmt::format("{} {} {} {} {}", device.name, device.arch, device.driver_version, device.libraries,
                                    device.code_copies));
  if (anew) return;
  const std::optional<std::string> text = cache_->find_times(key_);
  if (!text) return;
  try {
    const Json document = Json::parse(*text);
    for (const Json& json : document.at("candidates")) {
      Entry entry = parse(json);
      if (is_sound(entry)) entries_.push_back(std::move(entry));
    }
  } catch (const nlohmann::json::exception&) {
    entries_.clear();
  }
}

Measurements::Entry* Measurements::find_own(const Candidate& candidate) {
  const auto found = std::ranges::find(entries_, candidate, &Entry::candidate);
  return found == entries_.end() ? nullptr : &*found;
}

const Measurements::Entry* Measurements::find(const Candidate& candidate) const {
  return const_cast<Measurements*>(this)->find_own(candidate);
}

void Measurements::store(const Candidate& candidate, const LaunchTime& time, double error) {
  if (cache_ == nullptr) return;
  Entry entry{candidate, find_provider(candidate.provider)->brief(candidate.plan), time, error, false};
  if (Entry* const known = find_own(candidate)) {
    *known = std::move(entry);
  } else {
    entries_.push_back(std::move(entry));
  }
  write();
}

void Measurements::store_turns(const std::vector<std::pair<Candidate, LaunchTime>>& times) {
  if (cache_ == nullptr) return;
  for (Entry& entry : entries_) entry.in_turns = false;
  for (const auto& [candidate, time] : times) {
    if (Entry* const known = find_own(candidate)) {
      known->time = time;
      known->in_turns = true;
    }
  }
  write();
}

void Measurements::write() const {
  Json document = Json::parse(about_);
  Json candidates = Json::array();
  for (const Entry& entry : entries_) {
    candidates.push_back({{"provider", entry.candidate.provider},
                          {"in_short", entry.in_short},
                          {"us", entry.time.us},
                          {"samples", entry.time.samples},
                          {"workspace_bytes", entry.time.workspace_bytes},
                          {"error", entry.error},
                          {"in_turns", entry.in_turns},
                          {"plan", entry.candidate.plan}});
  }
  document["candidates"] = std::move(candidates);
  cache_->store_times(key_, text_of(document) + "\n");
}

}  // namespace burin
