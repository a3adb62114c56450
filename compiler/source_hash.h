// Hashes of what a kernel is made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/task.h"

namespace burin {

// SHA-256 in hexadecimal of tool version, task with its weights and biases, plan and `edited` (a stage file that was
// fed back).
std::string source_hash(const Task& task, const std::string& plan, const std::string& edited);

// The same of the task alone: what it computes, its weights, where its tensors lie, what it is to be fast for.
std::string task_hash(const Task& task);

// SHA-256 in hexadecimal of the parts, which cannot run into each other.
std::string content_hash(const std::vector<std::string_view>& parts);

}  // namespace burin
