// The comments in generated PTX: how they are written (fmt) and found again (scanf).
#pragma once

namespace burin {

inline constexpr const char* kSliceNote = "slice: group {}, split {}";
inline constexpr const char* kSliceNoteScan = "slice: group %d, split %d";
inline constexpr const char* kStageNote = "stage {}";
inline constexpr const char* kLoadNote = "channel {} tap ({}, {})";
inline constexpr const char* kLoadNoteScan = "channel %d tap (%d, %d)";
inline constexpr const char* kTapNote = "output {} += w * channel {} tap ({}, {})";

}  // namespace burin
