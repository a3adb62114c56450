#include "compiler/rebuild_module.h"

#include <optional>

#include "compiler/providers/provider.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/error.h"
#include "ir/layer_data.h"
#include "ir/printable.h"

namespace burin {

std::string rebuild_module(const Package& package, const Kernel& kernel) {
  if (kernel.edited) {
    fail(ErrorKind::unsupported,
         "{}: its code was edited by hand and does not follow from its plan, so it runs on a GPU alone",
         kernel.owner());
  }
  const Provider* provider = find_provider(kernel.provider);
  if (provider == nullptr) {
    fail(ErrorKind::bad_input, "{}: this burin ({}) has no provider '{}', which made it", kernel.owner(), BURIN_VERSION,
         printable(kernel.provider));
  }
  std::optional<ConvLayer> layer;
  if (provider->bakes_weights()) {
    if (!kernel.layer || kernel.layer->data.empty()) {
      fail(ErrorKind::bad_input, "{}: the package does not hold its weights", kernel.owner());
    }
    layer = decode_layer(*package.files.at(kernel.layer->data).content(), kernel.op, kernel.layer->shape);
  }
  return to_bitcode(provider->module_of(kernel, layer ? &*layer : nullptr));
}

}  // namespace burin
