#include "compiler/network/graph_edit.h"
#include "compiler/network/passes.h"

namespace burin {

Rewritten drop_unread(Network network) {
  GraphEdit graph(std::move(network));
  int changes = 0;
  // Backwards, so that what fed only a removed operator goes as well.
  for (int op = graph.operators() - 1; op >= 0; --op) {
    const int output = graph.op(op).output;
    if (graph.is_output(output) || !graph.readers(output).empty()) continue;
    graph.remove(op);
    ++changes;
  }
  return {graph.finish(), changes};
}

}  // namespace burin
