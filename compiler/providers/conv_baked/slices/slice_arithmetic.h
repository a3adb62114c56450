// What becomes of one nonzero: the instructions of each precision, and the thread's sums that they add to.
#pragma once

#include <vector>

#include "compiler/providers/conv_baked/slices/slice_parts.h"

namespace burin {

// An activation that the thread has loaded: a word, which with the half precisions holds those of two images.
struct LoadedActivation {
  llvm::Value* word = nullptr;
  // Null when the filter position lies in the image, or in staged zeros, for every pixel.
  llvm::Value* inside = nullptr;
  llvm::Value *low = nullptr, *high = nullptr;  // the halves in FP32, once they were needed
};

class SliceArithmetic {
 public:
  explicit SliceArithmetic(SliceParts& parts);

  void begin_slice(const std::vector<int>& group);
  // Between these, sums are values of a body, whose first argument is the thread's array of sums.
  void begin_body();
  void end_body(HoleBody& body);

  // Adds weight * activation to accumulator j. Instructions that are the nonzero's own bear the body's debug
  // location, others none.
  void multiply_add(HoleBody& body, int j, LoadedActivation& activation, float weight);

  // Between bodies, for multiply-adds that may be skipped: sums in FP16 go over to FP32 ones where `terms` more, per
  // accumulator, would be too many. What a region that is skipped does not promote would grow too long.
  void make_room(HoleBody& body, const std::vector<int>& terms);
  // What was built since `before` was running() lies behind a branch.
  void may_have_been_skipped(const std::vector<RunningSum>& before);

  // Per accumulator of the slice, as far as it was built.
  const std::vector<RunningSum>& running() const { return running_; }

 private:
  void add_single(HoleBody& body, int slot, llvm::Value* activation, llvm::Value* inside, float weight,
                  const char* suffix);
  void add_pair(HoleBody& body, int j, llvm::Value* activations, float weight);
  void promote(HoleBody& body, int j);
  llvm::Value*& sum(HoleBody& body, int slot);

  SliceParts& parts_;
  llvm::Function *tap_, *tap_if_, *low_, *high_, *add_, *pair_start_, *pair_first_, *pair_tap_;
  const std::vector<int>* group_ = nullptr;
  std::vector<llvm::Value*> sums_;  // by slot; null: untouched in this body
  std::vector<RunningSum> running_;
};

}  // namespace burin
