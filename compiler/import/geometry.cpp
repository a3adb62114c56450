#include "compiler/import/geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/import/faults.h"
#include "compiler/import/json_text.h"
#include "compiler/import/names.h"
#include "ir/limits.h"
#include "ir/text.h"

namespace burin {
namespace {

using nlohmann::json;

// What other tools call the same things.
struct OtherName {
  std::string_view theirs, ours;
};
constexpr OtherName kOtherNames[] = {
    {"padding", "pad"},
    {"h", "H"},
    {"w", "W"},
    {"height", "H"},
    {"width", "W"},
    {"act", "activation"},
    {"negative_slope", "leaky_slope"},
};
constexpr std::size_t kShortestMisspelling = 3;  // one letter is near to every other one

struct Range {
  std::int64_t low = 0, high = 0;
};
constexpr Range kStrideRange{1, kMaxStride};
constexpr Range kPadRange{0, kMaxPadding};
constexpr Range kGroupsRange{1, kMaxChannels};
constexpr Range kChannelRange{1, kMaxChannels};
constexpr Range kSpatialRange{1, kMaxSpatialExtent};

// JSON values take the form that flags have, so that one reader serves both: [1, 2] is "1x2", four numbers are
// "1,2,3,4".
std::string flag_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array() || value.empty()) return value.dump();
  std::string text;
  for (const json& element : value) {
    if (element.is_structured()) return value.dump();
    if (!text.empty()) text += value.size() == 2 ? 'x' : ',';
    text += flag_text(element);
  }
  return text;
}

// One attribute with what is needed to complain about it.
struct Attribute {
  const GeometryPlace& place;
  std::string name;  // "stride" or "--stride"
  json value;
  std::string text = flag_text(value);

  [[noreturn]] void fault(ErrorKind kind, const std::string& what) const {
    throw Error(kind, fmt::format("{}{}{} is \"{}\"; {}", place.text, place.text.empty() ? "" : ": ", name,
                                  printable(text), what));
  }
  [[noreturn]] void fault(const std::string& what) const { fault(place.kind, what); }
};

// A whole number; one too large for 64 bits becomes the largest, so that the range check names it.
std::optional<std::int64_t> whole_number(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    constexpr auto kLimits = std::numeric_limits<std::int64_t>();
    return text.front() == '-' ? kLimits.min() : kLimits.max();
  }
  return value;
}

// All parts as numbers, or nothing.
std::optional<std::vector<std::int64_t>> split_numbers(std::string_view text, char separator) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split(text, separator)) {
    const auto number = whole_number(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

int in_range(std::int64_t value, const Range& range, const Attribute& attribute) {
  if (value < range.low) attribute.fault(fmt::format("it must be at least {}", range.low));
  if (value > range.high) attribute.fault(ErrorKind::unsupported, fmt::format("burin's limit is {}", range.high));
  return static_cast<int>(value);
}

int parse_count(const Attribute& attribute, const Range& range) {
  const auto number = whole_number(attribute.text);
  if (!number) attribute.fault("it must be a whole number");
  return in_range(*number, range, attribute);
}

void set_extent(const Attribute& attribute, int& h, int& w) {
  const auto numbers = split_numbers(attribute.text, 'x');
  if (!numbers || numbers->size() > 2) attribute.fault("it must be one whole number, or two as HxW");
  h = in_range(numbers->front(), kStrideRange, attribute);
  w = in_range(numbers->back(), kStrideRange, attribute);
}

Padding parse_padding(const Attribute& attribute) {
  const auto sides = split_numbers(attribute.text, ',');
  if (sides && sides->size() == 4) {
    const auto side = [&](std::size_t i) { return in_range((*sides)[i], kPadRange, attribute); };
    return {side(0), side(1), side(2), side(3)};
  }
  const auto extents = split_numbers(attribute.text, 'x');
  if (!extents || extents->size() > 2) {
    attribute.fault("it must be one whole number, two as HxW, or four as top,bottom,left,right");
  }
  const int h = in_range(extents->front(), kPadRange, attribute);
  const int w = in_range(extents->back(), kPadRange, attribute);
  return {h, h, w, w};
}

Activation parse_activation_name(const Attribute& attribute) {
  if (attribute.value.is_null()) return Activation::none;
  const auto activation = parse_enum<Activation>(attribute.text);
  if (!activation) attribute.fault("it must be one of " + known_names<Activation>());
  return *activation;
}

float parse_slope(const Attribute& attribute) {
  const auto value = parse_number<float>(trim(attribute.text));
  if (!value || !std::isfinite(*value)) attribute.fault("it must be a finite number");
  return *value;
}

bool parse_bool(const Attribute& attribute) {
  if (attribute.text == "true" || attribute.text == "1") return true;
  if (attribute.text == "false" || attribute.text == "0" || attribute.text == "null") return false;
  attribute.fault("it must be true or false");
}

std::string tensor_name(const Attribute& attribute) {
  if (!attribute.value.is_string() || attribute.text.empty()) attribute.fault("it must be a tensor's name");
  return attribute.text;
}

void set_bias(const Attribute& attribute, LayerGeometry& layer) {
  const bool none = attribute.value.is_null() || attribute.value == false;
  layer.bias = none ? LayerGeometry::Bias::none : LayerGeometry::Bias::required;
  if (!none && attribute.value != true) layer.bias_tensor = tensor_name(attribute);
}

struct AttributeRule {
  std::string name;
  void (*set)(const Attribute&, LayerGeometry&);
};
const AttributeRule kRules[] = {
    {"weight", [](const Attribute& given, LayerGeometry& layer) { layer.weight = tensor_name(given); }},
    {"bias", set_bias},
    {"stride", [](const Attribute& given,
                  LayerGeometry& layer) { set_extent(given, layer.shape.stride_h, layer.shape.stride_w); }},
    {"pad", [](const Attribute& given, LayerGeometry& layer) { layer.shape.pad = parse_padding(given); }},
    {"dilation", [](const Attribute& given,
                    LayerGeometry& layer) { set_extent(given, layer.shape.dilation_h, layer.shape.dilation_w); }},
    {"groups",
     [](const Attribute& given, LayerGeometry& layer) { layer.shape.groups = parse_count(given, kGroupsRange); }},
    {"H", [](const Attribute& given, LayerGeometry& layer) { layer.in_h = parse_count(given, kSpatialRange); }},
    {"W", [](const Attribute& given, LayerGeometry& layer) { layer.in_w = parse_count(given, kSpatialRange); }},
    {"activation",
     [](const Attribute& given, LayerGeometry& layer) { layer.activation = parse_activation_name(given); }},
    {"leaky_slope", [](const Attribute& given, LayerGeometry& layer) { layer.leaky_slope = parse_slope(given); }},
    {"residual",
     [](const Attribute& given, LayerGeometry& layer) { layer.shape.epilogue.residual = parse_bool(given); }},
};

// False when burin knows no such attribute.
bool set_attribute(const std::string& key, const Attribute& attribute, LayerGeometry& layer) {
  const auto* const rule = std::ranges::find(kRules, key, &AttributeRule::name);
  if (rule == std::end(kRules)) return false;
  rule->set(attribute, layer);
  return true;
}

// Refuses another tool's name and a misspelling: taken for unknown, they would make another layer than the one meant.
void reject_mistaken_names(const std::string& key, const LayerGeometry& layer) {
  std::vector<std::string> known;
  for (const AttributeRule& rule : kRules) known.push_back(rule.name);
  std::string right_name = key.size() < kShortestMisspelling ? "" : nearest(key, known).value_or("");
  for (const auto& [theirs, ours] : kOtherNames) {
    if (key == theirs) right_name = ours;
  }
  if (right_name.empty()) return;
  fail(layer.place.kind, "{}: {} is unknown; the attribute is called {}", layer.place.text, in_quotes(key),
       in_quotes(right_name));
}

}  // namespace

Geometry parse_geometry(std::string_view text, const std::string& where) {
  const StrictJson parsed = parse_json_object(text, where);
  if (parsed.top_keys.empty()) bad_input(where, "describes no layer");
  Geometry geometry;
  std::set<std::string> unknown;
  for (const std::string& name : parsed.top_keys) {
    LayerGeometry layer;
    layer.name = name;
    layer.place = {ErrorKind::bad_input, fmt::format("{}: layer {}", where, in_quotes(name))};
    const json& attributes = parsed.root.at(name);
    if (!attributes.is_object()) {
      bad_input(layer.place.text, "must be a JSON object with attributes such as {}",
                R"({"weight": "NAME", "stride": 1, "pad": "1", "groups": 1, "H": 14, "W": 14})");
    }
    for (const auto& [key, value] : attributes.items()) {
      if (set_attribute(key, {layer.place, key, value}, layer)) continue;
      reject_mistaken_names(key, layer);
      unknown.insert(key);
    }
    geometry.layers.push_back(std::move(layer));
  }
  // Files say where a layer came from; that is no attribute and no news.
  unknown.erase("source");
  geometry.unknown.assign(unknown.begin(), unknown.end());
  return geometry;
}

void apply_flags(const GeometryFlags& flags, LayerGeometry& layer) {
  const GeometryPlace place{ErrorKind::usage, ""};
  if (flags.input_shape) {
    const Attribute attribute{place, "--input-shape", *flags.input_shape};
    const auto numbers = split_numbers(attribute.text, 'x');
    if (!numbers || (numbers->size() != 2 && numbers->size() != 3)) attribute.fault("it must be CxHxW or HxW");
    if (numbers->size() == 3) layer.in_channels = in_range(numbers->front(), kChannelRange, attribute);
    layer.in_h = in_range((*numbers)[numbers->size() - 2], kSpatialRange, attribute);
    layer.in_w = in_range(numbers->back(), kSpatialRange, attribute);
  }
  const auto apply = [&](const std::string& name, const std::optional<std::string>& text) {
    if (text) set_attribute(name, {place, "--" + name, *text}, layer);
  };
  apply("stride", flags.stride);
  apply("dilation", flags.dilation);
  apply("pad", flags.pad);
  if (flags.groups) apply("groups", fmt::format("{}", *flags.groups));
}

}  // namespace burin
