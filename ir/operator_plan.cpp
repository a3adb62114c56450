#include "ir/operator_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/limits.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::int64_t kWordsMax = kMaxImageBytes / 4;  // of an image: a name that the .def files use

#define BURIN_INTEGER(name, low, high) {#name, false, low, high},
#define BURIN_REAL(name) {#name, true},
const std::vector<OperatorConstant> kPool = {
#include "templates/operators/pool.def"
};
const std::vector<OperatorConstant> kGlobalAverage = {
#include "templates/operators/global_average.def"
};
const std::vector<OperatorConstant> kElementwise = {
#include "templates/operators/elementwise.def"
};
const std::vector<OperatorConstant> kCombine = {
#include "templates/operators/combine.def"
};
const std::vector<OperatorConstant> kLinear = {
#include "templates/operators/linear.def"
};
const std::vector<OperatorConstant> kLinearSparse = {
#include "templates/operators/linear_sparse.def"
};
const std::vector<OperatorConstant> kSoftmax = {
#include "templates/operators/softmax.def"
};
const std::vector<OperatorConstant> kSoftmaxChannels = {
#include "templates/operators/softmax_channels.def"
};
const std::vector<OperatorConstant> kLrn = {
#include "templates/operators/lrn.def"
};
const std::vector<OperatorConstant> kConvDense = {
#include "templates/operators/conv_dense.def"
};
const std::vector<OperatorConstant> kConvDepthwise = {
#include "templates/operators/conv_depthwise.def"
};
const std::vector<OperatorConstant> kConvStreamed = {
#include "templates/operators/conv_streamed.def"
};
const std::vector<OperatorConstant> kCopy = {
#include "templates/operators/copy.def"
};
#undef BURIN_INTEGER
#undef BURIN_REAL

const std::vector<OperatorConstant>& constants_of(std::string_view name) {
  static const std::map<std::string_view, const std::vector<OperatorConstant>*> lists = {
      {"pool", &kPool},
      {"global_average", &kGlobalAverage},
      {"elementwise", &kElementwise},
      {"combine", &kCombine},
      {"linear", &kLinear},
      {"linear_sparse", &kLinearSparse},
      {"softmax", &kSoftmax},
      {"softmax_channels", &kSoftmaxChannels},
      {"lrn", &kLrn},
      {"conv_dense", &kConvDense},
      {"conv_depthwise", &kConvDepthwise},
      {"conv_streamed", &kConvStreamed},
      {"copy", &kCopy},
  };
  const auto found = lists.find(name);
  BURIN_CHECK(found != lists.end(), "the operator template '{}' has no list of constants", name);
  return *found->second;
}

std::string print(const OperatorTensor& tensor) {
  if (!tensor.exists()) return "none";
  std::string text = fmt::format("{} at {} of {}", tensor.run_words, tensor.offset, tensor.image_words);
  if (tensor.runs != 1) text += fmt::format(", {} runs {} apart", tensor.runs, tensor.run_pitch);
  if (tensor.aligned != 1) text += fmt::format(", aligned {}", tensor.aligned);
  return text;
}

OperatorTensor parse_tensor(const KeyValueText& text, const TextLine& line) {
  OperatorTensor tensor;
  if (line.value == "none") return tensor;
  constexpr std::string_view kForm = "WORDS at OFFSET of IMAGE_WORDS[, RUNS runs PITCH apart][, aligned WORDS]";
  const auto parts = split(line.value, ',');
  const auto expect = [&](bool fine) {
    if (!fine) text.fail_at(line, "'{}' is not of the form '{}' nor 'none'", line.value, kForm);
  };
  const auto first = words(parts.front());
  expect(first.size() == 5 && first[1] == "at" && first[3] == "of");
  tensor.run_words = text.integer(line, first[0]);
  tensor.offset = text.integer(line, first[2]);
  tensor.image_words = text.integer(line, first[4]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto part = words(parts[i]);
    if (part.size() == 4 && part[1] == "runs" && part[3] == "apart") {
      tensor.runs = text.integer(line, part[0]);
      tensor.run_pitch = text.integer(line, part[2]);
    } else {
      expect(part.size() == 2 && part[0] == "aligned");
      tensor.aligned = text.integer32(line, part[1]);
    }
  }
  return tensor;
}

}  // namespace

bool OperatorTensor::contains(std::int64_t word) const {
  const std::int64_t from = word - offset;
  if (from < 0 || word >= end()) return false;
  return runs == 1 || from % run_pitch < run_words;
}

std::int64_t OperatorPlan::blocks(int batch) const {
  return (static_cast<std::int64_t>(batch) + block_images - 1) / block_images * group_blocks;
}

const std::vector<OperatorTemplate>& operator_templates() {
  static const std::vector<OperatorTemplate> all = {
#define BURIN_OPERATOR(name, description) {#name, description, constants_of(#name)},
#include "templates/operators/operators.def"
#undef BURIN_OPERATOR
  };
  return all;
}

bool stores_halves(const OperatorPlan& plan) {
  const auto found = plan.integers.find("half_values");
  return found != plan.integers.end() && found->second != 0;
}

std::string describe(const OperatorPlan& plan) {
  const std::string images = plan.block_images == 1 ? "an image" : fmt::format("{} images", plan.block_images);
  return fmt::format("{}{}, {} block{} of {} for {}", plan.template_name, stores_halves(plan) ? " fp16" : "",
                     plan.group_blocks, plan.group_blocks == 1 ? "" : "s", plan.threads, images) +
         (plan.cluster_blocks == 1 ? "" : fmt::format(", clusters of {}", plan.cluster_blocks));
}

std::string kernel_symbol(const std::string& name, const OperatorPlan& plan) {
  std::string symbol = "burin_";
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    symbol += plain ? c : '_';
  }
  return symbol + "_" + plan.template_name;
}

std::string print(const OperatorPlan& plan) {
  std::string text = fmt::format("# {}\n", describe(plan));
  const auto add = [&](std::string_view key, const auto& value) { text += fmt::format("{}: {}\n", key, value); };
  add("template", plan.template_name);
  add("arch", plan.arch);
  add("input", print(plan.input));
  add("second", print(plan.second));
  add("output", print(plan.output));
  add("weight_words", plan.weight_words);
  add("threads", plan.threads);
  add("shared_bytes", plan.shared_bytes);
  add("block_images", plan.block_images);
  add("group_blocks", plan.group_blocks);
  if (plan.cluster_blocks != 1) add("cluster_blocks", plan.cluster_blocks);
  for (const auto& [name, value] : plan.integers) add("integer " + name, value);
  for (const auto& [name, value] : plan.reals) add("real " + name, value);
  return text;
}

OperatorPlan parse_operator_plan(std::string_view source) {
  KeyValueText text(source, "operator plan");
  OperatorPlan plan;
  plan.template_name = text.required("template").value;
  plan.arch = text.required("arch").value;
  plan.input = parse_tensor(text, text.required("input"));
  plan.second = parse_tensor(text, text.required("second"));
  plan.output = parse_tensor(text, text.required("output"));
  const TextLine& weights = text.required("weight_words");
  plan.weight_words = text.integer(weights, weights.value);
  plan.threads = text.integer32("threads");
  plan.shared_bytes = text.integer32("shared_bytes");
  plan.block_images = text.integer32("block_images");
  plan.group_blocks = text.integer32("group_blocks");
  if (const TextLine* cluster = text.optional("cluster_blocks")) {
    plan.cluster_blocks = text.integer32(*cluster, cluster->value);
  }
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
