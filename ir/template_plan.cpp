#include "ir/template_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/text_lines.h"

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
  return symbol_of(name) + "_" + plan.template_name;
}

std::string print(const TemplatePlan& plan) {
  LinePrinter lines;
  lines.text = fmt::format("# {}\n", describe(plan));
  lines.line("template", plan.template_name);
  lines.line("arch", plan.arch);
  lines.text += print(plan.form);
  for (const auto& [name, value] : plan.integers) lines.line("integer " + name, value);
  for (const auto& [name, value] : plan.reals) lines.line("real " + name, value);
  return lines.text;
}

TemplatePlan parse_template_plan(std::string_view source) {
  LineReader text(source, "plan");
  TemplatePlan plan;
  text.line("template", plan.template_name);
  text.line("arch", plan.arch);
  plan.form = parse_kernel_form(text);
  const auto read_constants = [&](std::string_view kind, auto& known) {
    for (const TextLine* line : text.with_first_word(kind)) {
      const auto key = words(line->key);
      if (key.size() != 2) text.fail_at(*line, "'{}' is not a kind of constant and its name", line->key);
      const auto [constant, is_new] = known.try_emplace(std::string(key[1]));
      if (!is_new) text.fail_at(*line, "'{}' stands there twice", line->key);
      text.read(*line, constant->second);
    }
  };
  read_constants("integer", plan.integers);
  read_constants("real", plan.reals);
  text.finish();
  return plan;
}

}  // namespace burin
