// Plans that no planner would choose: every attribute is set by the test.
#pragma once

#include <optional>

#include "ir/baked_plan.h"
#include "ir/conv_layer.h"
#include "test/ir/random_layers.h"

namespace burin_test {

struct HandPlan {
  burin::PixelTile tile = {1, 4, 5};  // rows and columns of outputs
  int idle_warps = 0;                 // threads beyond the pixels, in warps
  int group_channels = 8;             // of the fullest group
  int splits = 1;
  bool cluster = false;   // the splits are the blocks of a cluster
  int cluster_tiles = 1;  // tiles in a cluster
  int stage_channels = 4;
  int buffers = 2;
  int channels_per_row = 1;
  bool phases = false;    // columns are split into as many phases as the stride
  int padding_words = 0;  // added to each pitch; with bulk staging to the image pitch and, rounded up, to the margin
  int barrier_every = 0;
  int load_ahead = 8;
  int load_together = 1;      // of direct loads
  bool all_channels = false;  // stage the channels too that no nonzero of the group reads
  burin::Staging staging = burin::Staging::shared;
  bool backwards = false;  // outputs and, but for bulk staging, channels in descending order
  burin::TensorLayout input_layout = burin::TensorLayout::nchw;
  burin::TensorLayout output_layout = burin::TensorLayout::nchw;
  burin::Precision precision = burin::Precision::fp32;  // the half precisions have layouts of their own
  int promote_every = 0;
  bool keeps_halves = true;  // where a plan may have that
  std::optional<burin::PixelTile> skips =
      {};  // cell of the input's activity map, cut to the input; images as of a tile
  bool marks = false;
};

// The tile is cut to the output. Channels are dealt to the splits in turn. With bulk staging, where only whole rows and
// runs of channels can be copied, the tile gets all columns, one image if it has not all rows, and the splits get runs
// of channels; these and the stages are rounded up to what bulk copies can bring.
burin::BakedPlan plan_by_hand(const burin::ConvLayer& layer, const HandPlan& hand, const std::string& arch = "sm_90");

// A legal one, every attribute drawn but the layouts and the precision.
HandPlan random_hand_plan(const burin::ConvLayer& layer, Random& random, const std::string& arch = "sm_90",
                          burin::Precision precision = burin::Precision::fp32);

}  // namespace burin_test
