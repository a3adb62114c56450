// Packages that were changed at random, in what they say, in their data, their code or their zip file, through inspect,
// report, verify and run: refused, or right, and soon, and with a bound on memory. BURIN_MUTATIONS=20000 tries more of
// them, BURIN_MUTATION_SEED others.
#include <fmt/format.h>
#include <sys/resource.h>
#include <zlib.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/cli/npy_tensor.h"
#include "test/catch.h"
#include "test/cli/program.h"
#include "test/cli/small_model.h"
#include "test/cli/weights_file.h"
#include "test/package/mutator.h"
#include "test/package/zip_maker.h"

using namespace burin;
using namespace burin_test;
using burin_test::Contains;

namespace {

constexpr int kMostSeconds = 60;
constexpr std::int64_t kMostBytes = std::int64_t{3} << 30;  // of addresses, the tool's libraries among them
constexpr int kRefused = 3, kUnsupported = 4;

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

Outcome run_within_bounds(std::vector<std::string> arguments, const std::string& folder) {
  arguments.insert(arguments.begin(), {"prlimit", fmt::format("--cpu={}", kMostSeconds),
                                       fmt::format("--as={}", kMostBytes), BURIN_PROGRAM});
  return run_program(arguments, {"CUDA_VISIBLE_DEVICES="}, folder);
}

struct Sample {
  std::string name, against;  // files of the folder
  std::vector<ZipEntry> entries;
  std::string bytes;
  NpyTensor output;  // of `x.npy` and the like
  std::vector<std::string> run;
};

// The list of files in the manifest has the sizes and checksums of `entries`, so that no reader stops there.
void name_contents(std::vector<ZipEntry>& entries) {
  nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(entries.front().content);
  std::map<std::string, const std::string*> contents;
  for (const ZipEntry& entry : entries) contents[entry.name] = &entry.content;
  const auto crc = [](const std::string& text) {
    return crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  };
  for (auto& file : manifest["files"]) {
    const std::string& content = *contents.at(file["path"]);
    file["bytes"] = content.size();
    file["crc32"] = crc(content);
  }
  for (auto& kernel : manifest["kernels"]) {
    for (auto& binary : kernel["binaries"]) binary["bytes"] = contents.at(binary["path"])->size();
  }
  entries.front().content = manifest.dump(1);
}

enum class Part { manifest, plan, data, zip };
constexpr Part kParts[] = {Part::manifest, Part::plan, Part::data, Part::zip};

// One line of a plan or program, which are lists of strings in the manifest.
std::string with_other_line(Mutator& mutator, const std::string& text) {
  nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(text);
  std::vector<nlohmann::ordered_json*> texts;
  for (auto& kernel : manifest["kernels"]) texts.push_back(&kernel["plan"]);
  for (auto& program : manifest["programs"]) texts.push_back(&program);
  nlohmann::ordered_json& lines = *texts[mutator.below(texts.size())];
  std::string all;
  for (const auto& line : lines) all += line.get<std::string>() + "\n";
  all = mutator.mutate(all);
  lines.clear();
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    lines.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return manifest.dump(1);
}

std::string mutated(const Sample& sample, Part part, Mutator& mutator) {
  std::vector<ZipEntry> entries = sample.entries;
  for (ZipEntry& entry : entries) entry.compressed = mutator.below(2) == 0;
  switch (part) {
    case Part::manifest:
      entries.front().content = mutator.mutate(entries.front().content);
      break;
    case Part::plan:
      entries.front().content = with_other_line(mutator, entries.front().content);
      break;
    case Part::data: {
      std::string& content = entries[1 + mutator.below(entries.size() - 1)].content;
      content = mutator.mutate_bytes(content);
      name_contents(entries);
      break;
    }
    case Part::zip:
      return mutator.mutate_bytes(mutator.mutate_bytes(sample.bytes));
  }
  return make_zip(entries);
}

std::vector<Sample> make_samples(const ScratchFolder& folder) {
  struct Recipe {
    std::string name, against;
    std::vector<std::string> options;
    std::vector<std::int64_t> input;
  };
  folder.write("branched.onnx", branched_model().bytes());
  folder.write("chain.onnx", chain_model().bytes());
  write_safetensors(folder / "layer.safetensors", {TestLayer{}});
  const Recipe recipes[] = {
      {"network.burin", "branched.onnx", {"--batch", "1,2"}, {2, 3, 12, 12}},
      {"maps.burin", "chain.onnx", {"--skip-dead-tiles", "--kernels", "baked"}, {1, 3, 12, 12}},
      {"half.burin", "layer.safetensors", {"--precision", "fp16", "--batch", "2"}, {2, 4, 8, 8}},
      {"dense.burin", "layer.safetensors", {"--kernels", "dense"}, {1, 4, 8, 8}},
      {"library.burin", "layer.safetensors", {"--kernels", "cudnn"}, {1, 4, 8, 8}},
      {"product.burin", "branched.onnx", {"--kernels", "fc=linear_cublas"}, {1, 3, 12, 12}},
      {"streamed.burin", "layer.safetensors", {"--kernels", "streamed"}, {1, 4, 8, 8}},
  };
  std::vector<Sample> samples;
  for (const Recipe& recipe : recipes) {
    std::vector<std::string> compile = {"compile", recipe.against, "-o", recipe.name, "--arch", "sm_90", "--no-cache"};
    compile.insert(compile.end(), recipe.options.begin(), recipe.options.end());
    const Outcome compiled = run_burin(compile, {}, folder.path());
    INFO(compiled.err);
    REQUIRE(compiled.exit_code == 0);
    Sample sample;
    sample.name = recipe.name;
    sample.against = recipe.against;
    sample.entries = entries_of(folder / recipe.name);
    sample.bytes = read_file(folder / recipe.name);
    std::size_t count = 1;
    for (const std::int64_t extent : recipe.input) count *= static_cast<std::size_t>(extent);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
    write_npy(folder / (recipe.name + ".npy"), recipe.input, values);
    sample.run = {"run", "mutated.burin", "--input", recipe.name + ".npy", "--output", "y.npy", "--device", "host"};
    samples.push_back(sample);
  }
  return samples;
}

struct Count {
  int refused = 0, wrong = 0, right = 0, ran = 0;
  std::map<Part, int> of_part;
};

class Trial {
 public:
  explicit Trial(const ScratchFolder& folder) : folder_(folder) {}

  // What is wrong with how the tool took this package, if anything is.
  std::string operator()(Sample& sample, const std::string& bytes, Count& count) {
    write_file(folder_ / "mutated.burin", bytes);
    std::filesystem::remove(folder_ / "y.npy");
    const Outcome inspected = tool({"inspect", "mutated.burin"});
    const Outcome reported = tool({"report", "mutated.burin", "-o", "mutated.html"});
    const Outcome verified = tool({"verify", "mutated.burin", "--against", sample.against, "--device", "host", "--jobs",
                                   "1", "--images", "1", "--seed", "7"});
    const Outcome run = tool(sample.run);
    for (const Outcome* outcome : {&inspected, &reported, &verified, &run}) {
      const int code = outcome->exit_code;
      if (code < 0 || code > kUnsupported) return fmt::format("exit code {}: {}", code, outcome->err);
      if (code > 1 && outcome->err.empty()) return "no error is said";
      if (outcome->err.size() > 40'000) return "an error without end";
    }
    const bool has_output = std::filesystem::exists(folder_ / "y.npy");
    if (has_output != (run.exit_code == 0)) return "an output of a run that failed, or none";
    if (reported.exit_code != inspected.exit_code) return "report and inspect differ in whether it is a package";
    if (inspected.exit_code == kRefused && (verified.exit_code == 0 || run.exit_code == 0)) {
      return "inspect refuses what verify or run takes";
    }
    if (inspected.exit_code != 0) ++count.refused;
    if (verified.exit_code == 1) ++count.wrong;
    if (run.exit_code == 0) ++count.ran;
    if (verified.exit_code != 0) return "";
    ++count.right;
    if (run.exit_code != 0) return "";  // a name that is another
    const NpyTensor output = read_npy(folder_ / "y.npy");
    if (sample.output.values.empty()) sample.output = output;
    if (output.shape != sample.output.shape) return "an output of another shape";
    for (std::size_t i = 0; i < output.values.size(); ++i) {
      const float wanted = sample.output.values[i];
      if (!(std::abs(output.values[i] - wanted) <= 0.01F * (1 + std::abs(wanted)))) return "a wrong output";
    }
    return "";
  }

  double longest_seconds() const { return longest_; }

 private:
  Outcome tool(const std::vector<std::string>& arguments) {
    const auto begin = std::chrono::steady_clock::now();
    Outcome outcome = run_within_bounds(arguments, folder_.path());
    longest_ = std::max(longest_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return outcome;
  }

  const ScratchFolder& folder_;
  double longest_ = 0;
};

}  // namespace

TEST_CASE("mutated_packages_are_refused_or_right") {
  const ScratchFolder folder;
  std::vector<Sample> samples = make_samples(folder);
  Trial trial(folder);
  Count untouched;
  for (Sample& sample : samples) CHECK(trial(sample, sample.bytes, untouched) == "");
  CHECK(untouched.right == static_cast<int>(samples.size()));
  CHECK(untouched.ran == static_cast<int>(samples.size()));

  const int rounds = number_of("BURIN_MUTATIONS", 60), keep = number_of("BURIN_MUTATION_SEED", 20261124);
  Mutator mutator(static_cast<unsigned>(keep));
  Count count;
  for (int i = 0; i < rounds; ++i) {
    Sample& sample = samples[static_cast<std::size_t>(i) % samples.size()];
    const Part part = kParts[mutator.below(std::size(kParts))];
    const std::string bytes = mutated(sample, part, mutator);
    const std::string fault = trial(sample, bytes, count);
    if (fault.empty()) continue;
    const std::string kept = fmt::format("mutated-{}-{}.burin", keep, i);
    write_file(kept, bytes);
    FAIL_CHECK(fmt::format("{} of {} (part {}): {}", kept, sample.name, static_cast<int>(part), fault));
  }
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  WARN(fmt::format("{} packages: {} refused, {} wrong, {} right, {} ran; {:.1f} s the longest, {} MiB the most", rounds,
                   count.refused, count.wrong, count.right, count.ran, trial.longest_seconds(),
                   children.ru_maxrss >> 10));
  CHECK(count.refused > rounds / 4);
  CHECK(count.wrong > rounds / 40);
  CHECK(count.right > rounds / 40);
  CHECK(trial.longest_seconds() < kMostSeconds);
}
