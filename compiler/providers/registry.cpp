#include <algorithm>

#include "compiler/providers/provider.h"

// A test may bring a longer list (test/providers/example).
#ifndef BURIN_PROVIDER_LIST
#define BURIN_PROVIDER_LIST "compiler/providers/providers.def"
#endif

namespace burin {

#define BURIN_PROVIDER(name) const Provider& name##_provider();
#include BURIN_PROVIDER_LIST
#undef BURIN_PROVIDER

const std::vector<const Provider*>& providers() {
  static const std::vector<const Provider*> all = {
#define BURIN_PROVIDER(name) &name##_provider(),
#include BURIN_PROVIDER_LIST
#undef BURIN_PROVIDER
  };
  return all;
}

const Provider* find_provider(std::string_view name) {
  const auto found = std::ranges::find(providers(), name, &Provider::name);
  return found == providers().end() ? nullptr : *found;
}

}  // namespace burin
