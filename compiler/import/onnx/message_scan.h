// What a protobuf message would take in memory, found without building it.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string_view>

namespace burin {

struct MessageScan {
  bool well_formed = true;
  std::int64_t objects = 0;  // messages, strings and fields that the type does not know, however deep
  int position = 0;          // where it stopped making sense
};

// `bytes` as a message of the type. At most 2^31 - 1 bytes.
MessageScan scan_message(std::string_view bytes, const google::protobuf::Descriptor& type);

}  // namespace burin
