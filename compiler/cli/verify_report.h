// What burin verify says, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/functions/user_operators.h"
#include "compiler/verify/verification.h"

namespace burin {

// The tolerances, a table of the outputs, of networks one of the steps that were looked at, and the verdict.
std::string verification_text(const Verification& verification, const Manifest& manifest);

// What operators of a user's are compared with, a line for each.
std::string references_text(const UserOperators& operators);
nlohmann::ordered_json references_json(const UserOperators& operators);

// What came of the package's code; null: it was not asked for.
nlohmann::ordered_json code_json(const Verification& verification);

// A row for each program that was run.
nlohmann::ordered_json verification_json(const Verification& verification);

}  // namespace burin
