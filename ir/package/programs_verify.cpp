// The rules of the programs in a package: what lets the runtime bind pointers and launch without looking further.
#include <map>
#include <set>

#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/limits.h"
#include "ir/package/manifest.h"
#include "ir/package/names.h"

namespace burin {
namespace {

class ProgramsVerifier {
 public:
  ProgramsVerifier(const Manifest& manifest, std::vector<std::string>& faults) : manifest_(manifest), faults_(faults) {
    for (const Kernel& kernel : manifest.kernels) kernels_.emplace(kernel.symbol, &kernel);
  }

  void run() {
    PlanCost all;
    for (const Program& program : manifest_.programs) all += cost_of(program);
    if (!all.is_allowed()) {
      fault("programs",
            "together they have {} pairs of a write and a use of the same buffer, and {} waits of a step for "
            "another; at most {} and {} are allowed (kMaxPlanPairs, kMaxPlanWaits)",
            all.pairs, all.waits, kMaxPlanPairs, kMaxPlanWaits);
      return;
    }
    std::set<std::string> ended;  // names whose programs have all been seen
    for (std::size_t i = 0; i < manifest_.programs.size(); ++i) {
      const Program& program = manifest_.programs[i];
      const std::string path = fmt::format("programs[{}]", i);
      const Program* const before = i == 0 ? nullptr : &manifest_.programs[i - 1];
      if (before != nullptr && before->name == program.name) {
        check_same(path, *before, program);
      } else {
        if (before != nullptr) ended.insert(before->name);
        if (ended.contains(program.name)) fault(path, "stands apart from the programs of its name");
      }
      check_program(path, program);
    }
  }

 private:
  template <typename... Args>
  void fault(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(path + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  // Programs of one name are the same computation for other batch sizes.
  void check_same(const std::string& path, const Program& a, const Program& b) {
    if (b.batch <= a.batch) fault(path, "batch {} follows {}", b.batch, a.batch);
    for (const BufferHome home : {BufferHome::input, BufferHome::output}) {
      const auto as = a.arguments(home), bs = b.arguments(home);
      const auto same = [](const Buffer* x, const Buffer* y) {
        return x->tensor == y->tensor && x->shape == y->shape && x->format == y->format &&
               x->map.has_value() == y->map.has_value();
      };
      if (std::ranges::equal(as, bs, same)) continue;
      fault(path, "its {}s are not those of the program before it, which has its name", to_string(home));
    }
  }

  void check_program(const std::string& path, const Program& program) {
    const std::vector<std::string> program_faults = verify(program);
    for (const std::string& text : program_faults) fault(path, "{}", text);
    if (!program_faults.empty()) return;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      const std::string at = fmt::format("{}: step {}", path, i);
      if (const auto kernel = kernels_.find(step.kernel); kernel != kernels_.end()) {
        check_kernel(at, program, step, kernel->second->form);
      } else {
        fault(at, "'{}' is no kernel of the package", printable(step.kernel));
      }
    }
  }

  // What a kernel reads or writes there is what lies there.
  void check_place(const std::string& path, const Program& program, const Place& place, const KernelTensor& tensor) {
    const Buffer& buffer = program.buffer(place);
    const std::string_view name = to_string(tensor.role);
    if (buffer.format != tensor.format() || buffer.map != tensor.map) {
      fault(path, "its {} lies in {}, and the kernel takes {}", name, buffer.format_text(),
            tensor.map ? fmt::format("map {}", print(*tensor.map)) : to_string(tensor.format()));
      return;
    }
    if (tensor.map) {
      if (buffer.shape != std::vector<std::int64_t>{tensor.channels, tensor.rows, tensor.cols}) {
        fault(path, "its {} is of another tensor than the kernel's", name);
      }
      return;
    }
    const Place wanted = {place.buffer,
                          place.offset,
                          tensor.image_words * tensor.word_bytes(),
                          tensor.run_words * tensor.word_bytes(),
                          tensor.runs,
                          tensor.run_pitch * tensor.word_bytes()};
    if (place != wanted) {
      fault(path, "its {} has images of {} x {} bytes, {} apart, and the kernel takes {} x {}, {} apart", name,
            place.runs, place.run_bytes, place.image_stride, wanted.runs, wanted.run_bytes, wanted.image_stride);
    }
    if (place.offset % tensor.alignment != 0) {
      fault(path, "its {} begins at byte {}, and the kernel takes multiples of {}", name, place.offset,
            tensor.alignment);
    }
  }

  void check_map(const std::string& path, const Program& program, const KernelForm& form, TensorRole role,
                 const std::optional<Place>& place) {
    if (!place) return;  // a launch may be without
    if (const KernelTensor* tensor = form.find(role)) {
      check_place(path, program, *place, *tensor);
    } else {
      fault(path, "it has an {}, and the kernel has none", to_string(role));
    }
  }

  void check_kernel(const std::string& path, const Program& program, const Step& step, const KernelForm& form) {
    std::set<int> read;
    for (const KernelTensor& tensor : form.tensors) {
      if (!tensor.exists()) continue;
      if (tensor.role == TensorRole::output) check_place(path, program, step.writes, tensor);
      if (!tensor.is_read()) continue;
      if (static_cast<std::size_t>(tensor.argument) < step.reads.size()) {
        check_place(path, program, step.reads[static_cast<std::size_t>(tensor.argument)], tensor);
      }
      read.insert(tensor.argument);
    }
    if (read.size() != step.reads.size() || *read.rbegin() + 1 != static_cast<int>(read.size())) {
      fault(path, "it reads {} tensors, and the kernel takes others", step.reads.size());
    }
    check_map(path, program, form, TensorRole::input_map, step.input_map);
    check_map(path, program, form, TensorRole::output_map, step.output_map);
  }

  const Manifest& manifest_;
  std::vector<std::string>& faults_;
  std::map<std::string, const Kernel*> kernels_;
};

}  // namespace

void check_programs(const Manifest& manifest, std::vector<std::string>& faults) {
  ProgramsVerifier(manifest, faults).run();
}

}  // namespace burin
