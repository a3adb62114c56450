// Ends well where the runtime is there and says what is wrong with a package that is not.
#include <burin/runtime.hpp>
#include <exception>
#include <iostream>

int main() {
  try {
    burin::LoadedPackage package(burin::Device::open(0), "no-such-file.burin");
  } catch (const std::exception& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return 1;
}
