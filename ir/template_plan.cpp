#include "ir/template_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/kernel_form_text.h"
#include "ir/text.h"

namespace burin {
bool stores_halves(const TemplatePlan& plan) {
  const auto found = plan.integers.find("half_values");
  return found != plan.integers.end() && found->second != 0;
}

std::string describe(const TemplatePlan& plan) {
  const LaunchGeometry& launch = plan.launch();
  const std::string images = launch.tile_images == 1 ? "an image" : fmt::format("{} images", launch.tile_images);
  return fmt::format("{}{}, {} block{} of {} for {}", plan.template_name, stores_halves(plan) ? " fp16" : "",
                     launch.tiles_per_image, launch.tiles_per_image == 1 ? "" : "s", launch.threads, images) +
         (launch.cluster_tiles == 1 ? "" : fmt::format(", clusters of {}", launch.cluster_tiles));
}

std::string kernel_symbol(const std::string& name, const TemplatePlan& plan) {
  std::string symbol = "burin_";
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    symbol += plain ? c : '_';
  }
  return symbol + "_" + plan.template_name;
}

std::string print(const TemplatePlan& plan) {
  std::string text = fmt::format("# {}\n", describe(plan));
  const auto add = [&](std::string_view key, const auto& value) { text += fmt::format("{}: {}\n", key, value); };
  add("template", plan.template_name);
  add("arch", plan.arch);
  text += print(plan.form);
  for (const auto& [name, value] : plan.integers) add("integer " + name, value);
  for (const auto& [name, value] : plan.reals) add("real " + name, value);
  return text;
}

TemplatePlan parse_template_plan(std::string_view source) {
  KeyValueText text(source, "plan");
  TemplatePlan plan;
  plan.template_name = text.required("template").value;
  plan.arch = text.required("arch").value;
  plan.form = parse_kernel_form(text);
  const auto name_of = [&](const TextLine& line, const auto& known) {
    const auto key = words(line.key);
    if (key.size() != 2) text.fail_at(line, "'{}' is not a kind of constant and its name", line.key);
    if (known.contains(std::string(key[1]))) text.fail_at(line, "'{}' stands there twice", line.key);
    return std::string(key[1]);
  };
  for (const TextLine* line : text.with_first_word("integer")) {
    const std::string name = name_of(*line, plan.integers);
    plan.integers[name] = text.integer32(*line, line->value);
  }
  for (const TextLine* line : text.with_first_word("real")) {
    const std::string name = name_of(*line, plan.reals);
    plan.reals[name] = text.real32(*line, line->value);
  }
  text.finish();
  return plan;
}

}  // namespace burin
