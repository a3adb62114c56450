#include "compiler/observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ir/package/atomic_file.h"

namespace burin {
namespace {
constexpr const char* kLogName = "00-stages.txt";
constexpr std::size_t kStageColumn = 12;      // characters, at least
constexpr std::size_t kMaxFolderBytes = 200;  // file systems take 255; a suffix may follow
}  // namespace

Observer::Observer(std::optional<std::string> folder, std::optional<std::string> stop_after)
    : folder_(std::move(folder)), stop_after_(std::move(stop_after)), last_(std::chrono::steady_clock::now()) {}

bool Observer::observe(const std::string& stage, const std::string& file_name, const std::function<std::string()>& text,
                       const std::function<std::string()>& remark) {
  const double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - last_).count();
  if (folder_) {
    std::string made = text();
    const bool unchanged = !entries_.empty() && made == previous_text_;
    if (!unchanged) write(file_name, made);
    std::string what = unchanged ? "unchanged" : fmt::format("{} bytes, {}", made.size(), file_name);
    if (const std::string more = remark ? remark() : ""; !more.empty()) what += ": " + more;
    entries_.push_back({stage, milliseconds, std::move(what)});
    write_log();
    previous_text_ = std::move(made);
  }
  last_ = std::chrono::steady_clock::now();  // printing is not part of the next stage
  return stop_after_ && *stop_after_ == stage;
}

void Observer::write(const std::string& file_name, const std::string& text) const {
  std::error_code fault;
  std::filesystem::create_directories(*folder_, fault);
  write_file_atomically((std::filesystem::path(*folder_) / file_name).string(), text, Durability::left_to_system);
}

void Observer::write_log() const {
  std::size_t width = kStageColumn;
  for (const Entry& entry : entries_) width = std::max(width, entry.stage.size());
  std::string log = fmt::format("{:<{}} {:>10}  {}\n", "stage", width, "ms", "what");
  for (const Entry& entry : entries_) {
    log += fmt::format("{:<{}} {:>10.1f}  {}\n", entry.stage, width, entry.milliseconds, entry.remark);
  }
  write(kLogName, log);
}

std::string folder_name(const std::string& layer) {
  std::string name;
  for (const char c : layer) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    name += plain ? c : '_';
  }
  name.resize(std::min(name.size(), kMaxFolderBytes));
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

std::string DumpFolders::of(const std::string& op, int batch) {
  const auto [entry, is_new] = folders_.try_emplace(op, folder_name(op));
  if (is_new) entry->second += names_.suffix(entry->second);
  return by_batch_ ? fmt::format("{}/b{}", entry->second, batch) : entry->second;
}

}  // namespace burin
