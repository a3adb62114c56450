// CallProvider: what providers of library calls have in common. A kernel of theirs has a call of a library beside code
// of another provider, the best of those whose weights are data, which runs where the library does not.
#pragma once

#include <string>
#include <vector>

#include "compiler/providers/provider.h"
#include "ir/call_providers.h"
#include "ir/library_call.h"

namespace burin {

class CallProvider : public Provider {
 public:
  // `name`: one whose library library_of() knows.
  explicit CallProvider(std::string_view name) : Provider(name), library_(*library_of(name)) {}

  std::optional<Library> library() const final { return library_; }
  bool needs_measuring() const final { return true; }
  bool is_dense() const final { return true; }
  bool can_do(const Task& task) const final;
  void check_choices(const std::string& plan) const final;
  std::vector<Candidate> propose(const Task& task, const ProposeOptions& options) const final;
  std::string brief(const std::string& plan) const final;
  std::string placed(const std::string& plan, const Task& task) const final;
  SpecialisedModule module_of(const Kernel& kernel, const ConvLayer* layer) const final;
  Recipe make(const Task& task, const std::string& plan) const final;

 protected:
  // Whether it is of the kind that the library is called for; what can_call() says of a layer, and can_call_on() of
  // tensors, comes on top.
  virtual bool is_for(const Task& task) const = 0;
  // All that the library has. Where nothing is measured the first is taken that may serve.
  virtual std::vector<CallAlgorithm> algorithms() const = 0;
  // Whether the library's documentation says that the algorithm computes such a layer. What it refuses besides,
  // measuring shows.
  virtual bool may_serve(const CallAlgorithm&, const ConvShape&) const { return true; }
  virtual bool may_serve(const CallAlgorithm&, const TensorFormat&, FactorType) const { return true; }

 private:
  Library library_;
};

// Those of cuBLASLt, in the order of its proposals.
std::vector<CallAlgorithm> product_algorithms();

// Whether it is a convolution whose sums are FP32, without activity maps.
bool is_called_convolution(const Task& task);

}  // namespace burin
