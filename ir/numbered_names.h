// NumberedNames: gives out names, each once, in a time that does not grow with how many are alike.
#pragma once

#include <map>
#include <set>
#include <string>

namespace burin {

class NumberedNames {
 public:
  // "conv" the first time it is asked for, then "conv_2", "conv_3": what has not been given out.
  std::string give(const std::string& wanted) { return wanted + suffix(wanted); }
  bool has(const std::string& name) const { return given_.contains(name); }  // has been given out
  // What give() puts behind the name; empty where it was free.
  std::string suffix(const std::string& wanted);

 private:
  std::set<std::string> given_;
  std::map<std::string, int> last_number_;  // behind names that were asked for
};

}  // namespace burin
