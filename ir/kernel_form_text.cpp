// The text of a kernel's form.
#include "ir/kernel.h"
#include "ir/text_lines.h"

namespace burin {
namespace {

// What a tensor is counted in.
constexpr std::string_view kWords = "words", kHalves = "halves";

// An image: "input, f32 nchw 64x56x56, 200704 words[ of 401408][, 3 runs 100 apart][, aligned 16]" (of loose halves
// "154587 halves"); where it is not said what the words are: "input, f32 nchw, ...". Of a residual or second input
// "residual 1, ...".
std::string print_tensor(const KernelTensor& tensor) {
  std::string text(to_string(tensor.role));
  if (tensor.argument != 0) text += fmt::format(" {}", tensor.argument);
  if (!tensor.exists()) return text + ", none";
  if (tensor.map) {
    return text + fmt::format(", {}x{}x{}, cells {}", tensor.channels, tensor.rows, tensor.cols, print(*tensor.map));
  }
  const bool activations = tensor.is_read() || tensor.role == TensorRole::output;
  if (!activations) return text + fmt::format(", {} words", tensor.run_words);
  text += ", " + to_string(tensor.format());
  if (tensor.is_image()) text += fmt::format(" {}x{}x{}", tensor.channels, tensor.rows, tensor.cols);
  text += fmt::format(", {} {}", tensor.run_words, tensor.format().is_loose() ? kHalves : kWords);
  if (tensor.image_words != tensor.run_words) text += fmt::format(" of {}", tensor.image_words);
  if (tensor.runs != 1) text += fmt::format(", {} runs {} apart", tensor.runs, tensor.run_pitch);
  if (tensor.alignment != kWordBytes) text += fmt::format(", aligned {}", tensor.alignment);
  return text;
}

class TensorParser {
 public:
  TensorParser(const KeyValueText& text, const TextLine& line) : text_(text), line_(line) {}

  KernelTensor parse() {
    const std::vector<std::string_view> parts = split(line_.value, ',');
    parse_role(words(parts.front()));
    if (parts.size() == 2 && parts[1] == "none") return tensor_;
    for (std::size_t i = 1; i < parts.size(); ++i) parse_part(words(parts[i]));
    if (tensor_.image_words == 0) tensor_.image_words = activations_ ? tensor_.run_words : 0;
    if (!tensor_.exists()) wrong();
    return tensor_;
  }

 private:
  [[noreturn]] void wrong() const {
    text_.fail_at(line_,
                  "'{}' is not of the form 'ROLE[ ARGUMENT], ELEMENT LAYOUT[ CxHxW], N words|halves[ of N][, N runs N "
                  "apart][, aligned N]', 'ROLE, N words', 'ROLE, CxHxW, cells NxHxW' nor 'ROLE, none'",
                  line_.value);
  }

  void parse_role(const std::vector<std::string_view>& part) {
    if (part.empty() || part.size() > 2) wrong();
    tensor_.role = text_.named<TensorRole>(line_, part[0]);
    if (part.size() == 2) tensor_.argument = text_.integer32(line_, part[1]);
  }

  void parse_part(const std::vector<std::string_view>& part) {
    if (part.empty()) wrong();
    if (const std::optional<ElementType> element = parse_enum<ElementType>(part[0])) {
      parse_values(*element, part);
    } else if (part[0] == "cells" && part.size() == 2) {
      const std::vector<int> cells = extents(part[1]);
      tensor_.map = ActivityMap{cells[0], cells[1], cells[2]};
    } else if (part[0] == "aligned" && part.size() == 2) {
      tensor_.alignment = text_.integer32(line_, part[1]);
    } else if (part.size() == 4 && part[1] == "runs" && part[3] == "apart") {
      tensor_.runs = text_.integer(line_, part[0]);
      tensor_.run_pitch = text_.integer(line_, part[2]);
    } else if (part.size() >= 2 && part[1] == (tensor_.format().is_loose() ? kHalves : kWords)) {
      tensor_.run_words = text_.integer(line_, part[0]);
      if (part.size() == 4 && part[2] == "of") {
        tensor_.image_words = text_.integer(line_, part[3]);
      } else if (part.size() != 2) {
        wrong();
      }
    } else if (part.size() == 1) {
      set_image(extents(part[0]));
    } else {
      wrong();
    }
  }

  void parse_values(ElementType element, const std::vector<std::string_view>& part) {
    const std::optional<TensorLayout> layout =
        part.size() == 2 || part.size() == 3 ? parse_enum<TensorLayout>(part[1]) : std::nullopt;
    if (!layout) wrong();
    activations_ = true;
    tensor_.element = element;
    tensor_.layout = *layout;
    if (part.size() == 3) set_image(extents(part[2]));
  }

  void set_image(const std::vector<int>& image) {
    tensor_.channels = image[0];
    tensor_.rows = image[1];
    tensor_.cols = image[2];
  }

  std::vector<int> extents(std::string_view token) const {
    std::vector<int> values;
    for (const std::string_view extent : split(token, 'x')) values.push_back(text_.integer32(line_, extent));
    if (values.size() != 3) wrong();
    return values;
  }

  const KeyValueText& text_;
  const TextLine& line_;
  KernelTensor tensor_;
  bool activations_ = false;
};

class BoxParser {
 public:
  BoxParser(const KeyValueText& text, const TextLine& line) : text_(text), line_(line) {}

  TensorBox parse() {
    const std::vector<std::string_view> parts = split(line_.value, ',');
    constexpr std::size_t kAlways = 3, kMost = 5;
    if (parts.size() < kAlways || parts.size() > kMost) wrong();
    const std::vector<std::string_view> of = words(parts[0]);
    if (of.size() != 3 || of[0] != "of" || of[1] != "tensor") wrong();
    TensorBox box{.tensor = text_.integer32(line_, of[2])};
    read(the_word(parts[1]), {&box.image_rows, &box.image_cols});
    read(the_word(parts[2]), {&box.octets, &box.rows, &box.cols});
    std::size_t next = kAlways;
    if (next < parts.size() && words(parts[next]).size() == 2) {
      const std::vector<std::string_view> steps = words(parts[next++]);
      if (steps[0] != "steps") wrong();
      read(steps[1], {&box.step_rows, &box.step_cols});
    }
    if (next < parts.size()) {
      if (the_word(parts[next++]) != "swizzled") wrong();
      box.swizzled = true;
    }
    if (next != parts.size()) wrong();
    return box;
  }

 private:
  [[noreturn]] void wrong() const {
    text_.fail_at(line_, "'{}' is not of the form 'of tensor N, HxW, OxHxW[, steps NxN][, swizzled]'", line_.value);
  }
  std::string_view the_word(std::string_view part) const {
    const std::vector<std::string_view> found = words(part);
    if (found.size() != 1) wrong();
    return found.front();
  }
  void read(std::string_view extents, std::initializer_list<int*> targets) const {
    const std::vector<std::string_view> parts = split(extents, 'x');
    if (parts.size() != targets.size()) wrong();
    auto part = parts.begin();
    for (int* target : targets) *target = text_.integer32(line_, *part++);
  }

  const KeyValueText& text_;
  const TextLine& line_;
};

// The lines "WORD 0: ...", "WORD 1: ..." and so on, in their order.
template <typename Parser, typename Item>
void read_numbered(LineReader& text, std::string_view word, std::vector<Item>& items) {
  for (const TextLine* line : text.with_first_word(word)) {
    if (line->key != fmt::format("{} {}", word, items.size())) {
      text.fail_at(*line, "'{}' stands where '{} {}' is expected", line->key, word, items.size());
    }
    items.push_back(Parser(text, *line).parse());
  }
}

template <typename Lines, typename Launch>
void launch_lines(Lines& lines, Launch& launch) {
  lines.line("threads", launch.threads);
  lines.line("shared_bytes", launch.shared_bytes);
  lines.line("tile_images", launch.tile_images);
  lines.line("tiles_per_image", launch.tiles_per_image);
  lines.optional(launch.slices != 1, "slices", launch.slices);
  lines.optional(launch.cluster_tiles != 1, "cluster_tiles", launch.cluster_tiles);
  lines.optional(launch.workspace_bytes_per_tile != 0, "workspace_bytes_per_tile", launch.workspace_bytes_per_tile);
  lines.optional(launch.counters_per_tile != 0, "counters_per_tile", launch.counters_per_tile);
}

}  // namespace

std::string print(const KernelForm& form) {
  LinePrinter lines;
  launch_lines(lines, form.launch);
  for (std::size_t i = 0; i < form.tensors.size(); ++i) {
    lines.line(fmt::format("tensor {}", i), print_tensor(form.tensors[i]));
  }
  for (std::size_t i = 0; i < form.boxes.size(); ++i) lines.line(fmt::format("box {}", i), print(form.boxes[i]));
  return lines.text;
}

KernelForm parse_kernel_form(LineReader& text) {
  KernelForm form;
  launch_lines(text, form.launch);
  read_numbered<TensorParser>(text, "tensor", form.tensors);
  read_numbered<BoxParser>(text, "box", form.boxes);
  return form;
}

}  // namespace burin
