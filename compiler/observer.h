// The observer of one kernel's compilation: writes what each stage made, times it, says when to stop. It never changes
// what is compiled.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/numbered_names.h"

namespace burin {

class Observer {
 public:
  // No folder: nothing is written. The folder is made when the first file is.
  Observer(std::optional<std::string> folder, std::optional<std::string> stop_after);

  // Says that `stage` is complete. `text` makes its file `file_name`; it is called only when something is written.
  // Returns true when compilation stops here. `remark`, if there is one, is what the log says beside the file.
  bool observe(const std::string& stage, const std::string& file_name, const std::function<std::string()>& text,
               const std::function<std::string()>& remark = {});

 private:
  struct Entry {
    std::string stage;
    double milliseconds = 0;
    std::string remark;
  };
  void write(const std::string& file_name, const std::string& text) const;
  void write_log() const;

  std::optional<std::string> folder_;
  std::optional<std::string> stop_after_;
  std::chrono::steady_clock::time_point last_;
  std::string previous_text_;
  std::vector<Entry> entries_;
};

// A layer's name as the name of a folder.
std::string folder_name(const std::string& layer);

// The folders of a compilation's kernels: one for each operator, in the order in which they are asked for, and in it
// one for each batch size where there are several.
class DumpFolders {
 public:
  explicit DumpFolders(bool by_batch) : by_batch_(by_batch) {
    names_.suffix("network");  // where the graph's passes are dumped
  }
  // Relative to --dump-dir.
  std::string of(const std::string& op, int batch);

 private:
  bool by_batch_ = false;
  std::map<std::string, std::string> folders_;
  NumberedNames names_;
};

}  // namespace burin
