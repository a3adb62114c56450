// ManifestIndex: a manifest's kernels and programs by their names. Whoever looks up more than one makes it first, so
// that the time follows the size of the package.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/package/manifest.h"

namespace burin {

class ManifestIndex {
 public:
  // The manifest must outlive this, and stay as it is.
  explicit ManifestIndex(const Manifest& manifest);

  // Null: there is none.
  const Kernel* find_kernel(std::string_view symbol) const;
  // The same of one that is there, as of each step of a package that was read.
  const Kernel& kernel(std::string_view symbol) const;
  // A convolution's kernel that suits so many images best: the one for the most images that are no more, else the one
  // for the fewest; null: no convolution has this name.
  const Kernel* kernel_for(std::string_view convolution, int images) const;
  // The convolutions that have kernels, each once, in their order.
  const std::vector<std::string>& convolutions() const { return convolutions_; }

  // Empty: no program has this name.
  const std::vector<const Program*>& programs(std::string_view name) const;

 private:
  std::map<std::string_view, const Kernel*> kernels_;
  std::map<std::string_view, std::vector<const Kernel*>> kernels_of_;  // convolutions
  std::map<std::string_view, std::vector<const Program*>> programs_;
  std::vector<std::string> convolutions_;
};

}  // namespace burin
