// Steps without dead channels: columns of channels that are zero all over the tile are left out, whatever their
// weights.
//
// A panel's slots, of which a step has so many, are dealt anew once the tile is staged: first those whose channel has a
// nonzero, in their order, then the others, and as many steps are multiplied as the first ones fill. What fills up the
// last of them is multiplied with zeros. In the panel the weights of a slot lie side by side (by_column of packing.h),
// in runs of eight rows that take turns, so that the slots of a step lie in different banks whichever they are.
//
// Shared memory, from `lists_start`: a bit for each channel of the block that lives; for each row of warps, for each 32
// of its slots, a bit for each that lives; for each row of warps how many of these each of its warps has; for each row
// of warps the slots as they were dealt, a word each: where the column's first octet lies, in units of kPlaceUnit, and
// which slot of the panel it was.
#pragma once

#include "compiler/providers/conv_gathered/steps.h"

constexpr u32 kPlaceUnit = 16, kSlotBits = 16;
constexpr u32 kMaxRowParts = 16;        // warps of a row of warps
constexpr u32 kEmptySlot = 0x80000000;  // of a column's word: no column has the slot

// ---- sizes, all constants
BURIN_DEVICE u32 step_slots() { return column_bytes() / kWordBytes; }
BURIN_DEVICE u32 slot_limit() { return step_limit() * step_slots(); }  // of a row of warps
BURIN_DEVICE u32 mask_limit() { return divide_up(slot_limit(), kWarpThreads); }
BURIN_DEVICE u32 warps_of_row() { return octet_warps() * split_warps(); }
BURIN_DEVICE u32 warp_masks() { return divide_up(mask_limit(), warps_of_row()); }  // that a warp has of its row's
BURIN_DEVICE u32 channel_words() { return divide_up(split_channels(), kWarpThreads); }
BURIN_DEVICE u32 masks_offset() { return channel_words() * kWordBytes; }
BURIN_DEVICE u32 counts_offset() { return masks_offset() + row_warps() * mask_limit() * kWordBytes; }
BURIN_DEVICE u32 dealt_offset() { return counts_offset() + row_warps() * warps_of_row() * kWordBytes; }
BURIN_DEVICE u32 lists_bytes() { return skip_dead() ? dealt_offset() + row_warps() * slot_limit() * kWordBytes : 0; }
BURIN_DEVICE u32 block_warps() { return block_threads() / kWarpThreads; }

// Lists of a block: where they are, where the activations are staged, and how many bytes a channel has of them, of
// which not all need be written.
struct Lists {
  u32 start, panel, staged, channel_bytes, written_bytes;
};

// ---- dealing
// A warp looks through 32 channels at once, a lane each: an odd number of octets lies between them.
constexpr u32 kQuadsAtOnce = 8;
BURIN_DEVICE void find_live_channels(const Lists& lists, u32 channels) {
  constexpr u32 kHalfMagnitudes = 0x7FFF7FFF, kMagnitude = 0x7FFFFFFF;
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
#pragma nounroll
  for (u32 number = thread / kWarpThreads; number < channel_words(); number += block_warps()) {
    const u32 channel = number * kWarpThreads + lane;
    u32 bits = 0;
    if (channel < channels) {
#pragma unroll kQuadsAtOnce
      for (u32 byte = 0; byte < lists.written_bytes; byte += kQuadBytes) {
        const u32x4 words = bits_of(burin_dev_shared_load4(lists.staged + channel * lists.channel_bytes + byte, 0));
        bits |= words[0] | words[1] | words[2] | words[3];
      }
    }
    const u32 live = burin_dev_ballot((bits & (is_tf32() ? kMagnitude : kHalfMagnitudes)) != 0);
    if (lane == 0) burin_dev_shared_store_word(lists.start + number * kWordBytes, 0, live);
  }
}

// The word of a slot's column, or one of an empty slot. `slots`: those of the row of warps that have a step.
BURIN_DEVICE u32 column_of_slot(const Lists& lists, u32 row_warp, u32 slot, u32 slots) {
  if (slot >= slots) return kEmptySlot;
  // In TF32 the columns that a lane reads lie side by side.
  const u32 of_step = slot % step_slots(), word = is_tf32() ? of_step % 4 * 4 + of_step / 4 : of_step;
  return burin_dev_shared_load_word(step_at(lists.panel, row_warp, slot / step_slots()) + word * kWordBytes,
                                    columns_offset());
}
BURIN_DEVICE bool lives(const Lists& lists, u32 column) {
  if ((column & kEmptySlot) != 0) return false;
  const u32 channel = column / lists.channel_bytes;
  const u32 word = burin_dev_shared_load_word(lists.start + channel / kWarpThreads * kWordBytes, 0);
  return (word >> channel % kWarpThreads & 1) != 0;
}
BURIN_DEVICE u32 mask_place(const Lists& lists, u32 row_warp, u32 mask) {
  return lists.start + masks_offset() + (row_warp * mask_limit() + mask) * kWordBytes;
}
BURIN_DEVICE u32 count_place(const Lists& lists, u32 row_warp, u32 warp) {
  return lists.start + counts_offset() + (row_warp * warps_of_row() + warp) * kWordBytes;
}
BURIN_DEVICE u32 dealt_place(const Lists& lists, u32 row_warp, u32 slot) {
  return lists.start + dealt_offset() + (row_warp * slot_limit() + slot) * kWordBytes;
}
BURIN_DEVICE u32 slots_of_row(const Lists& lists, u32 row_warp) {
  return steps_of_panel(lists.panel, row_warp) * step_slots();
}

// A warp of a row of warps has so many of the row's masks, one behind the other.
struct RowWarp {
  u32 row, number, lane;
};
constexpr u32 kMasksAtOnce = 4;
BURIN_DEVICE void mark_live_slots(const Lists& lists, const RowWarp& warp) {
  const u32 slots = slots_of_row(lists, warp.row);
  u32 live = 0;
#pragma unroll kMasksAtOnce
  for (u32 i = 0; i < warp_masks(); ++i) {
    const u32 number = warp.number * warp_masks() + i;
    if (number >= mask_limit()) continue;
    const u32 column = column_of_slot(lists, warp.row, number * kWarpThreads + warp.lane, slots);
    const u32 mask = burin_dev_ballot(lives(lists, column));
    live += __builtin_popcount(mask);
    if (warp.lane == 0) burin_dev_shared_store_word(mask_place(lists, warp.row, number), 0, mask);
  }
  if (warp.lane == 0) burin_dev_shared_store_word(count_place(lists, warp.row, warp.number), 0, live);
}

// Live slots of the row's first warps.
BURIN_DEVICE u32 live_slots(const Lists& lists, u32 row_warp, u32 warps) {
  u32 live = 0;
#pragma unroll
  for (u32 i = 0; i < kMaxRowParts; ++i) {
    if (i >= warps_of_row()) continue;
    const u32 count = burin_dev_shared_load_word(count_place(lists, row_warp, i), 0);
    live += i < warps ? count : 0;
  }
  return live;
}
BURIN_DEVICE void deal_slots(const Lists& lists, const RowWarp& warp) {
  const u32 slots = slots_of_row(lists, warp.row), all_live = live_slots(lists, warp.row, warps_of_row());
  u32 before = live_slots(lists, warp.row, warp.number);
#pragma unroll kMasksAtOnce
  for (u32 i = 0; i < warp_masks(); ++i) {
    const u32 number = warp.number * warp_masks() + i;
    if (number >= mask_limit()) continue;
    const u32 mask = burin_dev_shared_load_word(mask_place(lists, warp.row, number), 0);
    const u32 slot = number * kWarpThreads + warp.lane;
    const u32 live_before = before + __builtin_popcount(mask & ((1u << warp.lane) - 1));
    const u32 dealt = (mask >> warp.lane & 1) != 0 ? live_before : all_live + slot - live_before;
    before += __builtin_popcount(mask);
    if (slot >= slots) continue;
    const u32 column = column_of_slot(lists, warp.row, slot, slots) & ~kEmptySlot;
    burin_dev_shared_store_word(dealt_place(lists, warp.row, dealt), 0, column / kPlaceUnit << kSlotBits | slot);
  }
}

// All threads of the block call it behind a barrier, when the tile is staged; it ends with one.
BURIN_DEVICE void deal(const Lists& lists, const RowWarp& warp, u32 channels) {
  find_live_channels(lists, channels);
  burin_dev_barrier();
  mark_live_slots(lists, warp);
  burin_dev_barrier();
  deal_slots(lists, warp);
  burin_dev_barrier();
}

// ---- products
// Where eight rows of a slot's weights lie: they take turns with those of the slots beside it.
BURIN_DEVICE u32 eights_of_slot() { return 2 * warp_tiles(); }
BURIN_DEVICE u32 bank_eights() { return kBankBytes / octet_bytes(); }
BURIN_DEVICE u32 turn_of_slot(u32 slot) {
  const u32 together = eights_of_slot() < bank_eights() ? bank_eights() / eights_of_slot() : 1;
  const u32 turns = eights_of_slot() < bank_eights() ? eights_of_slot() : bank_eights();
  return slot / together % turns;
}
BURIN_DEVICE u32 weights_of_slot(u32 panel, u32 row_warp, u32 slot) {
  return step_at(panel, row_warp, slot / step_slots()) + slot % step_slots() * eights_of_slot() * octet_bytes();
}

constexpr u32 kStepParts = 4;  // whose slots' weights a lane has addresses of: two of halves, four of words
BURIN_DEVICE void load_live_step(const Lists& lists, u32 row_warp, u32 number, u32 lane, Step& step) {
  const u32 first = dealt_place(lists, row_warp, number * step_slots());
  u32 rows[kStepParts], turns[kStepParts];
#pragma unroll
  for (u32 part = 0; part < kStepParts; ++part) {
    if (!is_tf32() && part >= 2) continue;
    // Words are those of columns that the lane reads; of halves the lane says where the rows of a slot are.
    const u32 of_step = is_tf32() ? 4 * part + lane % 4 : 16 * part + lane % 8 + lane / 16 * 8;
    const u32 slot = burin_dev_shared_load_word(first + of_step * kWordBytes, 0);
    if (is_tf32()) step.columns[part] = slot >> kSlotBits << 4;
    rows[part] = weights_of_slot(lists.panel, row_warp, slot % (1u << kSlotBits));
    turns[part] = turn_of_slot(slot % (1u << kSlotBits));
  }
  if (!is_tf32()) {
    step.columns[0] = burin_dev_shared_load_word(first + lane * kWordBytes, 0) >> kSlotBits << 4;
  }
#pragma unroll
  for (u32 tile = 0; tile < kMaxTiles; ++tile) {
    if (tile >= static_cast<u32>(warp_tiles())) continue;
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      u32x4& weights = step.weights[2 * tile + half];
      if (is_tf32()) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
          const u32 part = 2 * half + i / 2, eight = (2 * tile + i % 2) ^ turns[part];
          weights[i] = burin_dev_shared_load_word(rows[part] + eight * octet_bytes() + lane / 4 * kWordBytes, 0);
        }
      } else {
        const u32 eight = (2 * tile + lane / 8 % 2) ^ turns[half];
        weights = burin_dev_shared_load_rows(rows[half] + eight * octet_bytes(), 0);
      }
    }
  }
}

// The steps that a split has of those with live slots.
template <typename ColumnAt, typename PlaceOf>
BURIN_DEVICE void multiply_live_steps(const Lists& lists, u32 row_warp, u32 split, u32 lane, ColumnAt column_at,
                                      PlaceOf place_of, Sums& sums) {
  const u32 steps = divide_up(live_slots(lists, row_warp, warps_of_row()), step_slots());
  const auto load = [&](u32 number, Step& step) BURIN_INLINED { load_live_step(lists, row_warp, number, lane, step); };
  multiply_some(split, steps, split_warps(), load, column_at, place_of, sums);
}
