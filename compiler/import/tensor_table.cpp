#include "compiler/import/tensor_table.h"

#include <string_view>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"

namespace burin {
namespace {

constexpr std::string_view kOrig = "_orig";
constexpr std::string_view kMask = "_mask";

// X of a name X + ending, or nothing.
std::string stem_of(const std::string& name, std::string_view ending) {
  if (!name.ends_with(ending) || name.size() == ending.size()) return {};
  return name.substr(0, name.size() - ending.size());
}

}  // namespace

TensorTable::TensorTable(const WeightsFile& file) {
  std::map<std::string, const WeightsTensor*> by_name;
  for (const WeightsTensor& tensor : file.tensors) {
    if (tensor.name.empty()) bad_input(tensor.file, "a tensor without a name");
    if (!by_name.emplace(tensor.name, &tensor).second) {
      bad_input(tensor.file, "tensor {} appears twice", in_quotes(tensor.name));
    }
  }
  const auto other = [&](const std::string& name) {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  };
  for (const WeightsTensor& tensor : file.tensors) {
    Row row{tensor.name, &tensor};
    if (const std::string stem = stem_of(tensor.name, kMask);
        !stem.empty() && other(stem + std::string(kOrig)) != nullptr) {
      continue;  // joined where its other half stands
    }
    if (const std::string stem = stem_of(tensor.name, kOrig); !stem.empty()) {
      if (const WeightsTensor* mask = other(stem + std::string(kMask))) {
        if (mask->shape != tensor.shape) {
          bad_input(tensor.file, "tensor {} has the shape {}, but its mask {} has {}", in_quotes(tensor.name),
                    extents_text(tensor.shape), in_quotes(mask->name), extents_text(mask->shape));
        }
        if (other(stem) != nullptr) {
          bad_input(tensor.file, "tensor {} stands beside the pruning pair {} and {}; only one of them can count",
                    in_quotes(stem), in_quotes(tensor.name), in_quotes(mask->name));
        }
        row.name = stem;
        row.mask = mask;
      }
    }
    index_.emplace(row.name, rows_.size());
    rows_.push_back(std::move(row));
  }
}

TensorTable::Row* TensorTable::find(const std::string& name) {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &rows_[found->second];
}

std::vector<std::string> TensorTable::names() const {
  std::vector<std::string> names;
  for (const Row& row : rows_) names.push_back(row.name);
  return names;
}

std::vector<float> TensorTable::values(const Row& row) {
  std::vector<float> values = float_values(*row.values);
  if (row.mask == nullptr) return values;
  const std::vector<float> mask = mask_values(*row.mask);
  // A masked weight is gone, whatever was left in it.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = mask[i] == 0 ? 0 : values[i] * mask[i];
  return values;
}

TensorTable::Leftover TensorTable::leftover() const {
  Leftover result;
  for (const Row& row : rows_) {
    if (row.used) continue;
    if (is_float(row.values->type)) {
      result.tensors.push_back({row.name, row.values->shape, values(row)});
    } else {
      result.not_float.push_back(row.name);
    }
  }
  return result;
}

}  // namespace burin
