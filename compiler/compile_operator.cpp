#include "compiler/compile_operator.h"

#include <fmt/format.h>

#include "compiler/assemble/assemble.h"
#include "compiler/emit/ptx.h"
#include "compiler/observer.h"
#include "compiler/packaged_kernel.h"
#include "compiler/source_hash.h"
#include "compiler/specialise/operator_module.h"

namespace burin {
namespace {

std::string bytes_of_words(const std::vector<std::uint32_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint32_t)};
}

}  // namespace

std::optional<PackagedOperator> compile_operator(const OperatorJob& job, const CompileOptions& options,
                                                 const std::optional<std::string>& dump_folder) {
  const OperatorPlan& plan = job.planned.plan;
  Observer observer(dump_folder, options.stop_after);
  if (observer.observe("layer", "10-layer.txt", [&] { return job.kind + " " + job.op + "\n"; })) return std::nullopt;
  if (observer.observe("plan", "30-plan.txt", [&] { return print(plan); })) return std::nullopt;

  PackagedOperator packaged;
  OperatorRecord& record = packaged.record;
  record.symbol = job.symbol;
  record.op = job.op;
  record.kind = job.kind;
  record.plan = plan;
  record.input = job.planned.input;
  record.second = job.planned.second;
  const std::string weights = bytes_of_words(job.planned.weights);
  if (!weights.empty()) {
    record.weights = "weights/" + job.symbol + ".bin";
    packaged.files.emplace_back(record.weights, weights);
  }
  record.source_hash = source_hash(plan, weights);

  const SpecialisedModule specialised = specialise_operator(plan, job.symbol);
  if (observer.observe("specialised", "50-specialised.ll", [&] { return print(specialised); })) return std::nullopt;
  const std::string path = "kernels/" + job.symbol, ptx_arch = lowest_arch(options.archs);
  std::string ptx = emit_ptx(specialised, ptx_arch);
  if (options.keep_bitcode) add_file(packaged, BinaryKind::bitcode, "", path + ".bc", to_bitcode(specialised));
  if (observer.observe("ptx", "60-kernel.ptx", [&] { return ptx; })) return std::nullopt;
  if (find_assembler().kind != AssemblerInfo::Kind::none) {
    for (const std::string& arch : options.archs) {
      add_cubin(packaged, arch, assemble(ptx, arch, job.symbol));
    }
  }
  add_file(packaged, BinaryKind::ptx, ptx_arch, path + ".ptx", std::move(ptx));
  return packaged;
}

}  // namespace burin
