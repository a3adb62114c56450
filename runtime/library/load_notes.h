// LoadNotes: what a person should know of how a package runs here, such as a library that is not there. Each is said
// once.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace burin {

class LoadNotes {
 public:
  void add(const std::string& note) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return {notes_.begin(), notes_.end()};
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return notes_.size();
  }
  // It stays where it is; null: there are fewer.
  const std::string* at(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return index < notes_.size() ? &notes_[index] : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> notes_;
};

}  // namespace burin
