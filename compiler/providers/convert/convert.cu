// convert: the same values in another element type or layout. A thread has `steps` pieces, a block's width apart, which
// it loads before it stores any.
//
// Between float32 and halves a block has the two images that share words: a piece is one or four words of halves, and
// as many of each image; or the eight images that lie side by side, of whose pixels it has a tile. So it has of the
// four of n4c8hw. Between nchw and nchw4 a piece is one float. Where one side's halves are loose, a block has the
// images that share words on the other side: a piece is a run of `vector` values of each of them; of eight images it
// has a tile here, too. To and from places of channels (nchw8, nhwc8, nhwc4) a thread has a place.
#define BURIN_TEMPLATE_DEF "compiler/providers/convert/convert.def"
#include "templates/kernels/pieces.h"

BURIN_DEVICE void make_halves(const float* first, const float* second, float* to) {
  f32x4 low[kMaxSteps], high[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 word) BURIN_INLINED {
        low[i] = load(vector(), first, bytes_of(word));
        high[i] = load(vector(), second, bytes_of(word));
      },
      [&](i32 i, u32 word)
          BURIN_INLINED { store(vector(), to, bytes_of(word), words_of({low[i], high[i]}, out_halves())); });
}

// `second` is null where there is one image.
BURIN_DEVICE void read_halves(const float* from, float* first, float* second) {
  f32x4 words[kMaxSteps];
  move_pieces([&](i32 i, u32 word) BURIN_INLINED { words[i] = load(vector(), from, bytes_of(word)); },
              [&](i32 i, u32 word) BURIN_INLINED {
                const Values values = values_of(words[i], in_halves());
                store(vector(), first, bytes_of(word), values.first);
                if (second != nullptr) store(vector(), second, bytes_of(word), values.second);
              });
}

// Where the element of a plain image lies in one whose channels lie in fours.
BURIN_DEVICE u32 place_in_fours(u32 element) { return place_at(element / plane(), element % plane(), plane()); }

// Elements of fours beyond the channels are filling: they are written as zeros.
BURIN_DEVICE void move_fours(const float* from, float* to) {
  move_pieces([](i32, u32) BURIN_INLINED {},
              [&](i32, u32 word) BURIN_INLINED {
                const u32 fours = place_in_fours(word);
                if (brings_together()) {
                  const bool filling = word >= static_cast<u32>(channels() * plane());
                  const float value = burin_dev_global_load(from, bytes_of(filling ? 0 : word));
                  burin_dev_global_store(to, bytes_of(fours), filling ? 0 : value);
                } else {
                  burin_dev_global_store(to, bytes_of(word), burin_dev_global_load(from, bytes_of(fours)));
                }
              });
}

// ---- loose halves: runs of kRun values of each of the kImages images, one or two, that share words on the other side

constexpr u32 kHalfBytes = 2, kMostRun = 8;

BURIN_DEVICE bool is_loose(i32 halves, i32 word_images) { return halves != kFloats && word_images == 1; }

template <u32 kRun, u32 kImages>
struct LooseRuns {
  static constexpr u32 kWords = (kRun + 1) / 2;
  float word[kImages][kWords];  // a run of one has its half in the low bits
};
template <u32 kRun, u32 kImages>
struct SharedRun {
  float word[kRun];  // of each place
};

BURIN_DEVICE const float* loose_image(const float* base, u32 image, i32 halves) {
  return reinterpret_cast<const float*>(reinterpret_cast<const u8*>(base) +
                                        static_cast<i64>(image) * halves * kHalfBytes);
}

template <u32 kRun>
BURIN_DEVICE void load_run(float* words, const float* image, u32 place) {
  const i64 at = static_cast<i64>(place * kHalfBytes);
  if constexpr (kRun == kMostRun) {
    const f32x4 quad = burin_dev_global_load4(image, at);
#pragma unroll
    for (u32 w = 0; w < kQuadWords; ++w) words[w] = quad[w];
  } else if constexpr (kRun > 1) {
    words[0] = burin_dev_global_load(image, at);
  } else {
    words[0] = float_of(burin_dev_global_load_half(image, at));
  }
}
template <u32 kRun>
BURIN_DEVICE void store_run(const float* words, const float* image, u32 place) {
  float* to = const_cast<float*>(image);
  const i64 at = static_cast<i64>(place * kHalfBytes);
  if constexpr (kRun == kMostRun) {
    burin_dev_global_store4(to, at, f32x4{words[0], words[1], words[2], words[3]});
  } else if constexpr (kRun > 1) {
    burin_dev_global_store(to, at, words[0]);
  } else {
    burin_dev_global_store_half(to, at, __builtin_bit_cast(u32, words[0]));
  }
}

// The other side's words lie one behind the other; they are accessed by fours where there are as many.
template <u32 kWords>
BURIN_DEVICE void load_words(float* words, const float* from, u32 first) {
#pragma unroll
  for (u32 w = 0; w < kWords; w += kQuadWords) {
    if constexpr (kWords < kQuadWords) {
#pragma unroll
      for (u32 i = 0; i < kWords; ++i) words[i] = burin_dev_global_load(from, bytes_of(first + i));
    } else {
      const f32x4 quad = burin_dev_global_load4(from, bytes_of(first + w));
#pragma unroll
      for (u32 i = 0; i < kQuadWords; ++i) words[w + i] = quad[i];
    }
  }
}
template <u32 kWords>
BURIN_DEVICE void store_words(const float* words, float* to, u32 first) {
#pragma unroll
  for (u32 w = 0; w < kWords; w += kQuadWords) {
    if constexpr (kWords < kQuadWords) {
#pragma unroll
      for (u32 i = 0; i < kWords; ++i) burin_dev_global_store(to, bytes_of(first + i), words[i]);
    } else {
      burin_dev_global_store4(to, bytes_of(first + w), f32x4{words[w], words[w + 1], words[w + 2], words[w + 3]});
    }
  }
}

// Value `i` of image `n`.
template <u32 kRun, u32 kImages>
BURIN_DEVICE float value_of(const LooseRuns<kRun, kImages>& runs, u32 n, u32 i) {
  const float word = runs.word[n][i / 2];
  return i % 2 == 0 ? low_half(word, in_halves()) : high_half(word, in_halves());
}
template <u32 kRun, u32 kImages>
BURIN_DEVICE float value_of(const SharedRun<kRun, kImages>& run, u32 n, u32 i) {
  if (kImages == 1) return run.word[i];
  return n == 0 ? low_half(run.word[i], in_halves()) : high_half(run.word[i], in_halves());
}

template <u32 kRun, u32 kImages>
BURIN_DEVICE void share_loose(const float* input, float* output, u32 image, u32 last) {
  LooseRuns<kRun, kImages> runs[kMaxSteps];
  move_pieces(
      [&](i32 i, u32 place) BURIN_INLINED {
#pragma unroll
        for (u32 n = 0; n < kImages; ++n) {
          load_run<kRun>(runs[i].word[n], loose_image(input, at_most(image + n, last), in_image_words()), place);
        }
      },
      [&](i32 i, u32 place) BURIN_INLINED {
        SharedRun<kRun, kImages> shared;
#pragma unroll
        for (u32 v = 0; v < kRun; ++v) {
          const float value = value_of(runs[i], 0, v);
          shared.word[v] = kImages == 1 ? value : packed(value, value_of(runs[i], 1 % kImages, v), out_halves());
        }
        store_words<kRun>(shared.word, output_of(output, image), place);
      });
}

template <u32 kRun, u32 kImages>
BURIN_DEVICE void loosen(const float* input, float* output, u32 image, u32 last) {
  using Loose = LooseRuns<kRun, kImages>;
  SharedRun<kRun, kImages> shared[kMaxSteps];
  move_pieces([&](i32 i, u32 place) BURIN_INLINED { load_words<kRun>(shared[i].word, input_of(input, image), place); },
              [&](i32 i, u32 place) BURIN_INLINED {
#pragma unroll
                for (u32 n = 0; n < kImages; ++n) {
                  float words[Loose::kWords];
#pragma unroll
                  for (u32 w = 0; w < Loose::kWords; ++w) {
                    const float high = kRun == 1 ? 0 : value_of(shared[i], n, (2 * w + 1) % kRun);
                    words[w] = packed(value_of(shared[i], n, 2 * w), high, out_halves());
                  }
                  if (image + n <= last)
                    store_run<kRun>(words, loose_image(output, image + n, out_image_words()), place);
                }
              });
}

template <u32 kRun, u32 kImages>
BURIN_DEVICE void convert_loose(const float* input, float* output, u32 image, u32 last) {
  if (is_loose(in_halves(), in_word_images())) {
    share_loose<kRun, kImages>(input, output, image, last);
  } else {
    loosen<kRun, kImages>(input, output, image, last);
  }
}
// `images`: that share words on the side whose halves are not loose.
template <u32 kRun>
BURIN_DEVICE void convert_runs(u32 images, const float* input, float* output, u32 image, u32 last) {
  if (images == 2) {
    convert_loose<kRun, 2>(input, output, image, last);
  } else {
    convert_loose<kRun, 1>(input, output, image, last);
  }
}

// ---- places of eight channels in halves, or of four in floats

constexpr u32 kMostPlaceChannels = 8;
// Where channels are last, neighbouring threads have so many places of so many pixels: on both sides, what they access
// is whole sectors of memory.
constexpr u32 kSidePlaces = 4, kSidePixels = 8;

BURIN_DEVICE bool has_places() { return place_words() > 1 && in_word_images() == 1 && out_word_images() == 1; }
BURIN_DEVICE bool places_floats() { return in_halves() == kFloats && out_halves() == kFloats; }
BURIN_DEVICE u32 place_channels() { return places_floats() ? kQuadWords : kMostPlaceChannels; }
BURIN_DEVICE u32 pixel_places() { return divide_up(channels(), place_channels()); }
struct ConvertedPlace {
  u32 of_pixel, pixel;
  bool exists;
};
BURIN_DEVICE ConvertedPlace converted_place(u32 number) {
  if (channels_together() == 1) {
    const u32 of_pixel = number / plane();
    return {of_pixel, number % plane(), of_pixel < pixel_places()};
  }
  const u32 group = number / (kSidePlaces * kSidePixels), groups = divide_up(plane(), kSidePixels);
  const u32 of_pixel = group / groups * kSidePlaces + number % kSidePlaces;
  const u32 pixel = group % groups * kSidePixels + number / kSidePlaces % kSidePixels;
  return {of_pixel, pixel, of_pixel < pixel_places() && pixel < static_cast<u32>(plane())};
}
// A place has these channels; in halves, two share a word.
BURIN_DEVICE Values place_of_channels(const float (&x)[kMostPlaceChannels]) {
  if (places_floats()) return {{x[0], x[1], x[2], x[3]}, {}};
  return {{x[0], x[2], x[4], x[6]}, {x[1], x[3], x[5], x[7]}};
}
BURIN_DEVICE float channel_of_place(const Values& values, u32 i) {
  if (places_floats()) return values.first[i % kQuadWords];
  return i % 2 == 0 ? values.first[i / 2] : values.second[i / 2];
}
BURIN_DEVICE void convert_places(const float* input, float* output) {
  const ConvertedPlace at = converted_place(block_of_image() * block_threads() + burin_dev_thread());
  if (!at.exists) return;
  const u32 place = place_at(at.of_pixel, at.pixel, plane());
  const u32 first = at.of_pixel * place_channels(), word = first * plane() + at.pixel;
  if (brings_together()) {
    float x[kMostPlaceChannels] = {};
#pragma unroll
    for (u32 i = 0; i < kMostPlaceChannels; ++i) {
      if (i >= place_channels()) continue;
      const bool exists = first + i < static_cast<u32>(channels());
      x[i] = exists ? burin_dev_global_load(input, bytes_of(word + i * plane())) : 0;
    }
    store_place(output, place, place_of_channels(x));
    return;
  }
  const Values values = load_place(input, place);
#pragma unroll
  for (u32 i = 0; i < kMostPlaceChannels; ++i) {
    if (i >= place_channels() || first + i >= static_cast<u32>(channels())) continue;
    burin_dev_global_store(output, bytes_of(word + i * plane()), channel_of_place(values, i));
  }
}

// ---- n8c8hw and n4c8hw: tiles of eight channels of eight or four images, which go through shared memory

// A tile has eight channels of all images that lie side by side, and 32 pixels, or 64 where its plain side holds loose
// halves. On the plain side a thread has one or two pixels of a channel, in runs of kRun, and the runs of neighbours
// lie side by side; on the other as many places, and neighbours are channels of a pixel. Between them the places lie in
// shared memory, where those of eight channels, and of eight neighbours' pixels, are in eight different banks.
constexpr u32 kMostTileImages = 8, kTileRuns = 32, kTileChannels = 8;

BURIN_DEVICE u32 tile_images() { return block_images(); }
BURIN_DEVICE bool holds_floats() { return in_halves() == kFloats && out_halves() == kFloats; }

constexpr u32 pixels_of_thread(bool loose) { return loose ? 2 : 1; }

struct TileSpot {
  u32 channel, pixel;  // of the image
  u32 shared;          // byte of shared memory
};
template <u32 kRun, bool kLoose>
BURIN_DEVICE TileSpot spot_at(u32 channel, u32 pixel) {
  constexpr u32 kTilePixels = kTileRuns * pixels_of_thread(kLoose);
  const u32 tiles = divide_up(plane(), kTilePixels), tile = block_of_image();
  const u32 bank = channel ^ pixel / kRun % kTileChannels;
  return {tile / tiles * kTileChannels + channel, tile % tiles * kTilePixels + pixel,
          kSharedStart + (pixel * kTileChannels + bank) * kPlaceBytes};
}
// The spot of the thread's pixel `i`.
template <u32 kRun, bool kLoose>
BURIN_DEVICE TileSpot plain_spot(u32 i) {
  const u32 thread = burin_dev_thread();
  return spot_at<kRun, kLoose>(thread / kTileRuns, (i / kRun * kTileRuns + thread % kTileRuns) * kRun + i % kRun);
}
template <u32 kRun, bool kLoose>
BURIN_DEVICE TileSpot octet_spot(u32 i) {
  const u32 thread = burin_dev_thread();
  return spot_at<kRun, kLoose>(thread % kTileChannels, i * kTileRuns + thread / kTileChannels);
}

// Beyond the last pixel, what is loaded is of the last one, or of the last run of them, and nothing is stored.
BURIN_DEVICE bool exists(const TileSpot& spot) { return spot.pixel < static_cast<u32>(plane()); }
BURIN_DEVICE u32 plain_place(const TileSpot& spot, u32 run) {
  return spot.channel * plane() + at_most(spot.pixel, plane() - run);
}
BURIN_DEVICE i64 octet_bytes(const TileSpot& spot) {
  return bytes_of(word_of(place_at(spot.channel, at_most(spot.pixel, plane() - 1), plane()), 0));
}

// The values that begin at a place of a plain image.
template <u32 kRun, bool kLoose>
BURIN_DEVICE void load_plain(float (&values)[kRun], const float* input, u32 image, u32 place) {
  if constexpr (kLoose) {
    float word[1];
    load_run<kRun>(word, loose_image(input, image, in_image_words()), place);
    values[0] = low_half(word[0], in_halves());
    if constexpr (kRun > 1) values[1] = high_half(word[0], in_halves());
  } else {
    values[0] = burin_dev_global_load(input_of(input, image), bytes_of(place));
  }
}
template <u32 kRun, bool kLoose>
BURIN_DEVICE void store_plain(const float (&values)[kRun], float* output, u32 image, u32 place) {
  if constexpr (kLoose) {
    const float word[1] = {packed(values[0], kRun > 1 ? values[kRun - 1] : 0, out_halves())};
    store_run<kRun>(word, loose_image(output, image, out_image_words()), place);
  } else {
    burin_dev_global_store(output_of(output, image), bytes_of(place), values[0]);
  }
}

template <u32 kRun, bool kLoose>
BURIN_DEVICE void make_octets(const float* input, float* output, u32 image, u32 last) {
  constexpr u32 kPixels = pixels_of_thread(kLoose);
  float x[kMostTileImages][kPixels / kRun][kRun] = {};
  if (!is_filling(plain_spot<kRun, kLoose>(0).channel)) {
#pragma unroll
    for (u32 r = 0; r < kPixels / kRun; ++r) {
      const u32 place = plain_place(plain_spot<kRun, kLoose>(r * kRun), kRun);
#pragma unroll
      for (u32 n = 0; n < kMostTileImages; ++n) {
        if (n < tile_images()) load_plain<kRun, kLoose>(x[n][r], input, at_most(image + n, last), place);
      }
    }
  }
#pragma unroll
  for (u32 i = 0; i < kPixels; ++i) {
    const u32 r = i / kRun, v = i % kRun;
    const Values floats = {{x[0][r][v], x[1][r][v], x[2][r][v], x[3][r][v]}, {}};
    const Values halves = {{x[0][r][v], x[2][r][v], x[4][r][v], x[6][r][v]},
                           {x[1][r][v], x[3][r][v], x[5][r][v], x[7][r][v]}};
    burin_dev_shared_store4(plain_spot<kRun, kLoose>(i).shared, 0,
                            words_of(holds_floats() ? floats : halves, out_halves()));
  }
  burin_dev_barrier();
#pragma unroll
  for (u32 i = 0; i < kPixels; ++i) {
    const TileSpot made = octet_spot<kRun, kLoose>(i);
    if (!exists(made)) continue;
    burin_dev_global_store4(output_of(output, image), octet_bytes(made), burin_dev_shared_load4(made.shared, 0));
  }
}

template <u32 kRun, bool kLoose>
BURIN_DEVICE void read_octets(const float* input, float* output, u32 image, u32 last) {
  constexpr u32 kPixels = pixels_of_thread(kLoose);
  f32x4 words[kPixels];
#pragma unroll
  for (u32 i = 0; i < kPixels; ++i) {
    words[i] = burin_dev_global_load4(input_of(input, image), octet_bytes(octet_spot<kRun, kLoose>(i)));
  }
#pragma unroll
  for (u32 i = 0; i < kPixels; ++i) burin_dev_shared_store4(octet_spot<kRun, kLoose>(i).shared, 0, words[i]);
  burin_dev_barrier();
  if (plain_spot<kRun, kLoose>(0).channel >= static_cast<u32>(channels())) return;
#pragma unroll
  for (u32 r = 0; r < kPixels / kRun; ++r) {
    const TileSpot made = plain_spot<kRun, kLoose>(r * kRun);
    float x[kMostTileImages][kRun];
#pragma unroll
    for (u32 v = 0; v < kRun; ++v) {
      const Values values =
          values_of(burin_dev_shared_load4(plain_spot<kRun, kLoose>(r * kRun + v).shared, 0), in_halves());
#pragma unroll
      for (u32 n = 0; n < kMostTileImages; ++n) {
        x[n][v] = holds_floats() ? values.first[n % kQuadWords]
                  : n % 2 == 0   ? values.first[n / 2]
                                 : values.second[n / 2];
      }
    }
#pragma unroll
    for (u32 n = 0; n < kMostTileImages; ++n) {
      if (n < tile_images() && exists(made) && image + n <= last) {
        store_plain<kRun, kLoose>(x[n], output, image + n, plain_place(made, kRun));
      }
    }
  }
}

template <u32 kRun, bool kLoose>
BURIN_DEVICE void convert_octets(const float* input, float* output, u32 image, u32 last) {
  if (out_word_images() > 1) {
    make_octets<kRun, kLoose>(input, output, image, last);
  } else {
    read_octets<kRun, kLoose>(input, output, image, last);
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32 batch) {
  burin_dev_await_launch();
  const u32 image = first_image();
  const u32 last = batch - 1;
  const bool loose = is_loose(in_halves(), in_word_images()) || is_loose(out_halves(), out_word_images());
  if (has_places()) {
    convert_places(input_of(input, image), output_of(output, image));
  } else if (place_words() > 1) {
    if (!loose) {
      convert_octets<1, false>(input, output, image, last);
    } else if (vector() == 2) {
      convert_octets<2, true>(input, output, image, last);
    } else {
      convert_octets<1, true>(input, output, image, last);
    }
  } else if (loose) {
    const u32 images = block_images();
    if (vector() == kMostRun) {
      convert_runs<kMostRun>(images, input, output, image, last);
    } else if (vector() == 2) {
      convert_runs<2>(images, input, output, image, last);
    } else {
      convert_runs<1>(images, input, output, image, last);
    }
  } else if (out_halves() != kFloats) {
    make_halves(input_of(input, image), input_of(input, at_most(image + 1, last)), output_of(output, image));
  } else if (in_halves() != kFloats) {
    read_halves(input_of(input, image), output_of(output, image),
                image < last ? output_of(output, image + 1) : nullptr);
  } else {
    move_fours(input_of(input, image), output_of(output, image));
  }
}
