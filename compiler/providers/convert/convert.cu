// convert: the same values in another element type or layout. A thread has `steps` pieces, a block's width apart, which
// it loads before it stores any.
//
// Between float32 and halves a block has the two images that share words: a piece is one or four words of halves, and
// as many of each image; or the eight images that lie side by side, of whose pixels it has a tile. Between nchw and
// nchw4 a piece is one float.
#define BURIN_TEMPLATE_DEF "compiler/providers/convert/convert.def"
#include "templates/kernels/pieces.h"

constexpr u32 kOctetImages = 8;

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
                if (to_fours()) {
                  const bool filling = word >= static_cast<u32>(channels() * plane());
                  const float value = burin_dev_global_load(from, bytes_of(filling ? 0 : word));
                  burin_dev_global_store(to, bytes_of(fours), filling ? 0 : value);
                } else {
                  burin_dev_global_store(to, bytes_of(word), burin_dev_global_load(from, bytes_of(fours)));
                }
              });
}

// A tile is 32 pixels of eight channels of eight images. On its plain side a thread has a pixel of a channel, and
// neighbours are pixels side by side; on the other, a place, and neighbours are channels of a pixel. Between them the
// places lie in shared memory, where those of eight channels, and of eight pixels, are in eight different banks.
constexpr u32 kTilePixels = 32, kTileChannels = 8;
struct TileSpot {
  u32 channel, pixel;  // of the image
  u32 shared;          // byte of shared memory
  bool exists;         // the pixel is one of the image
};
BURIN_DEVICE TileSpot spot_of_thread(bool plain) {
  const u32 thread = burin_dev_thread(), tiles = divide_up(plane(), kTilePixels), tile = block_of_image();
  const u32 channel = plain ? thread / kTilePixels : thread % kTileChannels;
  const u32 pixel = plain ? thread % kTilePixels : thread / kTileChannels;
  TileSpot spot;
  spot.channel = tile / tiles * kTileChannels + channel;
  spot.pixel = tile % tiles * kTilePixels + pixel;
  spot.shared = kSharedStart + (pixel * kTileChannels + (channel ^ pixel % kTileChannels)) * kPlaceBytes;
  spot.exists = spot.pixel < static_cast<u32>(plane());
  return spot;
}
BURIN_DEVICE i64 plain_bytes(const TileSpot& spot) { return bytes_of(spot.channel * plane() + spot.pixel); }
BURIN_DEVICE i64 place_bytes(const TileSpot& spot) {
  return bytes_of(word_of(place_at(spot.channel, spot.pixel, plane()), 0));
}

BURIN_DEVICE void make_octets(const float* input, float* output, u32 image, u32 last) {
  const TileSpot plain = spot_of_thread(true), made = spot_of_thread(false);
  if (plain.exists) {
    float x[kOctetImages];
#pragma unroll
    for (u32 n = 0; n < kOctetImages; ++n) {
      x[n] = is_filling(plain.channel)
                 ? 0
                 : burin_dev_global_load(input_of(input, at_most(image + n, last)), plain_bytes(plain));
    }
    const Values values = {{x[0], x[2], x[4], x[6]}, {x[1], x[3], x[5], x[7]}};
    burin_dev_shared_store4(plain.shared, 0, words_of(values, out_halves()));
  }
  burin_dev_barrier();
  if (!made.exists) return;
  burin_dev_global_store4(output_of(output, image), place_bytes(made), burin_dev_shared_load4(made.shared, 0));
}
BURIN_DEVICE void read_octets(const float* input, float* output, u32 image, u32 last) {
  const TileSpot plain = spot_of_thread(true), read = spot_of_thread(false);
  if (read.exists) {
    burin_dev_shared_store4(read.shared, 0, burin_dev_global_load4(input_of(input, image), place_bytes(read)));
  }
  burin_dev_barrier();
  if (!plain.exists || plain.channel >= static_cast<u32>(channels())) return;
  const Values values = values_of(burin_dev_shared_load4(plain.shared, 0), in_halves());
#pragma unroll
  for (u32 n = 0; n < kOctetImages; ++n) {
    const float value = n % 2 == 0 ? values.first[n / 2] : values.second[n / 2];
    if (image + n <= last) burin_dev_global_store(output_of(output, image + n), plain_bytes(plain), value);
  }
}

BURIN_KERNEL void burin_kernel(const float* input, float* output, const float*, const float*, i32 batch) {
  burin_dev_await_launch();
  const u32 image = first_image();
  const u32 last = batch - 1;
  if (place_words() > 1) {
    if (out_halves() != kFloats) {
      make_octets(input, output, image, last);
    } else {
      read_octets(input, output, image, last);
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
