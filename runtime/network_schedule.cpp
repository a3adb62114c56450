#include "runtime/network_schedule.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/limits.h"
#include "ir/program.h"

namespace burin {

NetworkSchedule make_schedule(const std::vector<const Program*>& programs, int batch) {
  if (batch < 1 || batch > kMaxBatch) fail(ErrorKind::usage, "batch {} is not within 1..{}", batch, kMaxBatch);
  NetworkSchedule schedule{batch, {}};
  for (int rest = batch; rest > 0;) {
    const Program& program = program_for(programs, rest);
    const int images = std::min(rest, program.most_images());
    schedule.parts.push_back({images, program.batch});
    rest -= images;
  }
  return schedule;
}

std::string NetworkSchedule::text() const {
  std::string text = fmt::format("batch {} runs as ", batch);
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t next = i;
    while (next < parts.size() && parts[next] == parts[i]) ++next;
    if (i != 0) text += " + ";
    if (next - i > 1) text += fmt::format("{} x ", next - i);
    text += fmt::format("{}", parts[i].images);
    if (parts[i].images != parts[i].program_batch) text += fmt::format(" of {}", parts[i].program_batch);
    i = next;
  }
  return text;
}

}  // namespace burin
