#include "runtime/library/cublaslt_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/error.h"
#include "ir/library_call.h"

namespace burin {
namespace {

constexpr std::uint32_t kOwnAlignment = 256;  // bytes: of memory that the driver gives
constexpr int kProposals = static_cast<int>(names_of(ProductAlgorithm{}).names.size());

// One of cuBLASLt's descriptors, destroyed with it.
class CublasltDescriptor {
 public:
  using Destroy = CublasltStatus (*)(CublasltObject);
  using Set = CublasltStatus (*)(CublasltObject, int, const void*, std::size_t);

  // `create` fills in the object. `what`: the functions' names without their last words.
  template <typename Create>
  CublasltDescriptor(const CublasltTable& table, const char* what, const Create& create, Destroy destroy, Set set)
      : table_(table), what_(what), destroy_(destroy), set_(set) {
    check_cublaslt(table_, create(&object_), fmt::format("{}Create", what_));
  }
  ~CublasltDescriptor() { destroy_(object_); }
  CublasltDescriptor(const CublasltDescriptor&) = delete;
  CublasltDescriptor& operator=(const CublasltDescriptor&) = delete;
  operator CublasltObject() const { return object_; }

  // The size of a value is part of what cuBLASLt checks.
  template <typename Value>
  void set(int attribute, const Value& value) const {
    check_cublaslt(table_, set_(object_, attribute, &value, sizeof value), fmt::format("{}SetAttribute", what_),
                   fmt::format("attribute {}", attribute));
  }

 private:
  const CublasltTable& table_;
  const char* what_;
  CublasltObject object_ = nullptr;
  Destroy destroy_;
  Set set_;
};

int matrix_type(ElementType element) {
  return element == ElementType::f32 ? kCublasltFloat : element == ElementType::f16 ? kCublasltHalf : kCublasltBfloat16;
}

class MatrixDescriptor : public CublasltDescriptor {
 public:
  MatrixDescriptor(const CublasltTable& table, const CublasltMatrix& matrix, int products, ElementType element)
      : CublasltDescriptor(
            table, "cublasLtMatrixLayout",
            [&](CublasltObject* object) {
              return table.create_matrix(object, matrix_type(element), static_cast<std::uint64_t>(matrix.rows),
                                         static_cast<std::uint64_t>(matrix.cols), matrix.column_pitch);
            },
            table.destroy_matrix, table.set_matrix) {
    if (products == 1) return;
    set(kCublasltBatchCount, std::int32_t{products});
    set(kCublasltBatchStride, std::int64_t{matrix.batch_stride});
  }
};

class ProductDescriptor : public CublasltDescriptor {
 public:
  ProductDescriptor(const CublasltTable& table, const CublasltProblem& problem, FactorType factors, const void* bias)
      : CublasltDescriptor(
            table, "cublasLtMatmulDesc",
            [&](CublasltObject* object) {
              const CublasltCompute compute =
                  factors == FactorType::tf32 ? CublasltCompute::tf32 : CublasltCompute::fp32;
              return table.create_product(object, static_cast<int>(compute), kCublasltFloat);
            },
            table.destroy_product, table.set_product) {
    if (problem.a_is_weights) set(kCublasltTransposeA, kCublasltTransposed);
    const std::uint32_t end = (problem.relu ? kCublasltRelu : 0) | (problem.adds_bias ? kCublasltAddBias : 0);
    set(kCublasltEpilogue, end == 0 ? kCublasltPlain : end);
    // Proposals hang on how the address is aligned.
    if (problem.adds_bias) set(kCublasltBiasPointer, bias);
  }
};

class PreferenceDescriptor : public CublasltDescriptor {
 public:
  PreferenceDescriptor(const CublasltTable& table, const CublasltProblem& problem, const LibraryCall& call)
      : CublasltDescriptor(table, "cublasLtMatmulPreference", table.create_preference, table.destroy_preference,
                           table.set_preference) {
    set(kCublasltMaxWorkspace, static_cast<std::uint64_t>(call.workspace_limit));
    const auto tensors = static_cast<std::uint32_t>(call.alignment);
    set(kCublasltAlignmentA, problem.a_is_weights ? kOwnAlignment : tensors);
    set(kCublasltAlignmentB, problem.a_is_weights ? tensors : kOwnAlignment);
    set(kCublasltAlignmentC, problem.added == CublasltProblem::Added::bias ? kOwnAlignment : tensors);
    set(kCublasltAlignmentD, tensors);
  }
};

class CublasltLaunch : public LibraryLaunch {
 public:
  CublasltLaunch(std::shared_ptr<const CublasltHandle> handle, const Kernel& kernel, const CallWeights& weights,
                 int batch)
      : handle_(std::move(handle)),
        algorithm_(std::get<ProductAlgorithm>(kernel.call->algorithm)),
        format_(called_format(kernel.form)),
        problem_(product_of(filled_shape(kernel.called_shape(), format_), batch,
                            {.input = image_pitch(kernel.form, TensorRole::input),
                             .residual = image_pitch(kernel.form, TensorRole::residual),
                             .output = image_pitch(kernel.form, TensorRole::output)},
                            format_)),
        weights_(weights),
        product_(table(), problem_, kernel.call->factors, weights.bias),
        a_(matrix(problem_.a)),
        b_(matrix(problem_.b)),
        c_(matrix(problem_.c)),
        d_(matrix(problem_.d)) {
    choose(*kernel.call);
  }

  std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(chosen_.workspace_bytes); }

  void enqueue(CUstream_st* stream, const CallPointers& pointers) const override {
    constexpr float kOne = 1, kZero = 0;
    const bool adds = problem_.added != CublasltProblem::Added::nothing;
    const void* a = problem_.a_is_weights ? weights_.weights : pointers.input;
    const void* b = problem_.a_is_weights ? pointers.input : weights_.weights;
    // Times zero it is not read.
    const void* c = !adds                                                ? pointers.output
                    : problem_.added == CublasltProblem::Added::residual ? pointers.residual
                                                                         : weights_.bias;
    const CublasltStatus status = handle_->with_handle([&](CublasltObject handle) {
      return table().multiply(handle, product_, &kOne, a, a_, b, b_, adds ? &kOne : &kZero, c, c_, pointers.output, d_,
                              &chosen_.algorithm, pointers.workspace, chosen_.workspace_bytes, stream);
    });
    check_cublaslt(table(), status, "cublasLtMatmul");
  }

  std::string what() const override {
    return fmt::format("cuBLASLt {} {}", handle_->version(), upper_case(to_string(algorithm_)));
  }

 private:
  const CublasltTable& table() const { return handle_->table(); }
  MatrixDescriptor matrix(const CublasltMatrix& of) const { return {table(), of, problem_.products, format_.element}; }

  void choose(const LibraryCall& call) {
    const PreferenceDescriptor preference(table(), problem_, call);
    std::array<CublasltProposal, kProposals> proposals{};
    int count = 0;
    const CublasltStatus status = handle_->with_handle([&](CublasltObject handle) {
      return table().propose(handle, product_, a_, b_, c_, d_, preference, kProposals, proposals.data(), &count);
    });
    check_cublaslt(table(), status, "cublasLtMatmulAlgoGetHeuristic");
    const auto wanted = static_cast<std::size_t>(algorithm_);
    if (count <= static_cast<int>(wanted)) {
      fail(ErrorKind::device, "cublasLtMatmulAlgoGetHeuristic proposes {} algorithm{}", std::max(count, 0),
           count == 1 ? "" : "s");
    }
    chosen_ = proposals[wanted];
    check_cublaslt(table(), chosen_.state, "cublasLtMatmulAlgoGetHeuristic", "of this proposal");
    if (chosen_.workspace_bytes > static_cast<std::size_t>(call.workspace_limit)) {
      fail(ErrorKind::device, "it wants {} bytes of scratch memory, and its plan allows {}", chosen_.workspace_bytes,
           call.workspace_limit);
    }
  }

  std::shared_ptr<const CublasltHandle> handle_;
  ProductAlgorithm algorithm_;
  TensorFormat format_;
  CublasltProblem problem_;
  CallWeights weights_;
  ProductDescriptor product_;
  MatrixDescriptor a_, b_, c_, d_;
  CublasltProposal chosen_{};
};

}  // namespace

// ---- handles

CublasltHandle::CublasltHandle(const DeviceState& device, const std::vector<std::string>& candidates)
    : device_(device), library_(candidates) {
  const ContextScope scope(device_);
  check_cublaslt(table(), table().create(&handle_), "cublasLtCreate",
                 fmt::format("cuBLASLt {} from {} on {}", library_.version(), library_.path(), device_.info.name));
}

CublasltHandle::~CublasltHandle() {
  release_in_context(device_, [&](const DriverTable&) { table().destroy(handle_); });
}

std::shared_ptr<const LibraryLaunch> CublasltHandle::launch(const Kernel& kernel, const CallWeights& weights,
                                                            int batch) const {
  return std::make_shared<const CublasltLaunch>(shared_from_this(), kernel, weights, batch);
}

// ---- products

CublasltProblem product_of(const ConvShape& shape, int batch, const ImagePitches& pitches, const TensorFormat& format) {
  const std::int64_t inputs = shape.in_channels, outputs = shape.out_channels;
  const std::int64_t pixels = std::int64_t{shape.in_h} * shape.in_w;
  const Epilogue& epilogue = shape.epilogue;
  CublasltProblem problem;
  problem.relu = is_relu(epilogue.function);
  if (epilogue.residual) problem.added = CublasltProblem::Added::residual;
  const bool are_last = has_channels_last(format.layout);
  if (pixels == 1 || are_last) {
    const std::int64_t columns = batch * pixels;
    const auto pitch = [&](std::int64_t channels, std::int64_t of_images) { return are_last ? channels : of_images; };
    problem.a_is_weights = true;
    problem.adds_bias = epilogue.bias;
    problem.a = {.rows = inputs, .cols = outputs, .column_pitch = inputs};
    problem.b = {.rows = inputs, .cols = columns, .column_pitch = pitch(inputs, pitches.input)};
    problem.c = problem.d = {.rows = outputs, .cols = columns, .column_pitch = pitch(outputs, pitches.output)};
    if (epilogue.residual) problem.c.column_pitch = pitch(outputs, pitches.residual);
    return problem;
  }
  problem.products = batch;
  problem.a = {.rows = pixels, .cols = inputs, .column_pitch = pixels, .batch_stride = pitches.input};
  problem.b = {.rows = inputs, .cols = outputs, .column_pitch = inputs};
  problem.c = problem.d = {.rows = pixels, .cols = outputs, .column_pitch = pixels, .batch_stride = pitches.output};
  if (epilogue.residual) {
    problem.c.batch_stride = pitches.residual;
  } else if (epilogue.bias) {
    problem.added = CublasltProblem::Added::bias;
    problem.c.batch_stride = 0;
  }
  return problem;
}

}  // namespace burin
