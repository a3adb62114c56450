// burin run of a package that holds a whole network: inputs from files, outputs into files.
#pragma once

#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

struct NetworkRunArguments {
  std::string package;
  std::vector<std::string> inputs, outputs;  // FILE where there is one, else NAME=FILE for each
  std::string device = "auto";
};

// Any number of images: the package's program for the next larger batch size runs, or its largest several times.
int run_network_package(const NetworkRunArguments& arguments, const Package& package);

}  // namespace burin
