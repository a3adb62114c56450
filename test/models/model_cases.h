// The operators on which the cost models are fitted and judged, and what was measured of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "test/providers/provider_cases.h"

namespace burin_test {

struct ModelCase {
  OperatorCase edge;
  bool fitted = false;  // constants of the models were chosen by its times; else it tells how far they carry
};

std::vector<ModelCase> model_cases();

// What a convolution is computed in, and how its tensors lie.
struct ModelForm {
  burin::Precision precision = burin::Precision::fp32;
  burin::TensorLayout layout = burin::TensorLayout::nchw;
  bool is_plain() const { return *this == ModelForm(); }
  auto operator<=>(const ModelForm&) const = default;
};
std::string to_string(const ModelForm& form);  // "fp16:nchw8"
// The plain one first, in which every case is measured; convolutions are measured in all of them.
std::vector<ModelForm> model_forms();
// Whether so many images fill up what lies side by side.
bool suits(const ModelForm& form, int batch);

// The last operator of the case's network in a form; only convolutions have others than the plain one. The network must
// outlive it.
burin::Task task_in_form(const burin::Network& network, const ModelForm& form, int batch, const std::string& arch);

// A line of times.tsv: what burin_model_times measured of one kernel.
struct MeasuredTime {
  std::string op;  // the name of a case
  ModelForm form;
  int batch = 1;
  std::string provider;
  std::string plan;  // Provider::brief()
  double us = 0;
};

inline constexpr std::string_view kTimesHeader = "case\tform\tbatch\tprovider\tplan\tus";

// Throws Error(usage) for what is no form.
ModelForm parse_form(std::string_view text);

std::string print(const MeasuredTime& time);
// The lines behind the header; lines that begin with # are skipped. Throws Error(bad_input).
std::vector<MeasuredTime> parse_times(std::string_view text);

}  // namespace burin_test
