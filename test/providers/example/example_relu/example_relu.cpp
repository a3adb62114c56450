// What is below zero becomes zero: the example of docs/hacking.md.
#include "compiler/providers/template_provider.h"
#include "ir/saturate.h"

namespace burin {
namespace {

class ExampleReluProvider : public PlainProvider {
 public:
  ExampleReluProvider() : PlainProvider("example_relu") {}

 protected:
  bool can(const Task& task) const override {
    const Elementwise* op = task.get<Elementwise>();
    return op != nullptr && op->function == ElementFunction::relu;
  }
  std::vector<std::string> choices() const override { return {"words"}; }
  TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const override {
    const int words = chosen ? chosen->integers.at("words") : choose_steps(task, values_of(task.output), false);
    TemplatePlan plan = start(task);  // its name, architecture and tensors
    set_narrow(plan);                 // no four words are accessed at once
    set_integers(plan, {{"elements", values_of(task.output)}, {"words", words}});
    set_items(plan, ceil_div(values_of(task.output), words));  // threads and blocks
    return plan;
  }
};

}  // namespace

const Provider& example_relu_provider() { return the_only<ExampleReluProvider>(); }

}  // namespace burin
