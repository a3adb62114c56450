// What the cases of a run had in them, and how they came out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "test/codegen/random_case.h"
#include "test/gpu/case_runner.h"

namespace burin_test {

class Tally {
 public:
  void add(const RandomCase& drawn, const CaseOutcome& outcome);

  int cases() const { return right_ + unsupported_ + wrong_; }
  int right() const { return right_; }
  int wrong() const { return wrong_; }
  // Several lines: counts, the worst element, features of the cases that were right, why others were not supported.
  std::string print() const;

 private:
  void count_features(const RandomCase& drawn, const CaseOutcome& outcome);

  struct Reason {
    int cases = 0;
    std::string example;
  };

  int right_ = 0, unsupported_ = 0, wrong_ = 0;
  struct Worst {
    double ratio = 0;
    std::string of;
  };
  std::map<burin::Precision, Worst> worst_;                     // errors against their tolerances
  std::map<std::string, std::map<std::string, int>> features_;  // by heading
  std::map<std::string, Reason> reasons_;                       // by text without its numbers
};

}  // namespace burin_test
