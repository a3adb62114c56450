// A study as text: a table for each axis, each map, and the rules.
#pragma once

#include <string>

#include "compiler/study/study.h"

namespace burin {

std::string study_tables(const Study& study);

}  // namespace burin
