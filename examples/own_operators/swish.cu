// An operator that ONNX does not have: a node of the model calls it by its name, and the node's attribute `beta` is a
// constant here. As a template it is computed in float on the GPU, and in float64 by `burin verify`.
template <class T>
__device__ T Swish(T x) {
  return x / (1 + exp(-T(beta) * x));
}
