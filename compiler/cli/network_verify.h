// burin verify of a package that holds a whole network: what is printed, as text or JSON.
#pragma once

#include <string>

#include "compiler/verify/network_verification.h"

namespace burin {

struct NetworkVerifyArguments {
  std::string package, model;
  std::string device = "auto";
  int jobs = 0;
  bool json = false;
  NetworkVerifyOptions options;
};

// Prints, and throws Error(verification) where the package does not compute what the model says.
int verify_network_package(const NetworkVerifyArguments& arguments, const Package& package);

}  // namespace burin
