#include "test/runtime/fake_cublaslt.h"

#include <cstring>
#include <functional>

#include "test/runtime/fake_library.h"

using burin_test::FakeCublasltMatrix;
using burin_test::FakeCublasltState;

namespace {

FakeCublasltState state;

#ifndef FAKE_CUBLASLT_INCOMPLETE
constexpr int kSuccess = 0, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15;
constexpr int kFloat = 0, kHalf = 2, kBfloat16 = 14;  // CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF
constexpr int kTransA = 3, kEpilogue = 7, kBiasPointer = 8;
constexpr int kBatchCount = 5, kStridedBatchOffset = 6;
constexpr int kMaxWorkspaceBytes = 1, kMinAlignmentA = 5, kMinAlignmentD = 8;
constexpr std::uint32_t kRelu = 2, kBias = 4;  // of an epilogue; 1: none
constexpr std::uint32_t kUsualAlignment = 256;

struct Product {
  int compute = 0;
  std::int32_t transpose_a = 0;
  std::uint32_t epilogue = 1;
  const void* bias = nullptr;
};
struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::array<std::uint32_t, 4> alignments = {kUsualAlignment, kUsualAlignment, kUsualAlignment, kUsualAlignment};
};
struct Algorithm {
  std::uint64_t index;
  std::uint64_t alignments[4];
  std::uint64_t rest[3];
};
struct Proposal {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

template <typename Object>
int create(void** made, Object value) {
  *made = new Object(value);
  ++state.live_objects;
  return kSuccess;
}

template <typename Object>
int destroy(void* object) {
  delete static_cast<Object*>(object);
  --state.live_objects;
  return kSuccess;
}

template <typename Object>
Object& at(void* object) {
  return *static_cast<Object*>(object);
}

template <typename Value>
int set(Value& value, const void* from, std::size_t bytes) {
  if (bytes != sizeof(Value)) {
    state.bad_attribute = true;
    return kInvalidValue;
  }
  std::memcpy(&value, from, bytes);
  return kSuccess;
}

int unknown() {
  state.bad_attribute = true;
  return kInvalidValue;
}

bool fit(const Product& product, const FakeCublasltMatrix& a, const FakeCublasltMatrix& b, const FakeCublasltMatrix& c,
         const FakeCublasltMatrix& d) {
  const bool transposed = product.transpose_a == 1;
  const auto rows = transposed ? a.cols : a.rows, depth = transposed ? a.rows : a.cols;
  for (const FakeCublasltMatrix* matrix : {&a, &b, &c, &d}) {
    if (matrix->column_pitch < static_cast<std::int64_t>(matrix->rows) || matrix->products != d.products) return false;
    if (matrix->type != d.type) return false;
  }
  return rows == d.rows && depth == b.rows && b.cols == d.cols && c.rows == d.rows && c.cols == d.cols &&
         (d.products == 1 || d.batch_stride > 0);
}

struct Factors {
  const void *a, *b, *c;
  void* d;
  float alpha, beta;
};

void multiply(const Product& product, const FakeCublasltMatrix& a, const FakeCublasltMatrix& b,
              const FakeCublasltMatrix& c, const FakeCublasltMatrix& d, const Factors& of) {
  const bool transposed = product.transpose_a == 1;
  const burin::ElementType element = burin_test::element_of(d.type);
  for (std::int32_t i = 0; i < d.products; ++i)
    for (std::uint64_t col = 0; col < d.cols; ++col)
      for (std::uint64_t row = 0; row < d.rows; ++row) {
        const auto place = [&](const FakeCublasltMatrix& matrix, std::uint64_t r, std::uint64_t k) {
          return i * matrix.batch_stride + static_cast<std::int64_t>(k) * matrix.column_pitch +
                 static_cast<std::int64_t>(r);
        };
        const auto value = [&](const void* from, const FakeCublasltMatrix& matrix, std::uint64_t r, std::uint64_t k) {
          return static_cast<double>(burin_test::load_element(element, from, place(matrix, r, k)));
        };
        double sum = 0;
        for (std::uint64_t k = 0; k < b.rows; ++k) {
          sum += (transposed ? value(of.a, a, k, row) : value(of.a, a, row, k)) * value(of.b, b, k, col);
        }
        sum *= of.alpha;
        if (of.beta != 0) sum += of.beta * value(of.c, c, row, col);
        if ((product.epilogue & kBias) != 0) {
          sum += burin_test::load_element(element, product.bias, static_cast<std::ptrdiff_t>(row));
        }
        if ((product.epilogue & kRelu) != 0 && sum < 0) sum = 0;
        burin_test::store_element(element, of.d, place(d, row, col), static_cast<float>(sum));
      }
}
#endif

}  // namespace

extern "C" {

FakeCublasltState* fake_cublaslt_state() { return &state; }

std::size_t cublasLtGetVersion() { return 130002; }

#ifndef FAKE_CUBLASLT_INCOMPLETE
const char* cublasLtGetStatusName(int status) {
  return status == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
int cublasLtCreate(void** handle) {
  return state.create_status != kSuccess ? state.create_status : create<int>(handle, 0);
}
int cublasLtDestroy(void* handle) { return destroy<int>(handle); }
int cublasLtMatmulDescCreate(void** product, int compute, int scale_type) {
  return scale_type == kFloat ? create<Product>(product, {.compute = compute}) : kNotSupported;
}
int cublasLtMatmulDescDestroy(void* product) { return destroy<Product>(product); }
int cublasLtMatmulDescSetAttribute(void* object, int attribute, const void* value, std::size_t bytes) {
  auto& product = at<Product>(object);
  switch (attribute) {
    case kTransA:
      return set(product.transpose_a, value, bytes);
    case kEpilogue:
      return set(product.epilogue, value, bytes);
    case kBiasPointer:
      return set(product.bias, value, bytes);
    default:
      return unknown();
  }
}
int cublasLtMatrixLayoutCreate(void** matrix, int type, std::uint64_t rows, std::uint64_t cols, std::int64_t pitch) {
  if (type != kFloat && type != kHalf && type != kBfloat16) return kNotSupported;
  return create<FakeCublasltMatrix>(matrix, {.type = type, .rows = rows, .cols = cols, .column_pitch = pitch});
}
int cublasLtMatrixLayoutDestroy(void* matrix) { return destroy<FakeCublasltMatrix>(matrix); }
int cublasLtMatrixLayoutSetAttribute(void* object, int attribute, const void* value, std::size_t bytes) {
  auto& matrix = at<FakeCublasltMatrix>(object);
  switch (attribute) {
    case kBatchCount:
      return set(matrix.products, value, bytes);
    case kStridedBatchOffset:
      return set(matrix.batch_stride, value, bytes);
    default:
      return unknown();
  }
}
int cublasLtMatmulPreferenceCreate(void** preference) { return create<Preference>(preference, {}); }
int cublasLtMatmulPreferenceDestroy(void* preference) { return destroy<Preference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void* object, int attribute, const void* value, std::size_t bytes) {
  auto& preference = at<Preference>(object);
  if (attribute == kMaxWorkspaceBytes) return set(preference.workspace_bytes, value, bytes);
  if (attribute < kMinAlignmentA || attribute > kMinAlignmentD) return unknown();
  return set(preference.alignments[static_cast<std::size_t>(attribute - kMinAlignmentA)], value, bytes);
}
int cublasLtMatmulAlgoGetHeuristic(void*, void* product, void* a, void* b, void* c, void* d, void* preference,
                                   int wanted, Proposal* proposals, int* count) {
  const auto& asked = at<Preference>(preference);
  *count = 0;
  if (state.refuses == FakeCublasltState::Refuses::proposals) return kNotSupported;
  if (!fit(at<Product>(product), at<FakeCublasltMatrix>(a), at<FakeCublasltMatrix>(b), at<FakeCublasltMatrix>(c),
           at<FakeCublasltMatrix>(d))) {
    state.misfit = true;
    return kInvalidValue;
  }
  state.most_workspace = asked.workspace_bytes;
  state.alignments = asked.alignments;
  for (int i = 0; i < state.proposed && *count < wanted; ++i) {
    // As the real one: what wants more scratch memory is not proposed.
    const std::size_t bytes = state.algorithms[static_cast<std::size_t>(i)].workspace_bytes;
    if (bytes > asked.workspace_bytes) continue;
    Proposal& proposal = proposals[(*count)++];
    proposal = {};
    proposal.algorithm.index = static_cast<std::uint64_t>(i);
    for (std::size_t k = 0; k < 4; ++k) proposal.algorithm.alignments[k] = asked.alignments[k];
    proposal.workspace_bytes = bytes;
    proposal.status = state.refuses == FakeCublasltState::Refuses::proposal ? kNotSupported : kSuccess;
  }
  return kSuccess;
}
int cublasLtMatmul(void*, void* product_object, const void* alpha, const void* a, void* a_matrix, const void* b,
                   void* b_matrix, const void* beta, const void* c, void* c_matrix, void* d, void* d_matrix,
                   const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes, CUstream_st* stream) {
  const auto index = static_cast<std::size_t>(algorithm->index);
  const FakeCublasltState::Algorithm& wanted = state.algorithms.at(index);
  if (state.refuses == FakeCublasltState::Refuses::product) return kNotSupported;
  if (state.refuses == FakeCublasltState::Refuses::capture && stream->capturing) return kExecutionFailed;
  if (workspace_bytes < wanted.workspace_bytes || (wanted.workspace_bytes > 0 && workspace == nullptr)) {
    state.too_small_workspace = true;
  }
  // What lies in memory of its own the driver aligns better than the fake's.
  const void* const matrices[] = {a, b, c, d};
  for (std::size_t k = 0; k < 4; ++k) {
    const std::uint64_t alignment = algorithm->alignments[k];
    if (alignment < kUsualAlignment && reinterpret_cast<std::uintptr_t>(matrices[k]) % alignment != 0) {
      state.misaligned = true;
    }
  }
  const Product product = at<Product>(product_object);
  ++state.runs.at(index);
  state.compute = product.compute;
  state.epilogue = product.epilogue;
  state.transposed = product.transpose_a == 1;
  state.beta = *static_cast<const float*>(beta);
  state.a = at<FakeCublasltMatrix>(a_matrix);
  state.b = at<FakeCublasltMatrix>(b_matrix);
  state.c = at<FakeCublasltMatrix>(c_matrix);
  state.d = at<FakeCublasltMatrix>(d_matrix);
  const Factors factors{a, b, c, d, *static_cast<const float*>(alpha), state.beta};
  // Descriptors may be gone, or others, when it runs.
  burin_test::enqueue_call(*stream, wanted.launches,
                           [product, factors, am = state.a, bm = state.b, cm = state.c, dm = state.d] {
                             multiply(product, am, bm, cm, dm, factors);
                           });
  return kSuccess;
}
#endif
}
