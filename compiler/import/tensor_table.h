// The tensors of a weights file by name, with pruning pairs joined, and a record of which ones have been used.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/import/weights_tensor.h"
#include "ir/network.h"

namespace burin {

class TensorTable {
 public:
  struct Row {
    std::string name;
    const WeightsTensor* values = nullptr;
    const WeightsTensor* mask = nullptr;  // of a pruning pair
    bool used = false;
  };

  // Joins X_orig and X_mask (PyTorch's pruning) to X. `file` must outlive the table. Throws Error(bad_input) for a pair
  // whose shapes differ, and for a pair beside a plain X.
  explicit TensorTable(const WeightsFile& file);

  // Null when there is none. The row stays where it is.
  Row* find(const std::string& name);
  const std::vector<Row>& rows() const { return rows_; }  // in the order of the file
  std::vector<std::string> names() const;

  // Values of a row, masked, as float32.
  static std::vector<float> values(const Row& row);

  // What is not used: floating-point tensors with their values, and the names of the others.
  struct Leftover {
    std::vector<NamedTensor> tensors;
    std::vector<std::string> not_float;
  };
  Leftover leftover() const;

 private:
  std::vector<Row> rows_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace burin
