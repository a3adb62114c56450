// From a template that the build embedded to a kernel's module: what all providers have in common.
#pragma once

#include <llvm/IR/PassManager.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "compiler/kernel_cluster.h"
#include "compiler/specialise/specialised_module.h"
#include "ir/template_plan.h"

namespace burin {

// A module that the build embedded (templates/embedded.h), parsed and without attributes that name one GPU.
std::unique_ptr<llvm::Module> parse_embedded(llvm::LLVMContext& context, std::string_view name);

// A template's constants are functions without a body, whose calls are replaced by numbers: burin_const_NAME() becomes
// integers[NAME], burin_real_NAME() becomes reals[NAME]; the functions are gone afterwards. What the template does not
// use is passed over. A constant without a value is a fault of ours.
void fill_constants(llvm::Module& module, const std::map<std::string, std::int64_t>& integers,
                    const std::map<std::string, float>& reals);

// What a template has in place of a user's function NAME, burin_call_NAME(), becomes calls of the symbol that
// calls[NAME] is. Where nothing calls it, or it has no symbol, it stays as it is.
void name_calls(llvm::Module& module, const std::map<std::string, std::string>& calls);

// The lists of what must be kept though nobody calls it.
void drop_used_lists(llvm::Module& module);

// The usual -O2 clean-up, for small modules as clang wrote them: templates and device primitives.
void simplify(llvm::Module& module);

// Inlines what is marked so, drops what nobody calls any more, and runs `clean` over each function.
void inline_marked(llvm::Module& module, llvm::FunctionPassManager clean);

inline constexpr int kAllRegisters = 255;  // of a thread

// Gives the template's entry the kernel's symbol, and says what the assembler must know of the launch: the threads of a
// block, its cluster, and a cap on each thread's registers where it is less than all of them. The module is complete
// then, and is checked.
void finish_entry(SpecialisedModule& specialised, const std::string& template_name, int threads,
                  const ClusterExtent& cluster, int max_registers = kAllRegisters);

// Kernels whose weights are data have these: the template as it is before its constants are filled in (the dump's
// 40-template.ll), and their module. Throws Error(bad_input) with all faults of a plan that does not verify. `symbol`
// becomes the entry's name.
std::string print_template(const TemplatePlan& plan);
SpecialisedModule specialise_template(const TemplatePlan& plan, const std::string& symbol);

}  // namespace burin
