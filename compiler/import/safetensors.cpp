#include "compiler/import/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "compiler/import/faults.h"
#include "compiler/import/json_text.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/names.h"

namespace burin {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kGeometryKey = "geometry";
constexpr std::size_t kMaxRank = 64;

struct TypeRow {
  std::string_view name;
  StoredType type;
  int bytes;
};
constexpr TypeRow kTypes[] = {
    {"F32", StoredType::f32, 4},       {"F16", StoredType::f16, 2},       {"BF16", StoredType::bf16, 2},
    {"F64", StoredType::f64, 8},       {"BOOL", StoredType::boolean, 1},  {"I8", StoredType::i8, 1},
    {"U8", StoredType::u8, 1},         {"I16", StoredType::i16, 2},       {"U16", StoredType::u16, 2},
    {"I32", StoredType::i32, 4},       {"U32", StoredType::u32, 4},       {"I64", StoredType::i64, 8},
    {"U64", StoredType::u64, 8},       {"F8_E4M3", StoredType::other, 1}, {"F8_E5M2", StoredType::other, 1},
    {"F8_E8M0", StoredType::other, 1}, {"C64", StoredType::other, 8},
};

std::uint64_t header_length(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
  return length;
}

// A whole number from 0 to 2^63-1, or nothing.
std::optional<std::int64_t> whole_number(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

const json& attribute(const json& tensor, const char* name, const std::string& where) {
  const auto found = tensor.find(name);
  if (found == tensor.end()) bad_input(where, "lacks '{}'", name);
  return *found;
}

struct Placed {
  WeightsTensor tensor;
  std::int64_t begin = 0, end = 0;
};

// One tensor of the header; `data` is the block that its offsets count in.
Placed place_tensor(const std::string& name, const json& entry, std::string_view data, const std::string& path) {
  const std::string where = path + ": tensor " + in_quotes(name);
  if (!entry.is_object()) bad_input(where, "its entry is not a JSON object");
  Placed placed;
  WeightsTensor& tensor = placed.tensor;
  tensor.name = name;
  tensor.file = path;

  const json& type = attribute(entry, "dtype", where);
  if (!type.is_string()) bad_input(where, "dtype is not a string");
  tensor.type_name = type.get<std::string>();
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& known) { return known.name == tensor.type_name; });
  if (row == std::end(kTypes)) {
    bad_input(where, "dtype {} is unknown; burin reads weights of F32, F16, BF16 and F64", in_quotes(tensor.type_name));
  }
  tensor.type = row->type;
  tensor.element_bytes = row->bytes;

  const json& shape = attribute(entry, "shape", where);
  if (!shape.is_array()) bad_input(where, "shape is not an array");
  if (shape.size() > kMaxRank) bad_input(where, "has more than {} dimensions", kMaxRank);
  for (const json& extent : shape) {
    const auto value = whole_number(extent);
    if (!value) bad_input(where, "shape holds {}, which is no extent", printable(extent.dump()));
    tensor.shape.push_back(*value);
  }
  const auto elements = checked_elements(tensor.shape);
  std::int64_t size = 0;
  if (!elements || __builtin_mul_overflow(*elements, std::int64_t{row->bytes}, &size)) {
    bad_input(where, "the shape {} is larger than memory can be", extents_text(tensor.shape));
  }

  const json& offsets = attribute(entry, "data_offsets", where);
  const auto begin = offsets.is_array() && offsets.size() == 2 ? whole_number(offsets[0]) : std::nullopt;
  const auto end = offsets.is_array() && offsets.size() == 2 ? whole_number(offsets[1]) : std::nullopt;
  if (!begin || !end) {
    bad_input(where, "data_offsets is {}, not two whole numbers [begin, end]", printable(offsets.dump()));
  }
  if (*begin > *end || static_cast<std::uint64_t>(*end) > data.size()) {
    bad_input(where, "data_offsets [{}, {}] lie outside the {} bytes of data", *begin, *end, data.size());
  }
  if (*end - *begin != size) {
    bad_input(where, "the shape {} of {} needs {} bytes, but data_offsets [{}, {}] span {}", extents_text(tensor.shape),
              tensor.type_name, size, *begin, *end, *end - *begin);
  }
  placed.begin = *begin;
  placed.end = *end;
  tensor.bytes = data.substr(static_cast<std::size_t>(*begin), static_cast<std::size_t>(size));
  return placed;
}

// The format allows neither: every byte of data belongs to exactly one tensor.
void check_no_overlap_no_hole(const std::vector<Placed>& sorted, std::size_t data_bytes, const std::string& path) {
  std::int64_t end = 0;
  const Placed* before = nullptr;
  for (const Placed& placed : sorted) {
    if (placed.begin < end) {
      bad_input(path, "the tensors {} and {} overlap", in_quotes(before->tensor.name), in_quotes(placed.tensor.name));
    }
    if (placed.begin > end) {
      bad_input(path, "tensor {}: {} bytes before it belong to no tensor", in_quotes(placed.tensor.name),
                placed.begin - end);
    }
    end = placed.end;
    before = &placed;
  }
  if (static_cast<std::uint64_t>(end) != data_bytes) {
    bad_input(path, "the last {} bytes belong to no tensor", data_bytes - static_cast<std::uint64_t>(end));
  }
}

void read_metadata(const json& metadata, WeightsFile& result) {
  if (!metadata.is_object()) bad_input(result.path, "__metadata__ is not a JSON object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) bad_input(result.path, "metadata key {} is not a string", in_quotes(key));
    if (key == kGeometryKey) {
      result.geometry.push_back({value.get<std::string>(), result.path + ": metadata key 'geometry'"});
    }
  }
}

// A path inside the folder of the index, or an error: what a file says must not make burin read elsewhere.
std::filesystem::path shard_path(const std::string& shard, const std::string& index_path) {
  const std::filesystem::path relative(shard);
  const bool climbs = std::any_of(relative.begin(), relative.end(), [](const auto& part) { return part == ".."; });
  if (shard.empty() || shard.find('\0') != shard.npos || relative.has_root_path() || climbs) {
    bad_input(index_path, "weight_map names the file {}, which is not inside the folder of the index",
              in_quotes(shard));
  }
  return std::filesystem::path(index_path).parent_path() / relative;
}

}  // namespace

bool looks_like_safetensors(std::string_view bytes) {
  return bytes.size() > kLengthBytes && bytes[kLengthBytes] == '{' && header_length(bytes) <= kMaxJsonBytes;
}

WeightsFile parse_safetensors(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kLengthBytes) {
    bad_input(path, "{} bytes are too few for safetensors, which starts with a header length of {}", bytes.size(),
              kLengthBytes);
  }
  const std::uint64_t length = header_length(bytes);
  if (length > kMaxJsonBytes) {
    bad_input(path, "the header claims {} bytes; safetensors allows {}", length, kMaxJsonBytes);
  }
  if (length > bytes.size() - kLengthBytes) {
    bad_input(path, "the header claims {} bytes, but only {} follow; the file is cut off", length,
              bytes.size() - kLengthBytes);
  }
  const StrictJson header = parse_json_object(bytes.substr(kLengthBytes, length), path + ": header");
  const std::string_view data = bytes.substr(kLengthBytes + length);

  WeightsFile result;
  result.path = path;
  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.root.items()) {
    if (name == kMetadataKey) {
      read_metadata(entry, result);
    } else {
      placed.push_back(place_tensor(name, entry, data, path));
    }
  }
  if (placed.empty()) bad_input(path, "holds no tensors");
  // Ties are tensors without elements; the name keeps their order the same everywhere.
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  check_no_overlap_no_hole(placed, data.size(), path);
  for (Placed& each : placed) result.tensors.push_back(std::move(each.tensor));
  return result;
}

WeightsFile open_sharded(std::string_view bytes, const std::string& path) {
  const StrictJson index = parse_json_object(bytes, path);
  const auto weight_map = index.root.find("weight_map");
  if (weight_map == index.root.end() || !weight_map->is_object() || weight_map->empty()) {
    bad_input(path, "has no weight_map, so it is no index of safetensors files");
  }
  std::map<std::string, std::set<std::string>> tensors_of;  // file -> tensors
  for (const auto& [name, shard] : weight_map->items()) {
    if (!shard.is_string()) bad_input(path, "weight_map: {} is not a file name", in_quotes(name));
    tensors_of[shard.get<std::string>()].insert(name);
  }

  WeightsFile result;
  result.path = path;
  std::size_t unlisted = 0;
  for (auto& [shard, missing] : tensors_of) {
    const std::string shard_file = shard_path(shard, path).string();
    auto file = std::make_shared<MappedFile>(shard_file);
    WeightsFile part = parse_safetensors(file->bytes(), shard_file);
    for (WeightsTensor& tensor : part.tensors) {
      if (missing.erase(tensor.name) == 0) {
        ++unlisted;
      } else {
        result.tensors.push_back(std::move(tensor));
      }
    }
    if (!missing.empty()) {
      bad_input(path, "weight_map says that {} is in {}, but it is not", in_quotes(*missing.begin()), in_quotes(shard));
    }
    std::move(part.geometry.begin(), part.geometry.end(), std::back_inserter(result.geometry));
    result.owners.push_back(std::move(file));
  }
  if (unlisted > 0) {
    result.notes.push_back(
        fmt::format("{}: {} tensors of its files are not in weight_map and are ignored", path, unlisted));
  }

  // Geometry in the index itself stands above that of the files.
  if (const auto metadata = index.root.find("metadata"); metadata != index.root.end() && metadata->is_object()) {
    if (const auto geometry = metadata->find(kGeometryKey); geometry != metadata->end()) {
      result.geometry = {{geometry->is_string() ? geometry->get<std::string>() : geometry->dump(),
                          path + ": metadata key 'geometry'"}};
    }
  }
  return result;
}

}  // namespace burin
