// What `burin bench` says of layers and of whole networks alike.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/bench/measure.h"

namespace burin {

// "4.21/5.03/6.00"
std::string times_text(std::initializer_list<double> microseconds);

nlohmann::ordered_json measurement_json(const Measurement& m);
// How a document begins: the package and the device.
nlohmann::ordered_json bench_document(const std::string& package, const DeviceInfo& device);
// Writes a document to a file, or to stdout for "-". Whether it went to stdout, where no table may follow.
bool write_document(const std::string& file, const std::string& document);

}  // namespace burin
