// cuDNN as a table of functions, filled by dlopen. Only the functions and numbers that forward convolutions, pools,
// softmax and moved tensors need, declared here, so that nothing of cuDNN or CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct CUstream_st;

namespace burin {

// Opaque to us: cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
// cudnnPoolingDescriptor_t.
using CudnnObject = void*;
using CudnnStatus = int;

inline constexpr CudnnStatus kCudnnSuccess = 0;
inline constexpr int kCudnnCrossCorrelation = 1;  // CUDNN_CROSS_CORRELATION: what networks call a convolution
// CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN
inline constexpr int kCudnnRelu = 1, kCudnnIdentity = 5, kCudnnPropagateNan = 1;
// CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING
inline constexpr int kCudnnPoolMax = 0, kCudnnPoolAverageWithPadding = 1, kCudnnPoolAverageWithoutPadding = 2;
// CUDNN_SOFTMAX_ACCURATE; CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL
inline constexpr int kCudnnSoftmaxAccurate = 1;
inline constexpr int kCudnnSoftmaxInstance = 0, kCudnnSoftmaxChannel = 1;
inline constexpr std::size_t kCudnnMostAxes = 8;   // CUDNN_DIM_MAX
inline constexpr int kCudnnForwardAlgorithms = 8;  // CUDNN_CONVOLUTION_FWD_ALGO_COUNT

enum class CudnnLayout { nchw = 0, nhwc = 1 };                 // CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC
enum class CudnnType { float32 = 0, half = 2, bfloat16 = 9 };  // CUDNN_DATA_FLOAT, _HALF, _BFLOAT16
// For float data: FMA_MATH forbids the tensor cores; DEFAULT_MATH lets them run in TF32 since Ampere. For half data
// TENSOR_OP_MATH lets them run. TENSOR_OP_MATH_ALLOW_CONVERSION would round floats to half precision and is not used.
enum class CudnnMath { tf32_allowed = 0, tensor_cores = 1, fp32 = 3 };

// The graph API: what its descriptors are, what they are told, as values of which type, and functions of elements.
enum class CudnnNodeKind {
  pointwise = 0,             // CUDNN_BACKEND_POINTWISE_DESCRIPTOR
  convolution = 1,           // CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR
  engine_choice = 3,         // CUDNN_BACKEND_ENGINECFG_DESCRIPTOR
  heuristics = 4,            // CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
  plan = 5,                  // CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
  convolution_forward = 10,  // CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
  pointwise_operation = 13,  // CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
  graph = 15,                // CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR
  pointers = 16,             // CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR
  tensor = 17,               // CUDNN_BACKEND_TENSOR_DESCRIPTOR
};
enum class CudnnAttribute {
  pointwise_mode = 0,             // CUDNN_ATTR_POINTWISE_MODE
  pointwise_type = 1,             // CUDNN_ATTR_POINTWISE_MATH_PREC
  convolution_sum_type = 100,     // CUDNN_ATTR_CONVOLUTION_COMP_TYPE
  convolution_mode = 101,         // CUDNN_ATTR_CONVOLUTION_CONV_MODE
  convolution_dilations = 102,    // CUDNN_ATTR_CONVOLUTION_DILATIONS
  convolution_strides = 103,      // CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES
  convolution_pads_behind = 104,  // CUDNN_ATTR_CONVOLUTION_POST_PADDINGS
  convolution_pads_before = 105,  // CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS
  convolution_axes = 106,         // CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS
  heuristics_mode = 200,          // CUDNN_ATTR_ENGINEHEUR_MODE
  heuristics_graph = 201,         // CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH
  heuristics_results = 202,       // CUDNN_ATTR_ENGINEHEUR_RESULTS
  plan_handle = 400,              // CUDNN_ATTR_EXECUTION_PLAN_HANDLE
  plan_engine = 401,              // CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG
  plan_workspace = 402,           // CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE
  forward_alpha = 700,            // CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, and so on
  forward_beta = 701,
  forward_window = 702,
  forward_weights = 703,
  forward_input = 704,
  forward_output = 705,
  apply_function = 750,  // CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR
  apply_first = 751,     // CUDNN_ATTR_OPERATION_POINTWISE_XDESC, and so on
  apply_second = 752,
  apply_output = 753,
  graph_handle = 800,        // CUDNN_ATTR_OPERATIONGRAPH_HANDLE
  graph_operations = 801,    // CUDNN_ATTR_OPERATIONGRAPH_OPS
  tensor_alignment = 900,    // CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT
  tensor_type = 901,         // CUDNN_ATTR_TENSOR_DATA_TYPE
  tensor_extents = 902,      // CUDNN_ATTR_TENSOR_DIMENSIONS
  tensor_steps = 903,        // CUDNN_ATTR_TENSOR_STRIDES
  tensor_id = 906,           // CUDNN_ATTR_TENSOR_UNIQUE_ID
  tensor_is_virtual = 907,   // CUDNN_ATTR_TENSOR_IS_VIRTUAL
  pointers_ids = 1000,       // CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS
  pointers_places = 1001,    // CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS
  pointers_workspace = 1003  // CUDNN_ATTR_VARIANT_PACK_WORKSPACE
};
enum class CudnnAttributeType {  // cudnnBackendAttributeType_t
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  float32 = 4,
  pointer = 6,
  convolution_mode = 7,
  heuristics_mode = 8,
  pointwise_mode = 14,
  node = 15,
};
enum class CudnnPointwise { add = 0, relu = 100 };  // CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD
inline constexpr int kCudnnHeuristicsByModel = 3;   // CUDNN_HEUR_MODE_A

std::string_view to_string(CudnnLayout layout);
// "IMPLICIT_PRECOMP_GEMM"; "algorithm 12" for a number that is none of the eight.
std::string cudnn_algorithm_name(int algorithm);
// 91900 -> "9.19.0", 8907 -> "8.9.7".
std::string cudnn_version_text(std::size_t version);

struct CudnnTable {
  std::size_t (*get_version)() = nullptr;
  const char* (*get_error_string)(CudnnStatus) = nullptr;
  CudnnStatus (*create)(CudnnObject*) = nullptr;
  CudnnStatus (*destroy)(CudnnObject) = nullptr;
  CudnnStatus (*set_stream)(CudnnObject handle, CUstream_st*) = nullptr;
  CudnnStatus (*create_tensor)(CudnnObject*) = nullptr;
  CudnnStatus (*destroy_tensor)(CudnnObject) = nullptr;
  CudnnStatus (*set_tensor_4d)(CudnnObject, int layout, int type, int n, int c, int h, int w) = nullptr;
  CudnnStatus (*set_tensor_4d_ex)(CudnnObject, int type, int n, int c, int h, int w, int n_stride, int c_stride,
                                  int h_stride, int w_stride) = nullptr;
  CudnnStatus (*set_tensor_nd)(CudnnObject, int type, int axes, const int* extents, const int* strides) = nullptr;
  CudnnStatus (*create_filter)(CudnnObject*) = nullptr;
  CudnnStatus (*destroy_filter)(CudnnObject) = nullptr;
  CudnnStatus (*set_filter_4d)(CudnnObject, int type, int layout, int k, int c, int h, int w) = nullptr;
  CudnnStatus (*create_convolution)(CudnnObject*) = nullptr;
  CudnnStatus (*destroy_convolution)(CudnnObject) = nullptr;
  CudnnStatus (*set_convolution_2d)(CudnnObject, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                                    int dilation_w, int mode, int type) = nullptr;
  CudnnStatus (*set_groups)(CudnnObject, int groups) = nullptr;
  CudnnStatus (*set_math)(CudnnObject, int math) = nullptr;
  CudnnStatus (*workspace_size)(CudnnObject handle, CudnnObject input, CudnnObject filter, CudnnObject convolution,
                                CudnnObject output, int algorithm, std::size_t* bytes) = nullptr;
  CudnnStatus (*forward)(CudnnObject handle, const void* alpha, CudnnObject input_desc, const void* input,
                         CudnnObject filter_desc, const void* filter, CudnnObject convolution, int algorithm,
                         void* workspace, std::size_t workspace_bytes, const void* beta, CudnnObject output_desc,
                         void* output) = nullptr;
  CudnnStatus (*create_activation)(CudnnObject*) = nullptr;
  CudnnStatus (*destroy_activation)(CudnnObject) = nullptr;
  CudnnStatus (*set_activation)(CudnnObject, int mode, int nan, double coefficient) = nullptr;
  CudnnStatus (*fused_forward)(CudnnObject handle, const void* alpha, CudnnObject input_desc, const void* input,
                               CudnnObject filter_desc, const void* filter, CudnnObject convolution, int algorithm,
                               void* workspace, std::size_t workspace_bytes, const void* residual_factor,
                               CudnnObject residual_desc, const void* residual, CudnnObject bias_desc, const void* bias,
                               CudnnObject activation, CudnnObject output_desc, void* output) = nullptr;
  CudnnStatus (*create_pooling)(CudnnObject*) = nullptr;
  CudnnStatus (*destroy_pooling)(CudnnObject) = nullptr;
  CudnnStatus (*set_pooling_2d)(CudnnObject, int mode, int nan, int window_h, int window_w, int pad_h, int pad_w,
                                int stride_h, int stride_w) = nullptr;
  CudnnStatus (*pool)(CudnnObject handle, CudnnObject pooling, const void* alpha, CudnnObject input_desc,
                      const void* input, const void* beta, CudnnObject output_desc, void* output) = nullptr;
  CudnnStatus (*softmax)(CudnnObject handle, int algorithm, int mode, const void* alpha, CudnnObject input_desc,
                         const void* input, const void* beta, CudnnObject output_desc, void* output) = nullptr;
  CudnnStatus (*transform)(CudnnObject handle, const void* alpha, CudnnObject input_desc, const void* input,
                           const void* beta, CudnnObject output_desc, void* output) = nullptr;
  CudnnStatus (*backend_create)(int kind, CudnnObject*) = nullptr;
  CudnnStatus (*backend_destroy)(CudnnObject) = nullptr;
  CudnnStatus (*backend_finalize)(CudnnObject) = nullptr;
  CudnnStatus (*backend_set)(CudnnObject, int attribute, int type, std::int64_t count, const void* values) = nullptr;
  CudnnStatus (*backend_get)(CudnnObject, int attribute, int type, std::int64_t most, std::int64_t* count,
                             void* values) = nullptr;
  CudnnStatus (*backend_execute)(CudnnObject handle, CudnnObject plan, CudnnObject pointers) = nullptr;
};

class CudnnLibrary {
 public:
  // The first candidate that opens and has every function. Throws Error(device) that says what was tried, why each
  // failed and what helps.
  explicit CudnnLibrary(const std::vector<std::string>& candidates);

  const CudnnTable& table() const { return table_; }
  const std::string& path() const { return path_; }
  std::string version() const { return cudnn_version_text(table_.get_version()); }

 private:
  CudnnTable table_;
  std::string path_;
};

// Throws Error(device): "CALL failed: text (status); context".
void check_cudnn(const CudnnTable& table, CudnnStatus status, std::string_view call, std::string_view context = {});

}  // namespace burin
