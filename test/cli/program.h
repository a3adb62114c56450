// Runs the built tool and says what it printed and how it ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "test/scratch_folder.h"

namespace burin_test {

struct Outcome {
  int exit_code = -1;  // 128 + signal where a signal ended it
  std::string out, err;
};

// Runs `burin ARGUMENTS` in `folder` with empty standard input. Each of `environment` is NAME=VALUE.
Outcome run_burin(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                  const std::filesystem::path& folder = ".");

// The same where no CUDA driver finds a device.
Outcome run_burin_without_gpu(const std::vector<std::string>& arguments);

// Runs another program, found on PATH.
Outcome run_program(const std::vector<std::string>& command_line, const std::vector<std::string>& environment = {},
                    const std::filesystem::path& folder = ".");

}  // namespace burin_test
