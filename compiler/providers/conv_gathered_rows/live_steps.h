// Steps without dead channels: columns of channels that are zero all over the tile are left out, whatever their weights.
//
// A panel's slots, of which a step has so many, are dealt anew once the tile is staged: first those whose channel has a
// nonzero, in their order, then the others, and as many steps are multiplied as the first ones fill. What fills up the
// last of them is multiplied with zeros. In the panel the weights of a slot lie side by side (by_column of packing.h),
// in runs of eight rows that take turns, so that the slots of a step lie in different banks whichever they are.
//
// Shared memory, from `lists_start`: for each channel of the block whether it lives; for each row of warps, for each 32
// of its slots, a bit for each that lives; for each row of warps the slots as they were dealt, a word each: where the
// column's first octet lies, in units of kPlaceUnit, and which slot of the panel it was.
#pragma once

#include "compiler/providers/conv_gathered/steps.h"

constexpr u32 kPlaceUnit = 16, kSlotBits = 16;
constexpr u32 kEmptySlot = 0x80000000;  // of a column's word: no column has the slot

// ---- sizes, all constants
BURIN_DEVICE u32 step_slots() { return column_bytes() / kWordBytes; }
BURIN_DEVICE u32 slot_limit() { return step_limit() * step_slots(); }  // of a row of warps
BURIN_DEVICE u32 mask_limit() { return divide_up(slot_limit(), kWarpThreads); }
BURIN_DEVICE u32 masks_offset() { return split_channels() * kWordBytes; }
BURIN_DEVICE u32 dealt_offset() { return masks_offset() + row_warps() * mask_limit() * kWordBytes; }
BURIN_DEVICE u32 lists_bytes() { return skip_dead() ? dealt_offset() + row_warps() * slot_limit() * kWordBytes : 0; }
BURIN_DEVICE u32 block_warps() { return block_threads() / kWarpThreads; }

// Lists of a block: where they are, where the activations are staged, and how many bytes a channel has of them, of
// which not all need be written.
struct Lists {
  u32 start, panel, staged, channel_bytes, written_bytes;
};

// ---- dealing
// A warp looks through a channel, of which a lane has every 32nd quad.
BURIN_DEVICE void find_live_channels(const Lists& lists, u32 channels) {
  constexpr u32 kHalfMagnitudes = 0x7FFF7FFF, kMagnitude = 0x7FFFFFFF;
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
#pragma nounroll
  for (u32 channel = thread / kWarpThreads; channel < channels; channel += block_warps()) {
    u32 bits = 0;
    for (u32 first = 0; first < lists.written_bytes; first += kWarpQuadBytes) {
      if (first + lane * kQuadBytes >= lists.written_bytes) continue;
      const u32x4 words = bits_of(
          burin_dev_shared_load4(lists.staged + channel * lists.channel_bytes + first + lane * kQuadBytes, 0));
      bits |= words[0] | words[1] | words[2] | words[3];
    }
    const u32 live = burin_dev_ballot((bits & (is_tf32() ? kMagnitude : kHalfMagnitudes)) != 0) != 0;
    if (lane == 0) burin_dev_shared_store_word(lists.start + channel * kWordBytes, 0, live);
  }
}

// The word of a slot's column, or one of an empty slot.
BURIN_DEVICE u32 column_of_slot(const Lists& lists, u32 row_warp, u32 slot) {
  if (slot >= steps_of_panel(lists.panel, row_warp) * step_slots()) return kEmptySlot;
  // In TF32 the columns that a lane reads lie side by side.
  const u32 of_step = slot % step_slots(), word = is_tf32() ? of_step % 4 * 4 + of_step / 4 : of_step;
  return burin_dev_shared_load_word(step_at(lists.panel, row_warp, slot / step_slots()) + word * kWordBytes,
                                    columns_offset());
}
BURIN_DEVICE bool lives(const Lists& lists, u32 column) {
  if ((column & kEmptySlot) != 0) return false;
  return burin_dev_shared_load_word(lists.start + column / lists.channel_bytes * kWordBytes, 0) != 0;
}
BURIN_DEVICE u32 mask_place(const Lists& lists, u32 number) {
  return lists.start + masks_offset() + number * kWordBytes;
}
BURIN_DEVICE void mark_live_slots(const Lists& lists) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
#pragma nounroll
  for (u32 number = thread / kWarpThreads; number < row_warps() * mask_limit(); number += block_warps()) {
    const u32 row_warp = number / mask_limit(), slot = number % mask_limit() * kWarpThreads + lane;
    const u32 mask = burin_dev_ballot(lives(lists, column_of_slot(lists, row_warp, slot)));
    if (lane == 0) burin_dev_shared_store_word(mask_place(lists, number), 0, mask);
  }
}
BURIN_DEVICE u32 live_slots(const Lists& lists, u32 row_warp, u32 masks) {
  u32 live = 0;
  for (u32 i = 0; i < masks; ++i) {
    live += __builtin_popcount(burin_dev_shared_load_word(mask_place(lists, row_warp * mask_limit() + i), 0));
  }
  return live;
}
BURIN_DEVICE u32 dealt_place(const Lists& lists, u32 row_warp, u32 slot) {
  return lists.start + dealt_offset() + (row_warp * slot_limit() + slot) * kWordBytes;
}
BURIN_DEVICE void deal_slots(const Lists& lists) {
  const u32 thread = burin_dev_thread(), lane = thread % kWarpThreads;
#pragma nounroll
  for (u32 number = thread / kWarpThreads; number < row_warps() * mask_limit(); number += block_warps()) {
    const u32 row_warp = number / mask_limit(), of_row = number % mask_limit();
    const u32 slot = of_row * kWarpThreads + lane;
    if (slot >= steps_of_panel(lists.panel, row_warp) * step_slots()) continue;
    const u32 mask = burin_dev_shared_load_word(mask_place(lists, number), 0);
    const u32 live_before =
        live_slots(lists, row_warp, of_row) + __builtin_popcount(mask & ((1u << lane) - 1));
    const bool live = (mask >> lane & 1) != 0;
    const u32 dealt = live ? live_before : live_slots(lists, row_warp, mask_limit()) + slot - live_before;
    const u32 column = column_of_slot(lists, row_warp, slot) & ~kEmptySlot;
    burin_dev_shared_store_word(dealt_place(lists, row_warp, dealt), 0, column / kPlaceUnit << kSlotBits | slot);
  }
}

// Of the tile that is staged, with all threads of the block; behind a barrier, which it ends with, too.
BURIN_DEVICE void deal(const Lists& lists, u32 channels) {
  find_live_channels(lists, channels);
  burin_dev_barrier();
  mark_live_slots(lists);
  burin_dev_barrier();
  deal_slots(lists);
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
    // Of words: slots of columns that the lane reads; of halves: the slot whose rows the lane says where they are.
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
          weights[i] =
              burin_dev_shared_load_word(rows[part] + eight * octet_bytes() + lane / 4 * kWordBytes, 0);
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
  const u32 steps = divide_up(live_slots(lists, row_warp, mask_limit()), step_slots());
  const auto load = [&](u32 number, Step& step)
                        BURIN_INLINED { load_live_step(lists, row_warp, number, lane, step); };
  multiply_some(split, steps, split_warps(), load, column_at, place_of, sums);
}
