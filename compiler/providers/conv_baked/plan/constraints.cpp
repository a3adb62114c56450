#include "compiler/providers/conv_baked/plan/constraints.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ir/error.h"
#include "ir/text.h"

namespace burin {
namespace {

int parse_count(std::string_view key, std::string_view text, int least) {
  const std::optional<int> value = parse_number<int>(text);
  if (!value || *value < least) {
    fail(ErrorKind::usage, "--plan {}={}: a whole number of at least {} is needed", key, text, least);
  }
  return *value;
}

template <std::size_t kCount>
std::array<int, kCount> parse_extents(std::string_view key, std::string_view text, std::string_view form) {
  std::vector<int> extents;
  for (std::string_view rest = text;;) {
    const std::size_t mark = rest.find('x');
    extents.push_back(parse_count(key, rest.substr(0, mark), 1));
    if (mark == std::string_view::npos) break;
    rest.remove_prefix(mark + 1);
  }
  if (extents.size() != kCount) fail(ErrorKind::usage, "--plan {}={}: {} is needed", key, text, form);
  std::array<int, kCount> parsed{};
  std::copy(extents.begin(), extents.end(), parsed.begin());
  return parsed;
}

// The plain numbers: key, least value, member.
struct CountKey {
  std::string_view key;
  int least;
  std::optional<int> PlanConstraints::* member;
};
constexpr CountKey kCountKeys[] = {
    {"groups", 1, &PlanConstraints::groups},          {"splits", 1, &PlanConstraints::splits},
    {"stage", 1, &PlanConstraints::stage_channels},   {"buffers", 1, &PlanConstraints::buffers},
    {"barrier", 0, &PlanConstraints::barrier_every},  {"ahead", 1, &PlanConstraints::load_ahead},
    {"together", 1, &PlanConstraints::load_together}, {"promote", 0, &PlanConstraints::promote_every},
};

}  // namespace

PlanConstraints parse_plan_constraints(std::string_view text) {
  PlanConstraints constraints;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = item.substr(std::min(item.size(), key.size() + 1));
    if (key == "tile") {
      const auto [images, rows, cols] = parse_extents<3>(key, value, "IMAGESxROWSxCOLS");
      constraints.tile = {images, rows, cols};
      continue;
    }
    if (key == "cluster") {
      const auto [tiles, splits] = parse_extents<2>(key, value, "TILESxSPLITS");
      constraints.cluster = {tiles, splits};
      continue;
    }
    if (key == "staging") {
      constraints.staging = parse_enum<Staging>(value);
      if (!constraints.staging) fail(ErrorKind::usage, "--plan {}: known are shared, direct and bulk", item);
      continue;
    }
    if (key == "reduction") {
      constraints.reduction = parse_enum<Reduction>(value);
      if (!constraints.reduction || *constraints.reduction == Reduction::none) {
        fail(ErrorKind::usage, "--plan {}: known are cluster and last_block; with splits=1 there is none", item);
      }
      continue;
    }
    const auto* entry = std::ranges::find(kCountKeys, key, &CountKey::key);
    if (entry == std::end(kCountKeys)) {
      fail(ErrorKind::usage,
           "--plan {}: known are staging, tile, groups, splits, reduction, cluster, stage, buffers, barrier, ahead, "
           "together and promote, as KEY=VALUE",
           item);
    }
    constraints.*entry->member = parse_count(key, value, entry->least);
  }
  return constraints;
}

std::string print(const PlanConstraints& constraints) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  };
  if (constraints.reduction) add("reduction", std::string(to_string(*constraints.reduction)));
  if (constraints.staging) add("staging", std::string(to_string(*constraints.staging)));
  if (const auto& tile = constraints.tile) add("tile", fmt::format("{}x{}x{}", tile->images, tile->rows, tile->cols));
  for (const CountKey& entry : kCountKeys) {
    if (constraints.*entry.member) add(entry.key, std::to_string(*(constraints.*entry.member)));
  }
  if (constraints.cluster) add("cluster", to_string(*constraints.cluster));
  return text;
}

PlanConstraints constraints_of(const BakedPlan& plan) {
  PlanConstraints constraints;
  constraints.staging = plan.staging;
  constraints.tile = plan.tile;
  constraints.groups = static_cast<int>(plan.groups.size());
  constraints.splits = plan.splits;
  if (plan.splits > 1) constraints.reduction = plan.reduction;
  constraints.cluster = plan.cluster;
  if (plan.staging != Staging::direct) {  // which has no stages
    constraints.stage_channels = plan.stage_channels;
    constraints.buffers = plan.buffers;
  }
  constraints.barrier_every = plan.barrier_every;
  constraints.load_ahead = plan.load_ahead;
  if (plan.staging == Staging::direct) constraints.load_together = plan.load_together;
  if (plan.precision == Precision::fp16x2) constraints.promote_every = plan.promote_every;
  return constraints;
}

}  // namespace burin
