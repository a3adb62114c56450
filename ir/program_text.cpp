// The text form of a Program: a line for each buffer and step, of words and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/limits.h"
#include "ir/program.h"
#include "ir/text.h"

namespace burin {
namespace {

// Names hold any text; as a word they have no blanks, comments, controls or bytes beyond ASCII.
std::string word_of(std::string_view name) {
  std::string word;
  for (const char c : name) {
    const bool plain = c > ' ' && c < 0x7f && c != '#' && c != '%' && c != ',' && c != ';';
    word += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return word.empty() ? "%" : word;
}

std::string text_of(const Place& place) {
  return fmt::format("{}+{},{},{},{}", place.buffer, place.offset, place.run_bytes, place.runs, place.run_stride);
}

constexpr std::string_view kNothing = "-", kModel = "model", kMeasured = "measured";

std::string text_of(const std::optional<Place>& place) { return place ? text_of(*place) : std::string(kNothing); }

std::string text_of(const std::vector<KernelOption>& options) {
  std::string text;
  for (const KernelOption& option : options) {
    text += fmt::format("{}{},{},{}", text.empty() ? "" : ";", word_of(option.provider), option.us,
                        option.measured ? kMeasured : kModel);
  }
  return text.empty() ? std::string(kNothing) : text;
}

class Reader {
 public:
  Reader(std::string_view text, std::int64_t& waits) : text_(text, "program"), waits_(waits) {}

  Program read() {
    const TextLine& named = text_.required("name");
    program_.name = name(named, named.value);
    text_.read("batch", program_.batch);
    text_.read("naive_bytes", program_.naive_bytes);
    for (const TextLine* line : text_.with_first_word("buffer")) {
      check_number(*line, program_.buffers.size());
      read_buffer(*line);
    }
    for (const TextLine* line : text_.with_first_word("step")) {
      check_number(*line, program_.steps.size());
      read_step(*line);
    }
    text_.finish();
    complete(program_);
    return std::move(program_);
  }

 private:
  using Words = std::vector<std::string_view>;

  // Buffers and steps are numbered, and stand in their order.
  void check_number(const TextLine& line, std::size_t expected) const {
    if (words(line.key).back() != std::to_string(expected)) {
      text_.fail_at(line, "'{}': number {} is expected here", line.key, expected);
    }
  }

  // Words in pairs: a key of `keys`, all of which must be there in this order, then its value.
  template <std::size_t kCount>
  std::array<std::string_view, kCount> values(const TextLine& line, const std::array<std::string_view, kCount>& keys) {
    const Words all = words(line.value);
    if (all.size() != 2 * kCount) {
      text_.fail_at(line, "expected '{} VALUE', got '{}'", fmt::join(keys, " VALUE "), line.value);
    }
    std::array<std::string_view, kCount> found;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (all[2 * i] != keys[i]) text_.fail_at(line, "expected '{}', got '{}'", keys[i], all[2 * i]);
      found[i] = all[2 * i + 1];
    }
    return found;
  }

  std::string name(const TextLine& line, std::string_view word) const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (word == "%") return {};
    std::string text;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] != '%') {
        text += word[i];
        continue;
      }
      const std::size_t high = i + 2 < word.size() ? kDigits.find(word[i + 1]) : std::string_view::npos;
      const std::size_t low = i + 2 < word.size() ? kDigits.find(word[i + 2]) : std::string_view::npos;
      if (high == std::string_view::npos || low == std::string_view::npos) {
        text_.fail_at(line, "'{}': a % is followed by two digits of 0-9 and a-f", word);
      }
      text += static_cast<char>(16 * high + low);
      i += 2;
    }
    return text;
  }

  void read_buffer(const TextLine& line) {
    const auto [home, argument, shape, element, layout, map, offset, tensor] =
        values<8>(line, {"in", "argument", "shape", "element", "layout", "map", "offset", "tensor"});
    Buffer buffer;
    buffer.home = text_.named<BufferHome>(line, home);
    buffer.argument = text_.integer32(line, argument);
    for (const std::string_view extent : split(shape, 'x')) buffer.shape.push_back(text_.integer(line, extent));
    buffer.format = {text_.named<ElementType>(line, element), text_.named<TensorLayout>(line, layout)};
    if (map != kNothing) buffer.map = cells(line, map);
    buffer.offset = text_.integer(line, offset);
    buffer.tensor = name(line, tensor);
    program_.buffers.push_back(std::move(buffer));
  }

  // "2x14x14"
  ActivityMap cells(const TextLine& line, std::string_view word) const {
    const Words extents = split(word, 'x');
    if (extents.size() != 3) text_.fail_at(line, "expected IMAGESxROWSxCOLS of a map's cell, got '{}'", word);
    const auto extent = [&](std::size_t axis) { return text_.integer32(line, extents[axis]); };
    return {extent(0), extent(1), extent(2)};
  }

  std::optional<Place> optional_place(const TextLine& line, std::string_view word) const {
    return word == kNothing ? std::nullopt : std::optional(place(line, word));
  }

  // "conv_dense,4.2,model;conv_baked,6.5,measured"
  std::vector<KernelOption> options(const TextLine& line, std::string_view word) const {
    std::vector<KernelOption> options;
    if (word == kNothing) return options;
    for (const std::string_view part : split(word, ';')) {
      const Words fields = split(part, ',');
      if (fields.size() != 3) text_.fail_at(line, "expected PROVIDER,MICROSECONDS,SOURCE, got '{}'", part);
      const bool measured = fields[2] == kMeasured;
      if (!measured && fields[2] != kModel) {
        text_.fail_at(line, "expected {} or {}, got '{}'", kModel, kMeasured, fields[2]);
      }
      options.push_back({name(line, fields[0]), text_.real(line, fields[1]), measured});
    }
    return options;
  }

  Place place(const TextLine& line, std::string_view word) const {
    const Words ends = split(word, '+');
    const Words numbers = split(ends.back(), ',');
    if (ends.size() != 2 || numbers.size() != 4) {
      text_.fail_at(line, "expected BUFFER+OFFSET,RUN_BYTES,RUNS,RUN_STRIDE, got '{}'", word);
    }
    const auto number = [&](std::size_t i) { return text_.integer(line, numbers[i]); };
    return {text_.integer32(line, ends[0]), number(0), 0, number(1), number(2), number(3)};
  }

  void read_step(const TextLine& line) {
    const auto [kind, op, reads, writes, input_map, output_map, after, tensor, step_name, kernel, options_word] =
        values<11>(line, {"kind", "operator", "reads", "writes", "input_map", "output_map", "after", "tensor", "name",
                          "kernel", "options"});
    Step step;
    step.kind = name(line, kind);
    step.op = text_.integer32(line, op);
    for (const std::string_view word : split(reads, ';')) step.reads.push_back(place(line, word));
    step.writes = place(line, writes);
    // A step waits for earlier ones, each once.
    step.after = text_.integers({line.number, line.key, after, true}, program_.steps.size());
    waits_ -= std::ssize(step.after);
    if (waits_ < 0) {
      text_.fail_at(line, "'{}': steps wait for others more than {} times (kMaxPlanWaits)", line.key, kMaxPlanWaits);
    }
    step.tensor = name(line, tensor);
    step.name = name(line, step_name);
    step.input_map = optional_place(line, input_map);
    step.output_map = optional_place(line, output_map);
    step.kernel = name(line, kernel);
    step.options = options(line, options_word);
    program_.steps.push_back(std::move(step));
  }

  KeyValueText text_;
  Program program_;
  std::int64_t& waits_;  // that are left: ranges of steps are short to write
};

}  // namespace

std::string to_text(const Program& program) {
  std::string text =
      fmt::format("name: {}\nbatch: {}\nnaive_bytes: {}\n", word_of(program.name), program.batch, program.naive_bytes);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    text += fmt::format("buffer {}: in {} argument {} shape {} element {} layout {} map {} offset {} tensor {}\n", i,
                        to_string(b.home), b.argument, fmt::join(b.shape, "x"), to_string(b.format.element),
                        to_string(b.format.layout), b.map ? print(*b.map) : kNothing, b.offset, word_of(b.tensor));
  }
  text += "# a place: buffer+offset,bytes of a run,runs of an image,run stride\n";
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    std::vector<std::string> reads;
    for (const Place& place : step.reads) reads.push_back(text_of(place));
    text += fmt::format(
        "step {}: kind {} operator {} reads {} writes {} input_map {} output_map {} after {} tensor {} name {} kernel "
        "{} options {}\n",
        i, word_of(step.kind), step.op, fmt::join(reads, ";"), text_of(step.writes), text_of(step.input_map),
        text_of(step.output_map), print_integers(step.after), word_of(step.tensor), word_of(step.name),
        word_of(step.kernel), text_of(step.options));
  }
  return text;
}

Program parse_program(std::string_view text, std::int64_t& waits) { return Reader(text, waits).read(); }
Program parse_program(std::string_view text) {
  std::int64_t waits = kMaxPlanWaits;
  return parse_program(text, waits);
}

}  // namespace burin
