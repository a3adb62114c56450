// One list of the keys of each record serves to write it and to read it: keys_of(), which is run with a Writer or with
// a Reader.
#include "ir/package/manifest_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/derive_form.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/names.h"
#include "ir/strict_json.h"

namespace burin {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;  // keys stay in the order in which they are written here

constexpr JsonLimits kLimits{.depth = 16, .values = 4'000'000};  // a manifest needs a depth of 6

// ---- the keys of each record

template <typename Type, typename Record>
concept RecordOf = std::same_as<std::remove_const_t<Type>, Record>;

template <typename Keys, RecordOf<Padding> Record>
void keys_of(Keys& keys, Record& pad) {
  keys.key("pad_top", pad.top);
  keys.key("pad_bottom", pad.bottom);
  keys.key("pad_left", pad.left);
  keys.key("pad_right", pad.right);
}

template <typename Keys, RecordOf<Pool> Record>
void keys_of(Keys& keys, Record& pool) {
  keys.key("kind", pool.kind);
  keys.key("kernel_h", pool.kernel_h);
  keys.key("kernel_w", pool.kernel_w);
  keys.key("stride_h", pool.stride_h);
  keys.key("stride_w", pool.stride_w);
  keys_of(keys, pool.pad);
  keys.key("round_up", pool.round_up);
  keys.key("count_padding", pool.count_padding);
}

template <typename Keys, RecordOf<Elementwise> Record>
void keys_of(Keys& keys, Record& function) {
  keys.key("function", function.function);
  keys.key("alpha", function.alpha);
  keys.key("beta", function.beta);
  keys.optional("user", function.user);
}

template <typename Keys, RecordOf<ConvShape> Record>
void keys_of(Keys& keys, Record& shape) {
  keys.key("in_channels", shape.in_channels);
  keys.key("out_channels", shape.out_channels);
  keys.key("in_h", shape.in_h);
  keys.key("in_w", shape.in_w);
  keys.key("kernel_h", shape.kernel_h);
  keys.key("kernel_w", shape.kernel_w);
  keys.key("stride_h", shape.stride_h);
  keys.key("stride_w", shape.stride_w);
  keys_of(keys, shape.pad);
  keys.key("dilation_h", shape.dilation_h);
  keys.key("dilation_w", shape.dilation_w);
  keys.key("groups", shape.groups);
  keys.key("bias", shape.epilogue.bias);
  keys.key("residual", shape.epilogue.residual);
  keys.optional("function", shape.epilogue.function);
  keys.optional("pool", shape.epilogue.pool);
  keys.optional("residual_last", shape.epilogue.residual_last, false);
  keys.optional("then", shape.epilogue.then);
}

template <typename Keys, RecordOf<KernelBinary> Record>
void keys_of(Keys& keys, Record& binary) {
  keys.key("kind", binary.kind);
  keys.optional("arch", binary.arch);
  keys.key("path", binary.path);
  keys.key("bytes", binary.bytes);
  keys.optional("registers", binary.registers, -1);
  keys.optional("spill_bytes", binary.spill_bytes, -1);
  keys.optional("stack_bytes", binary.stack_bytes, -1);
  keys.optional("code_bytes", binary.code_bytes, std::int64_t{-1});
}

template <typename Keys, RecordOf<TuningCandidate> Record>
void keys_of(Keys& keys, Record& candidate) {
  keys.key("provider", candidate.provider);
  keys.key("plan", candidate.plan);
  keys.key("predicted_us", candidate.predicted_us);
  keys.optional("fault", candidate.fault);
  if (!candidate.fault.empty()) return;
  keys.key("us", candidate.us);
  keys.key("samples", candidate.samples);
  keys.optional("error", candidate.error);
  keys.optional("workspace_bytes", candidate.workspace_bytes);
  keys.optional("network_us", candidate.network_us);
}

template <typename Keys, RecordOf<TuningRecord> Record>
void keys_of(Keys& keys, Record& tuning) {
  keys.key("device", tuning.device);
  keys.key("arch", tuning.arch);
  keys.key("driver_version", tuning.driver_version);
  keys.key("code_copies", tuning.code_copies);
  keys.optional("libraries", tuning.libraries);
  keys.key("chosen", tuning.chosen);
  keys.key("candidates", tuning.candidates);
}

template <typename Keys, RecordOf<MultipliedColumns> Record>
void keys_of(Keys& keys, Record& multiplied) {
  keys.key("columns", multiplied.columns);
  keys.key("live", multiplied.live);
  keys.key("slots", multiplied.slots);
}

template <typename Keys, RecordOf<InputZeros> Record>
void keys_of(Keys& keys, Record& zeros) {
  keys.key("share", zeros.share);
  keys.key("compared", zeros.compared);
  keys.optional("pays_from", zeros.pays_from);
}

template <typename Keys, RecordOf<WeightZeros> Record>
void keys_of(Keys& keys, Record& zeros) {
  keys.key("batch", zeros.batch);
  keys.optional("pays_from", zeros.pays_from);
}

template <typename Keys, RecordOf<KernelLayer> Record>
void keys_of(Keys& keys, Record& layer) {
  keys.key("shape", layer.shape);
  keys.key("nonzeros", layer.nonzeros);
  keys.key("dead_inputs", layer.dead_inputs);
  keys.key("dead_outputs", layer.dead_outputs);
  keys.optional("data", layer.data);
  keys.optional("multiplied", layer.multiplied);
  keys.optional("zeros", layer.zeros);
}

template <typename Keys, RecordOf<WeightMatrix> Record>
void keys_of(Keys& keys, Record& matrix) {
  keys.key("rows", matrix.rows);
  keys.key("columns", matrix.columns);
  keys.key("nonzeros", matrix.nonzeros);
}

template <typename Keys, RecordOf<CalledLinear> Record>
void keys_of(Keys& keys, Record& called) {
  keys.key("bias", called.bias);
  keys.key("relu", called.relu);
  keys.key("data", called.data);
}

template <typename Keys, RecordOf<UserAttribute> Record>
void keys_of(Keys& keys, Record& attribute) {
  keys.key("name", attribute.name);
  keys.key("value", attribute.value);
  keys.optional("whole", attribute.whole, false);
}

template <typename Keys, RecordOf<KernelFunction> Record>
void keys_of(Keys& keys, Record& function) {
  keys.key("name", function.function.name);
  keys.key("inputs", function.function.inputs);
  keys.optional("attributes", function.function.attributes);
  keys.key("source_hash", function.function.source_hash);
  keys.key("ptx", function.path);
}

template <typename Keys, RecordOf<Kernel> Record>
void keys_of(Keys& keys, Record& kernel) {
  keys.key("symbol", kernel.symbol);
  keys.optional("entry", kernel.entry);
  keys.key("operator", kernel.op);
  keys.key("kind", kernel.kind);
  keys.key("provider", kernel.provider);
  keys.key("precision", kernel.precision);
  keys.optional("kept_in_fp32", kernel.kept_in_fp32);
  keys.optional("layer", kernel.layer);
  keys.optional("linear", kernel.linear);
  keys.optional("called", kernel.called);
  keys.optional("weight_zeros", kernel.weight_zeros);
  keys.optional("planned_batch", kernel.planned_batch);
  keys.optional("predicted_us", kernel.predicted_us);
  keys.optional("tuning", kernel.tuning);
  keys.optional("weights", kernel.weights);
  keys.optional("functions", kernel.functions);
  keys.optional("edited", kernel.edited);
  keys.key("source_hash", kernel.source_hash);
  keys.key("binaries", kernel.binaries);
  keys.lines("plan", kernel.plan);
}

template <typename Keys, RecordOf<TensorRecord> Record>
void keys_of(Keys& keys, Record& tensor) {
  keys.key("name", tensor.name);
  keys.key("path", tensor.path);
  keys.key("shape", tensor.shape);
}

template <typename Keys, RecordOf<BatchEstimate> Record>
void keys_of(Keys& keys, Record& batch) {
  keys.key("images", batch.images);
  keys.key("program", batch.program);
  keys.key("us", batch.us);
  keys.key("own_us", batch.own_us);
}

template <typename Keys, RecordOf<FileRecord> Record>
void keys_of(Keys& keys, Record& file) {
  keys.key("path", file.path);
  keys.key("bytes", file.bytes);
  keys.key("crc32", file.crc32);
}

template <typename Keys, RecordOf<Manifest> Record>
void keys_of(Keys& keys, Record& manifest) {
  keys.key("format_version", manifest.format_version);
  keys.key("tool_version", manifest.tool_version);
  keys.key("source", manifest.source);
  keys.key("zero_threshold", manifest.zero_threshold);
  keys.optional("quantized", manifest.quantized, QuantizedPairs::simulate);
  keys.optional("objective", manifest.objective, Objective::time);
  keys.optional("memory_limit", manifest.memory_limit);
  keys.key("kernels", manifest.kernels);
  keys.key("tensors", manifest.tensors);
  keys.optional("batches", manifest.batches);
  keys.key("programs", manifest.programs);
}

// ---- writing

// The double with the shortest decimal form that gives back the float: 0.01 and not 0.009999999776482582.
double shortest(float value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{}", value);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

// One element per line, so that a plan can be read in the manifest; join_lines() gives the text back, byte for byte.
ordered_json split_lines(std::string_view text) {
  ordered_json lines = ordered_json::array();
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.push_back(text);
  return lines;
}

class Writer {
 public:
  template <typename Value>
  void key(const char* name, const Value& value) {
    object_[name] = to_json(value);
  }
  template <typename Value>
  void optional(const char* name, const Value& value, const Value& absent = {}) {
    if (value != absent) key(name, value);
  }
  void lines(const char* name, const std::string& text) { object_[name] = split_lines(text); }

  template <typename Record>
  static ordered_json to_json(const Record& record) {
    if constexpr (NamedEnum<Record>) {
      return to_string(record);
    } else if constexpr (std::is_constructible_v<ordered_json, const Record&>) {
      return record;
    } else {
      Writer writer;
      keys_of(writer, record);
      return std::move(writer.object_);
    }
  }

  static ordered_json to_json(float value) { return shortest(value); }
  // The kernel says what it is.
  static ordered_json to_json(const SharedFunction& function) { return function->symbol(); }
  static ordered_json to_json(const Program& program) { return split_lines(to_text(program)); }
  template <typename Value>
  static ordered_json to_json(const std::optional<Value>& value) {  // which is there
    return to_json(*value);
  }
  template <typename Value>
  static ordered_json to_json(const std::vector<Value>& values) {
    ordered_json array = ordered_json::array();
    for (const Value& value : values) array.push_back(to_json(value));
    return array;
  }

 private:
  ordered_json object_ = ordered_json::object();
};

// Text that is not UTF-8 is verify()'s fault to report; printing a faulty manifest must still work.
std::string dump(const ordered_json& document) {
  constexpr int kIndent = 1;
  return document.dump(kIndent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// ---- reading

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

template <std::integral Integer>
void set(Integer& target, const Field& field) {
  target = field.integer<Integer>();
}
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

// Until the kernel's functions are known, one whose symbol says which it is.
void set(SharedFunction& target, const Field& field) {
  if (!is_user_symbol(field.text())) bad(field.path(), "is no symbol of a user's function");
  target = std::make_shared<UserFunction>(UserFunction{.name = field.text()});
}

template <typename Value>
void set(std::vector<Value>& target, const Field& field) {
  field.each([&](const Field& element) { set(target.emplace_back(), element); });
}

template <typename Value>
void set(std::optional<Value>& target, const Field& field) {
  set(target.emplace(), field);
}

template <NamedEnum Enum>
void set(Enum& target, const Field& field) {
  const std::optional<Enum> known = parse_enum<Enum>(field.text());
  if (!known) {
    bad(field.path(), fmt::format("'{}' is not {} this burin knows ({})", printable(field.text()),
                                  names_of(Enum{}).noun, known_names<Enum>()));
  }
  target = *known;
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

class Reader {
 public:
  explicit Reader(const Field& object) : object_(object) {}

  template <typename Value>
  void key(const char* name, Value& value) const {
    set(value, object_[name]);
  }
  template <typename Value>
  void optional(const char* name, Value& value, const Value& = {}) const {
    if (object_.has(name)) key(name, value);
  }
  void lines(const char* name, std::string& text) const { text = join_lines(object_[name]); }

 private:
  const Field& object_;
};

// Does `work`, whose faults are of the field.
template <typename Work>
void in_field(const Field& field, Work work) {
  try {
    work();
  } catch (const Error& error) {
    bad(field.path(), error.what());
  }
}

void set(std::vector<Program>& target, const Field& field) {
  std::int64_t waits = kMaxPlanWaits;
  field.each([&](const Field& element) {
    const std::string text = join_lines(element);
    in_field(element, [&] { target.push_back(parse_program(text, waits)); });
  });
}

void complete(const auto&, const Field&) {}
void complete(Kernel& kernel, const Field& field) {
  if (kernel.layer && kernel.layer->shape.epilogue.function && kernel.layer->shape.epilogue.function->user != nullptr) {
    SharedFunction& user = kernel.layer->shape.epilogue.function->user;
    const auto found = std::ranges::find(kernel.functions, user->name,
                                         [](const KernelFunction& known) { return known.function.symbol(); });
    if (found == kernel.functions.end()) {
      bad(field.path() + ".layer.shape", fmt::format("{} is none of the kernel's functions", user->name));
    }
    user = std::make_shared<UserFunction>(found->function);
  }
  in_field(field["plan"], [&] { derive_form(kernel); });
}
void complete(const KernelLayer& layer, const Field& field) {
  if (const auto faults = verify(layer.shape); !faults.empty()) bad(field.path() + ".shape", faults.front());
}

template <typename Record>
void set(Record& target, const Field& field) {
  Reader reader(field);
  keys_of(reader, target);
  complete(target, field);
}

}  // namespace

std::string print_json(const Manifest& manifest, const std::vector<FileRecord>& files) {
  ordered_json document = Writer::to_json(manifest);
  document["files"] = Writer::to_json(files);
  return dump(document);
}

std::string print(const Manifest& manifest) { return dump(Writer::to_json(manifest)); }

ParsedManifest parse_json(std::string_view text) {
  if (static_cast<std::int64_t>(text.size()) > kMaxManifestBytes) {
    bad("", fmt::format("{} bytes are over {}", text.size(), kMaxManifestBytes));
  }
  const json parsed = parse_strict_json(text, std::string(kManifestPath), kLimits).root;
  const Field root(parsed, "");
  ParsedManifest result;
  int& version = result.manifest.format_version;
  set(version, root["format_version"]);
  if (version != kPackageFormatVersion) {
    bad("format_version",
        fmt::format("{} is not one this burin ({}) reads: it reads {}. {}", version, BURIN_VERSION,
                    kPackageFormatVersion,
                    version > kPackageFormatVersion ? "A newer burin wrote the package"
                                                    : "Compile it again from its weights or model: 'burin compile'"));
  }
  set(result.manifest, root);
  if (root.has("files")) set(result.files.emplace(), root["files"]);
  return result;
}

Manifest parse_manifest(std::string_view text) { return parse_json(text).manifest; }

}  // namespace burin
