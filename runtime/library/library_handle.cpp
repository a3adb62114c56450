#include "runtime/library/library_handle.h"

#include <algorithm>
#include <utility>

#include "ir/error.h"
#include "runtime/library/cublaslt_product.h"
#include "runtime/library/cudnn_convolution.h"

namespace burin {
namespace {

std::shared_ptr<const LibraryHandle> open_handle(const DeviceState& device, Library library,
                                                 const std::vector<std::string>& candidates) {
  if (library == Library::cudnn) return std::make_shared<const CudnnHandle>(device, candidates);
  return std::make_shared<const CublasltHandle>(device, candidates);
}

}  // namespace

LibraryFiles files_of(Library library) {
  if (library == Library::cudnn) return {"BURIN_CUDNN", {"libcudnn.so.9"}};
  return {"BURIN_CUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"}};
}

std::shared_ptr<const LibraryHandle> LibraryHandles::get(Library library, const std::vector<std::string>& candidates) {
  const std::lock_guard lock(mutex_);
  auto opened = std::ranges::find_if(
      opened_, [&](const Opened& one) { return one.library == library && one.candidates == candidates; });
  if (opened == opened_.end()) {
    Opened made{library, candidates, nullptr, {}};
    try {
      made.handle = open_handle(device_, library, candidates);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      made.fault = error.what();
    }
    opened = opened_.insert(opened_.end(), std::move(made));
  }
  if (opened->handle == nullptr) fail(ErrorKind::device, "{}", opened->fault);
  return opened->handle;
}

std::shared_ptr<const CudnnHandle> LibraryHandles::cudnn(const std::vector<std::string>& candidates) {
  return std::static_pointer_cast<const CudnnHandle>(get(Library::cudnn, candidates));
}

std::int64_t image_pitch(const KernelForm& form, TensorRole role) {
  const KernelTensor* tensor = form.find(role);
  return tensor == nullptr || !tensor->exists() ? 0 : tensor->image_words;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return upper;
}

}  // namespace burin
