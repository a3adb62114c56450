// What `burin study` writes: a study as one JSON document (docs/study.md). The page only draws it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/study/study.h"

namespace burin {

// `notes`: what the reader should know as well.
nlohmann::ordered_json study_document(const Study& study, const std::vector<std::string>& notes);

}  // namespace burin
