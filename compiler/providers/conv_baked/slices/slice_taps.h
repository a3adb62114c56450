// The stages of a slice: the copies of each, when they begin, and its straight-line heart, the multiply-adds.
#pragma once

#include <map>
#include <span>
#include <string>

#include "compiler/providers/conv_baked/slices/slice_arithmetic.h"
#include "compiler/providers/conv_baked/slices/slice_parts.h"

namespace burin {

// With fewer channels a loop's frame outweighs what it saves: the template's loop copies four at once.
inline constexpr int kLoopedCopies = 8;

class TapBuilder {
 public:
  explicit TapBuilder(SliceParts& parts);

  void begin_slice(const SliceProgram& program);

  // The body of `hole`: the multiply-adds of one stage. Each activation is loaded `load_ahead` loads before its
  // multiply-adds. Accumulators are read from the thread's array at the start and written back at the end.
  //
  // Where the plan skips dead channels, the code of each channel (or block of four) is a region behind a branch on the
  // channel's bit; loads run ahead within it. A stage without a live channel is passed by in one branch. With direct
  // staging, where a channel is one load and a load takes long, only the multiply-adds are behind the branch.
  llvm::Function* build(llvm::StringRef hole, const StageProgram& stage);

  const std::vector<RunningSum>& running() const { return arithmetic_.running(); }

 private:
  // Where the multiply-adds of a stage have got to.
  struct Walk {
    HoleBody& body;
    const StageProgram& stage;
    std::vector<LoadedActivation> loaded;
    std::map<std::uint32_t, llvm::Value*> inside = {};  // by LoadedTap::outside
    int since_barrier = 0;                              // multiply-adds
    int batches = 0;                                    // that have begun behind others
    bool all_inside = false;  // in code that only threads run whose filter positions lie in the image
  };

  std::size_t ahead() const;
  // Loads that begin together. Direct loads take long, and left alone the assembler may wait for each as soon as the
  // few after it have begun; across the borders of batches it moves nothing.
  std::size_t batch() const;
  // load_first() builds those of the loads from `first` to `end` that come before the first multiply-add; multiply(),
  // the multiply-adds, each with the load that comes as many loads ahead.
  void load_first(Walk& walk, std::size_t first, std::size_t end);
  void load_batch(Walk& walk, std::size_t first, std::size_t end);
  void multiply(Walk& walk, std::size_t first, std::size_t end);
  // Threads whose filter positions lie beyond the image, the same for all of these loads, jump over the multiply-adds.
  void multiply_inside(Walk& walk, std::size_t first, std::size_t end);
  // All of the loads from `first` to `end` and their multiply-adds.
  void multiply_run(Walk& walk, std::size_t first, std::size_t end);
  void add_uses(Walk& walk, std::size_t n);
  void multiply_live(Walk& walk);
  void multiply_live_directly(Walk& walk);
  // What `add` builds, behind a branch.
  template <typename Add>
  void if_live(Walk& walk, llvm::Value* live, const std::string& name, Add add);
  void load(Walk& walk, std::size_t n);
  // 0 beyond the image; inside not, and all bits where masks_pairs().
  llvm::Value* inside(Walk& walk, std::uint32_t outside);
  // Whether pairs of halves beyond the image are multiplied as zeros.
  bool masks_pairs() const;
  // A barrier, when it is time for one.
  void keep_together(Walk& walk);
  // `inside`: null when the filter position lies in the image, or in staged zeros, for every pixel.
  llvm::Value* load_activation(HoleBody& body, llvm::Value* base, std::int64_t offset, llvm::Value* inside);
  void locate(HoleBody& body, const LoadedTap& load, int lane, int k);

  SliceParts& parts_;
  SliceArithmetic arithmetic_;
  const std::vector<int>* group_ = nullptr;
  int first_live_word_ = 0;
  llvm::Function *load_, *load_if_, *inside_;  // the loads of the plan's staging, precision and layout
};

// Adds the bodies of `prologue` and `stages`; with Staging::bulk of `stages` alone, since the entry has started the
// first copies; with Staging::direct of `direct`.
void build_stages(SliceParts& parts, TapBuilder& taps, const SliceProgram& program, HoleBodies& bodies);

}  // namespace burin
