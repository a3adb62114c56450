#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/manifest_json.h"
#include "ir/package/names.h"
#include "ir/strict_json.h"

namespace burin {
namespace {

using nlohmann::json;

constexpr JsonLimits kLimits{.depth = 16, .values = 4'000'000};  // a manifest needs a depth of 6

[[noreturn]] void bad(const std::string& path, const std::string& text) {
  fail(ErrorKind::bad_input, "{}: {}{}{}", kManifestPath, path, path.empty() ? "" : ": ", text);
}

// A value with the path that leads to it, for messages.
class Field {
 public:
  Field(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  bool has(const char* key) const { return as(value_->is_object(), "an object").contains(key); }

  Field operator[](const char* key) const {
    const json& object = as(value_->is_object(), "an object");
    const auto found = object.find(key);
    if (found == object.end()) bad(path_, fmt::format("the key \"{}\" is missing", key));
    return {*found, path_.empty() ? key : path_ + "." + key};
  }

  template <typename Visit>
  void each(Visit visit) const {
    const json& array = as(value_->is_array(), "an array");
    for (std::size_t i = 0; i < array.size(); ++i) visit(Field(array[i], fmt::format("{}[{}]", path_, i)));
  }

  const std::string& text() const { return as(value_->is_string(), "a string").get_ref<const std::string&>(); }
  bool flag() const { return as(value_->is_boolean(), "true or false").get<bool>(); }

  double number() const { return as(value_->is_number(), "a number").get<double>(); }

  template <typename Integer>
  Integer integer() const {
    const json& value = as(value_->is_number_integer(), "an integer");
    constexpr auto kLow = std::numeric_limits<Integer>::min();
    constexpr auto kHigh = std::numeric_limits<Integer>::max();
    const bool over = value.is_number_unsigned() ? value.get<std::uint64_t>() > static_cast<std::uint64_t>(kHigh)
                                                 : value.get<std::int64_t>() > static_cast<std::int64_t>(kHigh);
    if (over) bad(path_, fmt::format("{} is over {}", value.dump(), kHigh));
    if (!value.is_number_unsigned() && value.get<std::int64_t>() < static_cast<std::int64_t>(kLow)) {
      bad(path_, fmt::format("{} is under {}", value.dump(), kLow));
    }
    return value.get<Integer>();
  }

 private:
  const json& as(bool is, std::string_view wanted) const {
    if (!is) bad(path_, fmt::format("expected {}, found {}", wanted, found()));
    return *value_;
  }

  std::string found() const {
    if (value_->is_structured()) return value_->is_object() ? "an object" : "an array";
    return printable(value_->dump());
  }

  const json* value_;
  std::string path_;
};

void set(int& target, const Field& field) { target = field.integer<int>(); }
void set(std::int64_t& target, const Field& field) { target = field.integer<std::int64_t>(); }
void set(std::uint32_t& target, const Field& field) { target = field.integer<std::uint32_t>(); }
void set(std::string& target, const Field& field) { target = field.text(); }
void set(bool& target, const Field& field) { target = field.flag(); }
void set(double& target, const Field& field) { target = field.number(); }
void set(float& target, const Field& field) {
  constexpr double kRoundsToInfinity = 0x1.ffffffp127;  // half a step beyond the largest float32
  const double value = field.number();
  if (!(std::abs(value) < kRoundsToInfinity)) {
    bad(field.path(), fmt::format("{} does not fit into a float32", value));
  }
  target = static_cast<float>(value);
}

template <typename T>
void get(T& target, const Field& object, const char* key) {
  set(target, object[key]);
}

template <typename T>
void get_optional(T& target, const Field& object, const char* key) {
  if (object.has(key)) set(target, object[key]);
}

std::string join_lines(const Field& lines) {
  std::string text;
  bool first = true;
  lines.each([&](const Field& line) {
    if (!first) text += '\n';
    first = false;
    text += line.text();
  });
  return text;
}

Padding parse_padding(const Field& field) {
  Padding pad;
  get(pad.top, field, "pad_top");
  get(pad.bottom, field, "pad_bottom");
  get(pad.left, field, "pad_left");
  get(pad.right, field, "pad_right");
  return pad;
}

Pool parse_pool(const Field& field) {
  Pool pool;
  const Field kind = field["kind"];
  const std::optional<PoolKind> known = parse_pool_kind(kind.text());
  if (!known)
    bad(kind.path(), fmt::format("'{}' is not a pool this burin knows (max, average)", printable(kind.text())));
  pool.kind = *known;
  get(pool.kernel_h, field, "kernel_h");
  get(pool.kernel_w, field, "kernel_w");
  get(pool.stride_h, field, "stride_h");
  get(pool.stride_w, field, "stride_w");
  pool.pad = parse_padding(field);
  get(pool.round_up, field, "round_up");
  get(pool.count_padding, field, "count_padding");
  return pool;
}

ConvShape parse_shape(const Field& field) {
  ConvShape shape;
  get(shape.in_channels, field, "in_channels");
  get(shape.out_channels, field, "out_channels");
  get(shape.in_h, field, "in_h");
  get(shape.in_w, field, "in_w");
  get(shape.kernel_h, field, "kernel_h");
  get(shape.kernel_w, field, "kernel_w");
  get(shape.stride_h, field, "stride_h");
  get(shape.stride_w, field, "stride_w");
  shape.pad = parse_padding(field);
  get(shape.dilation_h, field, "dilation_h");
  get(shape.dilation_w, field, "dilation_w");
  get(shape.groups, field, "groups");
  get(shape.epilogue.bias, field, "bias");
  get(shape.epilogue.residual, field, "residual");
  const Field activation = field["activation"];
  const std::optional<Activation> known = parse_activation(activation.text());
  if (!known) {
    bad(activation.path(), fmt::format("'{}' is not an activation this burin knows ({})", printable(activation.text()),
                                       activation_names()));
  }
  shape.epilogue.activation = *known;
  get(shape.epilogue.leaky_slope, field, "leaky_slope");
  if (field.has("pool")) shape.epilogue.pool = parse_pool(field["pool"]);
  return shape;
}

BinaryKind parse_kind(const Field& field) {
  for (const BinaryKind kind : {BinaryKind::ptx, BinaryKind::cubin}) {
    if (field.text() == to_string(kind)) return kind;
  }
  bad(field.path(), fmt::format("'{}' is none of ptx, cubin", printable(field.text())));
}

KernelBinary parse_binary(const Field& field) {
  KernelBinary binary;
  binary.kind = parse_kind(field["kind"]);
  get_optional(binary.arch, field, "arch");
  get(binary.path, field, "path");
  get(binary.bytes, field, "bytes");
  get_optional(binary.registers, field, "registers");
  get_optional(binary.spill_bytes, field, "spill_bytes");
  get_optional(binary.stack_bytes, field, "stack_bytes");
  get_optional(binary.code_bytes, field, "code_bytes");
  return binary;
}

TuningCandidate parse_candidate(const Field& field) {
  TuningCandidate candidate;
  get(candidate.provider, field, "provider");
  get(candidate.plan, field, "plan");
  get(candidate.predicted_us, field, "predicted_us");
  if (field.has("fault")) {
    get(candidate.fault, field, "fault");
    return candidate;
  }
  get(candidate.us, field, "us");
  get(candidate.samples, field, "samples");
  get(candidate.error, field, "error");
  return candidate;
}

TuningRecord parse_tuning(const Field& field) {
  TuningRecord tuning;
  get(tuning.device, field, "device");
  get(tuning.arch, field, "arch");
  get(tuning.driver_version, field, "driver_version");
  get(tuning.code_copies, field, "code_copies");
  get(tuning.chosen, field, "chosen");
  field["candidates"].each([&](const Field& candidate) { tuning.candidates.push_back(parse_candidate(candidate)); });
  return tuning;
}

KernelLayer parse_layer(const Field& field) {
  KernelLayer layer;
  layer.shape = parse_shape(field["shape"]);
  get(layer.nonzeros, field, "nonzeros");
  get(layer.dead_inputs, field, "dead_inputs");
  get(layer.dead_outputs, field, "dead_outputs");
  get_optional(layer.data, field, "data");
  if (const auto faults = verify(layer.shape); !faults.empty()) bad(field.path() + ".shape", faults.front());
  return layer;
}

Kernel parse_kernel(const Field& field) {
  Kernel kernel;
  get(kernel.symbol, field, "symbol");
  get(kernel.op, field, "operator");
  get(kernel.kind, field, "kind");
  get(kernel.provider, field, "provider");
  get(kernel.precision, field, "precision");
  if (field.has("layer")) kernel.layer = parse_layer(field["layer"]);
  get_optional(kernel.planned_batch, field, "planned_batch");
  get_optional(kernel.predicted_us, field, "predicted_us");
  if (field.has("tuning")) kernel.tuning = parse_tuning(field["tuning"]);
  get_optional(kernel.weights, field, "weights");
  get_optional(kernel.edited, field, "edited");
  get(kernel.source_hash, field, "source_hash");
  field["binaries"].each([&](const Field& binary) { kernel.binaries.push_back(parse_binary(binary)); });
  const Field plan = field["plan"];
  kernel.plan = join_lines(plan);
  try {
    derive_form(kernel);
  } catch (const Error& error) {
    bad(plan.path(), error.what());
  }
  return kernel;
}

TensorRecord parse_tensor(const Field& field) {
  TensorRecord tensor;
  get(tensor.name, field, "name");
  get(tensor.path, field, "path");
  field["shape"].each([&](const Field& extent) { tensor.shape.push_back(extent.integer<std::int64_t>()); });
  return tensor;
}

// A text of the package in its own form, whose errors then name where it stands.
template <typename Parse>
auto parse_lines(const Field& field, Parse parse) {
  const std::string text = join_lines(field);
  try {
    return parse(text);
  } catch (const Error& error) {
    bad(field.path(), error.what());
  }
}

FileRecord parse_file(const Field& field) {
  FileRecord file;
  get(file.path, field, "path");
  get(file.bytes, field, "bytes");
  get(file.crc32, field, "crc32");
  return file;
}

}  // namespace

ParsedManifest parse_json(std::string_view text) {
  if (static_cast<std::int64_t>(text.size()) > kMaxManifestBytes) {
    bad("", fmt::format("{} bytes are over {}", text.size(), kMaxManifestBytes));
  }
  const json document = parse_strict_json(text, std::string(kManifestPath), kLimits).root;
  const Field root(document, "");
  ParsedManifest result;
  Manifest& manifest = result.manifest;
  get(manifest.format_version, root, "format_version");
  if (manifest.format_version != kPackageFormatVersion) {
    bad("format_version", fmt::format("{} is not one this burin ({}) reads: it reads {}. {}", manifest.format_version,
                                      BURIN_VERSION, kPackageFormatVersion,
                                      manifest.format_version > kPackageFormatVersion
                                          ? "A newer burin wrote the package"
                                          : "Compile it again from its weights or model: 'burin compile'"));
  }
  get(manifest.tool_version, root, "tool_version");
  get(manifest.source, root, "source");
  get(manifest.zero_threshold, root, "zero_threshold");
  root["kernels"].each([&](const Field& kernel) { manifest.kernels.push_back(parse_kernel(kernel)); });
  root["tensors"].each([&](const Field& tensor) { manifest.tensors.push_back(parse_tensor(tensor)); });
  root["programs"].each(
      [&](const Field& program) { manifest.programs.push_back(parse_lines(program, parse_program)); });
  result.has_files = root.has("files");
  if (result.has_files) {
    root["files"].each([&](const Field& file) { result.files.push_back(parse_file(file)); });
  }
  return result;
}

Manifest parse_manifest(std::string_view text) { return parse_json(text).manifest; }

}  // namespace burin
