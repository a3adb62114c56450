// Those choices of a template's plan that are members of how its provider divides the work: each is a constant of the
// template with a name of its own.
#pragma once

#include <string>
#include <vector>

#include "ir/template_plan.h"

namespace burin {

template <typename Tiles>
struct TileChoice {
  const char* name;
  int Tiles::* member;
};

template <typename Tiles, std::size_t N>
void read_choices(const TemplatePlan& plan, const TileChoice<Tiles> (&choices)[N], Tiles& tiles) {
  for (const auto& [name, member] : choices) tiles.*member = plan.integers.at(name);
}

template <typename Tiles, std::size_t N>
void write_choices(const Tiles& tiles, const TileChoice<Tiles> (&choices)[N], TemplatePlan& plan) {
  for (const auto& [name, member] : choices) plan.integers[name] = tiles.*member;
}

// Their names, behind those of `others`.
template <typename Tiles, std::size_t N>
std::vector<std::string> choice_names(const TileChoice<Tiles> (&choices)[N], std::vector<std::string> others = {}) {
  for (const auto& [name, member] : choices) others.emplace_back(name);
  return others;
}

}  // namespace burin
