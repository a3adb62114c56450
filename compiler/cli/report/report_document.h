// What `burin report` shows, as one JSON document: what the manifest says, with times from `bench --json` where they
// are given. The page only draws it (page.h).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/bench_figures.h"
#include "ir/package/package.h"

namespace burin {

struct ReportOptions {
  std::string package;              // its path
  std::optional<std::string> arch;  // the machine code that is described; default: the first
  std::optional<std::string> dump_dir;
  std::string beside = ".";  // the folder that links to dumps start from
};

// `notes`: what the reader of the report should know as well. Throws Error(bad_input) where no file in the folder of
// dumps belongs to the package.
nlohmann::ordered_json report_document(const Package& package, const BenchFigures& bench, const ReportOptions& options,
                                       std::vector<std::string>& notes);

}  // namespace burin
