#include "compiler/measure/layer_times.h"

#include <cmath>

#include "compiler/dead_channels.h"
#include "compiler/reference.h"
#include "ir/baked_plan_activity.h"
#include "ir/element_type.h"
#include "ir/error.h"
#include "ir/saturate.h"

namespace burin {
namespace {

constexpr std::uint64_t kInputSeed = 1;  // times do not depend on the values
constexpr std::uint64_t kDeadSeed = 2, kZerosSeed = 3;

// Images of a kernel's input as they lie in its memory, each where the tensor says that it begins.
std::vector<float> in_memory(const KernelTensor& input, std::span<const float> nchw, int batch) {
  const std::vector<float> dense = input.is_image()
                                       ? from_nchw(input.layout, nchw, input.channels, input.rows, input.cols)
                                       : std::vector<float>(nchw.begin(), nchw.end());
  BURIN_CHECK(input.runs == 1, "an input of {} runs", input.runs);
  const auto groups = static_cast<std::size_t>(ceil_div(batch, images_together(input.layout)));
  const auto pitch = static_cast<std::size_t>(input.image_words * input.elements_per_word());
  const std::size_t image = dense.size() / groups;
  std::vector<float> memory((groups - 1) * pitch + image);
  for (std::size_t i = 0; i < groups; ++i) {
    std::copy_n(dense.begin() + static_cast<std::ptrdiff_t>(i * image), image,
                memory.begin() + static_cast<std::ptrdiff_t>(i * pitch));
  }
  return memory;
}

}  // namespace

// What the launches of a kernel read and write: inputs in turn, code in turn.
class LaunchSet {
 public:
  // The tensors of `like` are taken where they are such as are needed.
  LaunchSet(const Device& device, const std::vector<LoadedPackage>& copies, const Kernel& kernel, int batch,
            const LayerInput& input, int input_buffers, const LaunchSet* like = nullptr)
      : batch_(batch) {
    for (const LoadedPackage& copy : copies) kernels_.push_back(copy.kernel_by_symbol(kernel.symbol));
    if (like != nullptr && !input.dead && like->batch_ == batch && like->tensors_->are_of(kernel.form)) {
      tensors_ = like->tensors_;
    } else {
      tensors_ = make_tensors(device, kernel, input, input_buffers);
    }
    workspace_ = Workspace(device, first().workspace_size(batch));
  }

  const LoadedKernel& first() const { return kernels_.front(); }
  const LoadedKernel& copy(int turn) const { return kernels_[static_cast<std::size_t>(turn) % kernels_.size()]; }
  const Workspace& workspace() const { return workspace_; }
  double skipped() const { return skipped_; }
  LaunchIo io(int turn) const {
    return {.input = tensors_->inputs[static_cast<std::size_t>(turn) % tensors_->inputs.size()].data(),
            .output = tensors_->output.data(),
            .residual = tensors_->residual.data(),
            .batch = batch_,
            .input_activity = input_activity_.data(),
            .output_activity = output_activity_.data()};
  }

 private:
  struct Tensors {
    std::vector<KernelTensor> forms;
    std::vector<DeviceBuffer> inputs;
    DeviceBuffer output, residual;

    bool are_of(const KernelForm& form) const { return forms == forms_of(form); }
  };

  static std::vector<KernelTensor> forms_of(const KernelForm& form) {
    std::vector<KernelTensor> forms = {form.input(), form.output()};
    if (const KernelTensor* added = form.find(TensorRole::residual)) forms.push_back(*added);
    return forms;
  }

  std::shared_ptr<const Tensors> make_tensors(const Device& device, const Kernel& kernel, const LayerInput& input,
                                              int input_buffers) {
    auto made = std::make_shared<Tensors>();
    made->forms = forms_of(kernel.form);
    const KernelTensor& tensor = kernel.form.input();
    const std::vector<float> values =
        input.dead ? values_with_dead_blocks(device, kernel, *input.dead) : input_elements(tensor, batch_, input);
    const std::vector<float> words = pack_words(tensor.element, values);
    for (int i = 0; i < input_buffers; ++i) made->inputs.emplace_back(device, std::span<const float>(words));
    made->output = DeviceBuffer(device, static_cast<std::size_t>(first().output_shape().tensor_bytes(batch_)));
    if (const KernelTensor* added = kernel.form.find(TensorRole::residual)) {
      made->residual = DeviceBuffer(device, static_cast<std::size_t>(added->spanned_memory(batch_)) * kWordBytes);
      made->residual.fill(0);
    }
    return made;
  }

  std::vector<float> values_with_dead_blocks(const Device& device, const Kernel& kernel, double dead) {
    const ConvShape& shape = kernel.layer->shape;
    const KernelTensor* in_map = kernel.form.find(TensorRole::input_map);
    const KernelTensor* out_map = kernel.form.find(TensorRole::output_map);
    BURIN_CHECK(in_map != nullptr, "kernel {} has no activity map of its input", kernel.symbol);
    const ActivityExtent extent = input_extent(shape, batch_);
    std::vector<float> values = random_tensor(shape.input_elements() * batch_, kInputSeed);
    kill_channels(*in_map->map, extent, values, dead, kDeadSeed);
    const std::vector<std::uint8_t> activity = activity_of(*in_map->map, extent, values);
    if (out_map != nullptr) skipped_ = skipped_share(shape, batch_, *out_map->map, *in_map->map, activity);
    input_activity_ = DeviceBuffer(device, std::span<const std::uint8_t>(activity));
    if (const std::optional<ActivityShape> marked = first().output_activity()) {
      output_activity_ = DeviceBuffer(device, static_cast<std::size_t>(marked->bytes(batch_)));
    }
    return from_nchw(kernel.form.input().layout, values, shape.in_channels, shape.in_h, shape.in_w);
  }

  int batch_;
  double skipped_ = 0;
  std::vector<LoadedKernel> kernels_;  // copies of the code
  std::shared_ptr<const Tensors> tensors_;
  DeviceBuffer input_activity_, output_activity_;
  Workspace workspace_;
};

std::vector<float> input_elements(const KernelTensor& tensor, int batch, const LayerInput& input) {
  if (!input.values.empty()) return in_memory(tensor, input.values, batch);
  // Which of random values is where does not matter, but what fills up channels must be zero.
  if (!input.zeros && !fills_with_zeros(tensor.layout)) {
    return random_tensor(tensor.spanned_words(batch) * tensor.elements_per_word(), kInputSeed);
  }
  const std::int64_t image = std::int64_t{tensor.channels} * tensor.rows * tensor.cols;
  std::vector<float> values = random_tensor(image * batch, kInputSeed);
  if (input.zeros) set_zeros(*input.zeros, values, tensor.channels, tensor.rows, tensor.cols, kZerosSeed);
  return in_memory(tensor, values, batch);
}

Bench::Bench(const Device& device, const Package& package, const BenchOptions& options)
    : device_(device), options_(options), stream_(device) {
  const std::shared_ptr<const Package> shared(std::shared_ptr<void>(), &package);  // not an owner
  for (int i = 0; i < options.copies; ++i) {
    copies_.emplace_back(device_, shared, package.manifest.source, options.load);
  }
}

KernelTimes Bench::time(const Kernel& record, int batch, const LayerInput& input) const {
  const LaunchSet set(device_, copies_, record, batch, input, kInputBuffers);
  const auto launch = [&](CUstream_st* stream, const LoadedKernel& kernel, int turn) {
    kernel.launch(stream, set.io(turn), set.workspace());
  };
  KernelTimes times;
  times.skipped = set.skipped();
  times.warm =
      measure(device_, stream_, [&](CUstream_st* stream, int i) { launch(stream, set.first(), i); }, measure_options());
  times.chained = time_in_chain(record, batch, input);
  times.cold =
      measure(device_, stream_, [&](CUstream_st* stream, int i) { launch(stream, set.copy(i), i); }, measure_options());
  const std::string call = set.first().library_call(batch);
  times.loaded_from = !call.empty()                                    ? call
                      : set.first().loaded_from() == LoadedFrom::cubin ? set.first().loaded_arch() + " cubin"
                                                                       : "JIT of the PTX";
  return times;
}

Measurement Bench::time_in_chain(const Kernel& record, int batch, const LayerInput& input) const {
  return chain(record, batch, input).measure();
}

Bench::Chain Bench::chain(const Kernel& record, int batch, const LayerInput& input, const Chain* like) const {
  Chain chain;
  chain.bench_ = this;
  chain.launches_ = std::make_shared<const LaunchSet>(device_, copies_, record, batch, input, 1,
                                                      like != nullptr ? like->launches_.get() : nullptr);
  return chain;
}

Measurement Bench::Chain::measure() const {
  const LaunchSet& set = *launches_;
  return measure_chain(
      bench_->device_, bench_->stream_, [&](int i) { return set.copy(i).prepared(set.io(i), set.workspace().view()); },
      bench_->measure_options());
}

std::int64_t Bench::workspace_bytes(const Kernel& record, int batch) const {
  return copies_.front().kernel_by_symbol(record.symbol).workspace_bytes(batch);
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace burin
