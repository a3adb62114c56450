#include "compiler/cli/tensor_files.h"

#include <algorithm>
#include <filesystem>

#include "compiler/import/names.h"
#include "ir/error.h"

namespace burin {
namespace {

// NAME=FILE where NAME is not the input's: FILE is there, and there is no file of the whole name.
bool is_misnamed(const TensorOption& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  return option.tensor == "input" && equals != std::string::npos && !std::filesystem::exists(text) &&
         std::filesystem::exists(text.substr(equals + 1));
}

}  // namespace

std::vector<std::string> files_of(const TensorOption& option, const std::vector<std::string>& given,
                                  const std::vector<std::string>& names, const std::string& what) {
  std::vector<std::string> files(names.size());
  for (const std::string& text : given) {
    // Names may hold a '=' themselves, and so may files.
    const auto is_named = [&](const std::string& name) { return text.starts_with(name + "="); };
    const auto found = std::ranges::find_if(names, is_named);
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (found == names.end() && names.size() == 1 && given.size() == 1 && !is_misnamed(option, text)) {
      files.front() = text;
    } else if (found == names.end()) {
      const std::string name = text.substr(0, text.find('='));
      fail(ErrorKind::usage, "{} {}: {} has no {} '{}'{}; give NAME=FILE for each of {}", option.name, text, what,
           option.tensor, name, did_you_mean(name, names), listed(nearest_first(name, names)));
    } else if (!files[index].empty()) {
      fail(ErrorKind::usage, "{} {}: '{}' is given twice", option.name, text, names[index]);
    } else {
      files[index] = text.substr(names[index].size() + 1);
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].empty()) continue;
    fail(ErrorKind::usage, "no file is given for the {} '{}' of {}: {} {}", option.tensor, names[i], what, option.name,
         names.size() == 1 ? "FILE" : names[i] + "=FILE");
  }
  return files;
}

}  // namespace burin
