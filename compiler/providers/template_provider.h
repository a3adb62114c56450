// What the providers share whose kernels are templates with constants filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/launch_time.h"
#include "compiler/providers/provider.h"
#include "ir/arch.h"
#include "ir/template_plan.h"

namespace burin {

inline constexpr int kVectorWords = 4;
inline constexpr int kBlockThreads = 256;

std::int64_t round_up(std::int64_t value, std::int64_t multiple);

// A template's plans leave some choices open: constants such as the rows that a thread has, or a part of the launch.
// All else follows from the task. plan_as() rebuilds the whole plan from the task and the choices that it finds in
// another plan: so what a person has edited is legal where it is the same as its rebuilt form, and nothing is checked
// twice.
class TemplateProvider : public Provider {
 public:
  using Provider::Provider;

  bool can_do(const Task& task) const final;
  void check_choices(const std::string& plan) const override;
  std::vector<Candidate> propose(const Task& task, const ProposeOptions& options) const final;
  std::string brief(const std::string& plan) const override;
  // Its choices, for the task's tensors.
  std::string placed(const std::string& plan, const Task& task) const override {
    return print(plan_as(task, parse_template_plan(plan)));
  }
  std::vector<double> launch_us(const Task& task, const std::string& plan,
                                const std::vector<int>& batches) const override;
  SpecialisedModule module_of(const Kernel& kernel, const ConvLayer* layer) const override;
  Recipe make(const Task& task, const std::string& plan) const override;

 protected:
  // Whether it can do the task, whose tensors are float32 in nchw unless it knows_formats(), none in nchw8 unless it
  // knows_places(), and whose pool does not filter unless it knows_filters().
  virtual bool can(const Task& task) const = 0;
  // Whether it knows tensors of other element types and layouts; can() says which.
  virtual bool knows_formats() const { return false; }
  virtual bool knows_places() const { return false; }
  // Whether it knows convolutions whose pool filters.
  virtual bool knows_filters() const { return false; }
  // Candidates for a task that it takes, the best first; what options.plan says does not count.
  virtual std::vector<Candidate> search(const Task& task, const ProposeOptions& options) const = 0;
  // The names of its choices: constants of the template, "threads", "images" of a block or "cluster", the blocks of
  // one.
  virtual std::vector<std::string> choices() const { return {}; }
  // What one launch takes.
  virtual double predict_us(const Task& task, const TemplatePlan& plan) const = 0;
  // The task's plan with the choices of `chosen`, whose constants are all there and within their ranges.
  virtual TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const = 0;
  // The weights as the kernel reads them, `plan.weights().run_words` of them.
  virtual std::vector<std::uint32_t> pack(const Task&, const TemplatePlan&) const { return {}; }
  // What it multiplies on tensor cores, where that is counted.
  virtual std::optional<MultipliedColumns> multiplied(const Task&, const TemplatePlan&) const { return std::nullopt; }

  // That of a package's kernel. Throws Error(bad_input) where constants are missing or out of range.
  TemplatePlan usable_plan(const Kernel& kernel) const;

  // Name, arch and tensors.
  TemplatePlan start(const Task& task) const;
  Candidate candidate(const Task& task, const TemplatePlan& plan) const;

 private:
  std::vector<Candidate> with_choices(const Task& task, const ProposeOptions& options) const;
};

// An operator for which the best choices are known at once.
class PlainProvider : public TemplateProvider {
 public:
  using TemplateProvider::TemplateProvider;

 protected:
  std::vector<Candidate> search(const Task& task, const ProposeOptions&) const override {
    return {candidate(task, plan(task, nullptr))};
  }
  TemplatePlan plan_as(const Task& task, const TemplatePlan& chosen) const final { return plan(task, &chosen); }
  double predict_us(const Task& task, const TemplatePlan& plan) const override;
  // By default a kernel does nothing but move its tensors.
  virtual LaunchWork work_of(const Task& task, const TemplatePlan& plan) const;
  // With the choices of `chosen`; where it is null, with the best.
  virtual TemplatePlan plan(const Task& task, const TemplatePlan* chosen) const = 0;
};

const ArchSpec& arch_of(const Task& task);

// Whether it is a convolution in FP32 without activity maps.
bool is_plain_convolution(const Task& task);
// Whether what it reads and writes is all in one format, and words hold one element of one image, or of two in halves.
bool has_one_format(const Task& task);
// Whether it is the mean of each whole channel, as GlobalAveragePool or as a pool of that size.
bool averages_image(const Task& task);

// Whether four words may be accessed at once; and to say that they are not.
bool is_wide(const KernelTensor& tensor);
void set_narrow(TemplatePlan& plan);
// Words that a kernel reads of one element, or writes.
std::int64_t place_words(const Task& task);
// Channels of what it writes, those included that fill up the last of as many as lie side by side; where a place has
// eight of them, places.
std::int64_t stored_channels(const Task& task);
// Channels as places count them.
std::int64_t place_count(TensorLayout layout, std::int64_t channels);
// A block has all images that lie side by side.
void set_word_images(TemplatePlan& plan);

// The constants of templates/kernels/function.def.
void set_function(TemplatePlan& plan, const Elementwise& function);
void set_function(TemplatePlan& plan, const std::optional<Elementwise>& function);
void set_no_function(TemplatePlan& plan);

void set_integers(TemplatePlan& plan, std::initializer_list<std::pair<const char*, std::int64_t>> values);

// A thread of the kernel has "steps" pieces of one or four words, those of `chosen` or, where it is null, as many as
// keep all multiprocessors full: sets them, "vector", threads and blocks. Four words are taken at once where `vectors`
// says that they may and `elements`, input and output allow it. Tensors that are then not accessed by fours are said to
// need no alignment.
void set_pieces(TemplatePlan& plan, const Task& task, std::int64_t elements, bool vectors, const TemplatePlan* chosen);
int choose_steps(const Task& task, std::int64_t elements, bool vectors);

// A block of kBlockThreads, or as many as are needed, for each so many of `items`.
void set_items(TemplatePlan& plan, std::int64_t items);

// The constants of a convolution that say what is computed: sizes, filter, stride, dilation, padding, whether there is
// a residual; and its activation.
void set_convolution(TemplatePlan& plan, const ConvShape& shape);
// The constants of templates/kernels/pool_window.def.
void set_pool(TemplatePlan& plan, const ConvShape& shape);
// Those of templates/kernels/pool_filter.def.
void set_pool_filter(TemplatePlan& plan, const ConvShape& shape);

// Counts all tensors that the task reads and writes, for its batch.
double activation_bytes(const Task& task);

// Two values of a half type in a word, the first in its low half.
std::uint32_t half_word(ElementType type, float first, float second);
void append_words(std::vector<std::uint32_t>& words, std::span<const float> values);

}  // namespace burin
