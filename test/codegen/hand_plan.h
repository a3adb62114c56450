// Plans that no planner would choose: every attribute is set by the test.
#pragma once

#include "ir/conv_layer.h"
#include "ir/kernel_plan.h"
#include "test/ir/random_layers.h"

namespace burin_test {

struct HandPlan {
  burin::PixelTile tile = {1, 4, 5};
  int idle_warps = 0;      // threads beyond the pixels, in warps
  int group_channels = 8;  // of the fullest group
  int splits = 1;
  bool cluster = false;  // the splits are the blocks of a cluster
  int stage_channels = 4;
  int buffers = 2;
  int channels_per_row = 1;
  int padding_words = 0;  // added to each pitch
  int barrier_every = 0;
  int load_ahead = 8;
  bool all_channels = false;  // stage the channels too that no nonzero of the group reads
  bool direct = false;        // activations come from global memory: 1x1 without padding only
  bool backwards = false;     // channels and outputs in descending order
};

// The tile is cut to the output. Channels are dealt to the splits in turn.
burin::KernelPlan plan_by_hand(const burin::ConvLayer& layer, const HandPlan& hand, const std::string& arch = "sm_90");

// A legal one, every attribute drawn.
HandPlan random_hand_plan(const burin::ConvLayer& layer, Random& random, const std::string& arch = "sm_90");

}  // namespace burin_test
