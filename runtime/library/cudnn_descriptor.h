// One of cuDNN's descriptors, destroyed with it.
#pragma once

#include "runtime/library/cudnn_library.h"

namespace burin {

class CudnnDescriptor {
 public:
  using Create = CudnnStatus (*)(CudnnObject*);
  using Destroy = CudnnStatus (*)(CudnnObject);
  CudnnDescriptor(const CudnnTable& table, Create create, Destroy destroy) : destroy_(destroy) {
    check_cudnn(table, create(&object_), "cudnnCreate...Descriptor");
  }
  ~CudnnDescriptor() { destroy_(object_); }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  operator CudnnObject() const { return object_; }

 private:
  CudnnObject object_ = nullptr;
  Destroy destroy_;
};

}  // namespace burin
