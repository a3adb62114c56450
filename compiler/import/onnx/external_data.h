// Tensors that lie in files of their own beside the model.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/import/mapped_file.h"

namespace burin {

// Where a tensor says that its bytes are, as the model spells it. Nothing of it has been checked.
struct ExternalPlace {
  std::string location, offset, length;  // offset and length may be empty
};

class ExternalData {
 public:
  explicit ExternalData(const std::string& model_path);

  // The `needed` bytes at the place. Only files in the model's folder or below it are opened, links followed. Throws
  // Error(bad_input) whose text starts with `at`.
  std::string_view bytes(const ExternalPlace& place, std::int64_t needed, const std::string& at);

 private:
  std::string_view file(const std::string& location, const std::string& at);

  std::filesystem::path folder_;
  std::map<std::string, std::unique_ptr<MappedFile>> files_;  // by location
};

}  // namespace burin
