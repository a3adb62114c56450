// cuBLASLt as a table of functions, filled by dlopen. Only the functions and numbers that products of matrices of
// floats or halves need, declared here, so that nothing of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct CUstream_st;

namespace burin {

// Opaque to us: cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t.
using CublasltObject = void*;
using CublasltStatus = int;

inline constexpr CublasltStatus kCublasltSuccess = 0;  // CUBLAS_STATUS_SUCCESS
// CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF
inline constexpr int kCublasltFloat = 0, kCublasltHalf = 2, kCublasltBfloat16 = 14;
// What products are computed in, sums being FP32 in both: CUBLAS_COMPUTE_32F has no tensor cores,
// CUBLAS_COMPUTE_32F_FAST_TF32 may round factors to TF32.
enum class CublasltCompute { fp32 = 68, tf32 = 77 };

// Attributes of a product (CUBLASLT_MATMUL_DESC_...), and what they are set to.
inline constexpr int kCublasltTransposeA = 3;                            // TRANSA: int32_t
inline constexpr std::int32_t kCublasltTransposed = 1;                   // CUBLAS_OP_T; 0, as they are, is the default
inline constexpr int kCublasltEpilogue = 7;                              // EPILOGUE: uint32_t
inline constexpr std::uint32_t kCublasltPlain = 1;                       // CUBLASLT_EPILOGUE_DEFAULT
inline constexpr std::uint32_t kCublasltRelu = 2, kCublasltAddBias = 4;  // ..._RELU, ..._BIAS; both: RELU_BIAS
inline constexpr int kCublasltBiasPointer = 8;                           // BIAS_POINTER: const void*
// Attributes of a matrix (CUBLASLT_MATRIX_LAYOUT_...).
inline constexpr int kCublasltBatchCount = 5;   // BATCH_COUNT: int32_t
inline constexpr int kCublasltBatchStride = 6;  // STRIDED_BATCH_OFFSET: int64_t, in elements
// Attributes of what is asked of proposals (CUBLASLT_MATMUL_PREF_...).
inline constexpr int kCublasltMaxWorkspace = 1;  // MAX_WORKSPACE_BYTES: uint64_t
// MIN_ALIGNMENT_A_BYTES and so on: uint32_t; 256 where nobody says less.
inline constexpr int kCublasltAlignmentA = 5, kCublasltAlignmentB = 6, kCublasltAlignmentC = 7, kCublasltAlignmentD = 8;

struct CublasltAlgorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};
struct CublasltProposal {  // cublasLtMatmulHeuristicResult_t
  CublasltAlgorithm algorithm;
  std::size_t workspace_bytes;
  CublasltStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(CublasltProposal) == 96);

// 130002 -> "13.0.2"; 120604 -> "12.6.4".
std::string cublaslt_version_text(std::size_t version);

struct CublasltTable {
  std::size_t (*get_version)() = nullptr;
  const char* (*get_status_name)(CublasltStatus) = nullptr;
  CublasltStatus (*create)(CublasltObject*) = nullptr;
  CublasltStatus (*destroy)(CublasltObject) = nullptr;
  CublasltStatus (*create_product)(CublasltObject*, int compute, int scale_type) = nullptr;
  CublasltStatus (*destroy_product)(CublasltObject) = nullptr;
  CublasltStatus (*set_product)(CublasltObject, int attribute, const void*, std::size_t bytes) = nullptr;
  CublasltStatus (*create_matrix)(CublasltObject*, int type, std::uint64_t rows, std::uint64_t cols,
                                  std::int64_t column_pitch) = nullptr;
  CublasltStatus (*destroy_matrix)(CublasltObject) = nullptr;
  CublasltStatus (*set_matrix)(CublasltObject, int attribute, const void*, std::size_t bytes) = nullptr;
  CublasltStatus (*create_preference)(CublasltObject*) = nullptr;
  CublasltStatus (*destroy_preference)(CublasltObject) = nullptr;
  CublasltStatus (*set_preference)(CublasltObject, int attribute, const void*, std::size_t bytes) = nullptr;
  CublasltStatus (*propose)(CublasltObject handle, CublasltObject product, CublasltObject a, CublasltObject b,
                            CublasltObject c, CublasltObject d, CublasltObject preference, int wanted,
                            CublasltProposal* proposals, int* count) = nullptr;
  CublasltStatus (*multiply)(CublasltObject handle, CublasltObject product, const void* alpha, const void* a,
                             CublasltObject a_matrix, const void* b, CublasltObject b_matrix, const void* beta,
                             const void* c, CublasltObject c_matrix, void* d, CublasltObject d_matrix,
                             const CublasltAlgorithm*, void* workspace, std::size_t workspace_bytes,
                             CUstream_st*) = nullptr;
};

class CublasltLibrary {
 public:
  // The first candidate that opens and has every function. Throws Error(device) that says what was tried, why each
  // failed and what helps.
  explicit CublasltLibrary(const std::vector<std::string>& candidates);

  const CublasltTable& table() const { return table_; }
  const std::string& path() const { return path_; }
  std::string version() const { return cublaslt_version_text(table_.get_version()); }

 private:
  CublasltTable table_;
  std::string path_;
};

// Throws Error(device): "CALL failed: text (status); context".
void check_cublaslt(const CublasltTable& table, CublasltStatus status, std::string_view call,
                    std::string_view context = {});

}  // namespace burin
