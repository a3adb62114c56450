// A convolution, with what is fused into it, as one of the engines that cuDNN's graph API proposes for it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/library/cudnn_convolution.h"

namespace burin {

// One of the graph API's descriptors, destroyed with it. What it was told of others it does not keep alive.
class CudnnNode {
 public:
  CudnnNode(const CudnnTable& table, CudnnNodeKind kind);
  ~CudnnNode() {
    if (object_ != nullptr) table_->backend_destroy(object_);
  }
  CudnnNode(CudnnNode&& other) noexcept;
  CudnnNode& operator=(CudnnNode&&) = delete;
  CudnnNode(const CudnnNode&) = delete;
  CudnnNode& operator=(const CudnnNode&) = delete;

  CudnnObject object() const { return object_; }
  // Throw Error(device) where cuDNN refuses.
  void set(CudnnAttribute attribute, CudnnAttributeType type, std::int64_t count, const void* values) const;
  void set(CudnnAttribute attribute, std::int64_t value) const;
  void set(CudnnAttribute attribute, const std::vector<std::int64_t>& values) const;
  void set(CudnnAttribute attribute, float value) const;
  void set(CudnnAttribute attribute, const CudnnNode& node) const;
  void finalize() const;
  // Whether cuDNN accepts what it was told.
  bool can_finalize() const;

 private:
  const CudnnTable* table_;
  CudnnObject object_ = nullptr;
};

class CudnnEngine {
 public:
  // The engine of that number among the proposed ones that can be had, the best by cuDNN's own estimate first. Throws
  // Error(device) where there are not as many.
  CudnnEngine(std::shared_ptr<const CudnnHandle> handle, const CudnnProblem& problem, int number);
  ~CudnnEngine();
  CudnnEngine(const CudnnEngine&) = delete;
  CudnnEngine& operator=(const CudnnEngine&) = delete;

  const CudnnHandle& handle() const { return *handle_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Throws Error(device) where cuDNN fails.
  void enqueue(CUstream_st* stream, const CudnnPointers& pointers) const;

 private:
  void choose(CudnnObject opened, int number);

  std::shared_ptr<const CudnnHandle> handle_;
  bool has_bias_ = false, has_residual_ = false;
  std::vector<CudnnNode> nodes_;  // all that the plan is made of
  CudnnObject graph_ = nullptr;   // one of them
  std::unique_ptr<CudnnNode> plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace burin
