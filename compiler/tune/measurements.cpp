#include "compiler/tune/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
          {"code_copies", device.code_copies}};
}

// A layer's name may be any bytes.
std::string text_of(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace); }

// Kinds of faults that are kept; what else goes wrong is tried again.
constexpr std::array<std::pair<ErrorKind, std::string_view>, 3> kFaults = {
    {{ErrorKind::verification, "wrong"}, {ErrorKind::unsupported, "unsupported"}, {ErrorKind::device, "device"}}};

Json to_json(const Measurements::Entry& entry) {
  Json json = {{"provider", entry.candidate.provider}, {"in_short", entry.in_short}};
  if (!entry.library.empty()) json["library"] = entry.library;
  if (entry.fault) {
    const auto kind = std::ranges::find(kFaults, entry.fault->kind(), [](const auto& known) { return known.first; });
    json["fault"] = kind->second;
    json["message"] = recorded_fault(*entry.fault);
  } else {
    json["us"] = entry.time.us;
    json["samples"] = entry.time.samples;
    json["workspace_bytes"] = entry.time.workspace_bytes;
    if (entry.error) json["error"] = *entry.error;
    json["may_be_taken"] = entry.is_sound;
    json["in_turns_us"] = entry.turns_us;
    if (entry.memory) {
      json["memory"] = {{"code_bytes", entry.memory->code_bytes},
                        {"weight_bytes", entry.memory->weight_bytes},
                        {"library_bytes", entry.memory->library_bytes}};
    }
  }
  json["plan"] = entry.candidate.plan;
  return json;
}

// Throws a JSON exception where something is missing or of another type.
Measurements::Entry parse(const Json& json) {
  Measurements::Entry entry;
  entry.candidate.provider = json.at("provider").get<std::string>();
  entry.candidate.plan = json.at("plan").get<std::string>();
  entry.in_short = json.at("in_short").get<std::string>();
  entry.library = json.value("library", "");
  if (json.contains("fault")) {
    const auto name = json.at("fault").get<std::string>();
    const auto kind = std::ranges::find(kFaults, name, [](const auto& known) { return known.second; });
    BURIN_CHECK(kind != kFaults.end(), "a measurement has the fault '{}'", name);
    entry.fault = Error(kind->first, json.at("message").get<std::string>());
    return entry;
  }
  entry.time.us = json.at("us").get<double>();
  entry.time.samples = json.at("samples").get<int>();
  entry.time.workspace_bytes = json.at("workspace_bytes").get<std::int64_t>();
  if (json.contains("error")) entry.error = json.at("error").get<double>();
  entry.is_sound = json.at("may_be_taken").get<bool>() && entry.error.has_value();
  entry.turns_us = json.at("in_turns_us").get<double>();
  if (const auto memory = json.find("memory"); memory != json.end()) {
    entry.memory =
        KernelMemory{memory->at("code_bytes").get<std::int64_t>(), memory->at("weight_bytes").get<std::int64_t>(),
                     memory->at("library_bytes").get<std::int64_t>()};
  }
  return entry;
}

// The file has it, so that one that is damaged, or under another's name, is none.
std::string hash_of(const std::string& key, const Json& candidates) { return content_hash({key, text_of(candidates)}); }

}  // namespace

Measurements::Measurements(const KernelCache* cache, const Task& task, const TuningDevice& device, bool anew)
    : cache_(cache != nullptr && cache->keeps_kernels() ? cache : nullptr), anew_(anew) {
  if (cache_ == nullptr) return;
  about_ = text_of(about(task, device));
  libraries_ = device.libraries;
  key_ =
      task_key(task, fmt::format("{} {} {} {}", device.name, device.arch, device.driver_version, device.code_copies));
  const std::optional<std::string> text = cache_->find_times(key_);
  if (!text) return;
  try {
    const Json document = Json::parse(*text);
    const Json& candidates = document.at("candidates");
    if (document.at("hash").get<std::string>() != hash_of(key_, candidates)) return;
    for (const Json& json : candidates) {
      entries_.push_back({parse(json), false});
    }
  } catch (const nlohmann::json::exception&) {
    entries_.clear();
  }
}

std::size_t Measurements::index_of(const Candidate& candidate) const {
  const auto found =
      std::ranges::find(entries_, candidate, [](const Kept& kept) -> const Candidate& { return kept.entry.candidate; });
  return static_cast<std::size_t>(found - entries_.begin());
}

const Measurements::Entry* Measurements::find(const Candidate& candidate) const {
  const std::size_t index = index_of(candidate);
  if (index == entries_.size() || (anew_ && !entries_[index].is_of_this_run)) return nullptr;
  const Entry& entry = entries_[index].entry;
  return entry.library == library_of(candidate) ? &entry : nullptr;
}

// Of a library that is not there now nothing is asked.
std::string Measurements::library_of(const Candidate& candidate) const {
  const std::optional<Library> library = find_provider(candidate.provider)->library();
  const auto found = std::ranges::find(libraries_, library, &LibraryVersion::library);
  return found == libraries_.end() ? "" : text_of(std::vector{*found});
}

void Measurements::store(Entry entry) {
  if (cache_ == nullptr) return;
  entry.in_short = find_provider(entry.candidate.provider)->brief(entry.candidate.plan);
  entry.library = library_of(entry.candidate);
  const std::size_t index = index_of(entry.candidate);
  if (index == entries_.size()) entries_.emplace_back();
  entries_[index] = Kept{std::move(entry), true};
  write();
}

void Measurements::store(const Candidate& candidate, const LaunchTime& time, const std::optional<double>& error,
                         bool is_sound, const std::optional<KernelMemory>& memory) {
  Entry entry;
  entry.candidate = candidate;
  entry.time = time;
  entry.error = error;
  entry.is_sound = is_sound;
  entry.memory = memory;
  store(std::move(entry));
}

void Measurements::store_fault(const Candidate& candidate, const Error& fault, bool is_lost) {
  const auto kind = std::ranges::find(kFaults, fault.kind(), [](const auto& known) { return known.first; });
  if (kind == kFaults.end() || (fault.kind() == ErrorKind::device && !is_lost)) return;
  Entry entry;
  entry.candidate = candidate;
  entry.fault = fault;
  store(std::move(entry));
}

void Measurements::store_turns(const std::vector<std::pair<Candidate, LaunchTime>>& times) {
  if (cache_ == nullptr) return;
  for (Kept& kept : entries_) kept.entry.turns_us = 0;
  for (const auto& [candidate, time] : times) {
    if (const std::size_t index = index_of(candidate); index < entries_.size())
      entries_[index].entry.turns_us = time.us;
  }
  write();
}

void Measurements::write() const {
  Json document = Json::parse(about_);
  Json candidates = Json::array();
  for (const Kept& kept : entries_) candidates.push_back(to_json(kept.entry));
  // As it is read again: bytes that are no UTF-8 are others then.
  candidates = Json::parse(text_of(candidates));
  document["hash"] = hash_of(key_, candidates);
  document["candidates"] = std::move(candidates);
  cache_->store_times(key_, text_of(document) + "\n");
}

}  // namespace burin
