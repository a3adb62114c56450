// Every capacity limit of burin, in one place. Each has an error of its own that names it.
#pragma once

#include <cstdint>

namespace burin {

inline constexpr int kMaxKernelExtent = 11;        // rows or columns of a filter
inline constexpr int kMaxChannels = 1 << 16;       // input or output channels of a layer
inline constexpr int kMaxSpatialExtent = 1 << 15;  // rows or columns of an image
inline constexpr int kMaxStride = 64;              // also bounds dilation
inline constexpr int kMaxPadding = 1 << 10;        // on each side
inline constexpr int kMaxBatch = 1 << 20;          // images in one launch
inline constexpr std::int64_t kMaxLayerWeights = 1 << 28;
inline constexpr std::int64_t kMaxImageBytes = (std::int64_t{1} << 31) - 1;  // one image, all channels: 32-bit offsets
inline constexpr std::int64_t kMaxLayerNonzeros = 4'000'000;  // every nonzero is an instruction of 16 bytes
inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kWarpSize = 32;
inline constexpr int kMaxGroupChannels = 128;   // accumulators of one thread
inline constexpr int kMaxLayerNameBytes = 512;  // also of operators and tensors

// Graphs.
inline constexpr std::int64_t kMaxNetworkWeights = 1 << 29;
inline constexpr int kMaxOperators = 100'000;    // of a network
inline constexpr int kMaxActivationRank = 6;     // axes of one image
inline constexpr int kMaxOperatorInputs = 4096;  // of a concat; parts of a split
inline constexpr int kMaxPlanSteps = 20'000;     // of the plan of a network: which waits for which is a square table
inline constexpr std::int64_t kMaxPlanPairs = 1 << 25;  // of a write and another use of a tensor, in all of them
inline constexpr std::int64_t kMaxPlanWaits = 1 << 20;  // of a step for another, in all plans of a package
inline constexpr std::int64_t kMaxArenaBytes = std::int64_t{1} << 40;   // and of any buffer of such a plan
inline constexpr int kMaxBatchSizes = 256;                              // of all ranges of --batch together
inline constexpr std::int64_t kMaxMemoryLimit = std::int64_t{1} << 44;  // of --memory-limit, in bytes
inline constexpr int kMaxGraphLaunches = 200'000;         // of one CUDA graph: a batch that is run in several parts
inline constexpr int kMaxTaps = 1 << 10;                  // rows or columns that a resampled one is made of
inline constexpr std::int64_t kMaxTapTable = 1 << 20;     // of all rows, or columns, together
inline constexpr int kMaxNormalizedHalves = 768;          // channels of a normalization of pixels in halves
inline constexpr std::int64_t kMaxMadeWeights = 1 << 22;  // that an importer makes where the file has none
inline constexpr int kMaxPoolExtent = 1 << 10;            // rows or columns of a pooling window, and how far it moves

// Packages. A reader refuses what is over them before it takes the memory.
inline constexpr std::int64_t kMaxPackageEntryBytes = std::int64_t{512} << 20;  // one file of a package
inline constexpr std::int64_t kMaxPackageBytes = std::int64_t{2} << 30;         // all files of a package together
inline constexpr std::int64_t kMaxManifestBytes = std::int64_t{64} << 20;
inline constexpr int kMaxPackageEntries = 100'000;
inline constexpr int kMaxPackagePathBytes = 1024;  // a path inside a package
inline constexpr int kMaxSymbolBytes = 1024;
inline constexpr int kMaxTensorRank = 64;
inline constexpr int kMaxSharedBytes = 232'448;  // of a block, on the largest architecture: 227 KiB
inline constexpr int kMaxSlices = 65'535;        // grid y
inline constexpr int kMaxClusterBlocks = 8;      // what the hardware surely places together
inline constexpr std::int64_t kMaxTiles = (std::int64_t{1} << 31) - 1;  // grid x
inline constexpr int kMaxTuningPlans = 100;                             // of burin tune --plans
inline constexpr int kMaxUnmodelledCandidates = 16;                     // that are measured beside them
inline constexpr int kMaxTuningCandidates = 2 * kMaxTuningPlans + kMaxUnmodelledCandidates;  // of one kernel
inline constexpr int kMaxStudyPoints = 1000;
inline constexpr std::int64_t kMaxStudyTensorBytes = std::int64_t{8} << 30;  // input and output of one of them, in FP32
inline constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{1} << 40;    // scratch of one launch

}  // namespace burin
