// An operator of two tensors.
template <class T>
__device__ T Gate(T x, T gate) {
  return x * min(max(gate, T(0)), T(1));
}
