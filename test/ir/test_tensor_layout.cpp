#include "ir/tensor_layout.h"

#include <cmath>
#include <limits>

#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;

namespace {

constexpr int kImages = 3, kRows = 2, kCols = 5;

// Every value another one: 1, 2, 3...
std::vector<float> numbered(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

}  // namespace

TEST_CASE("tensor layout: there and back, 1 to 9 channels") {
  for (const TensorLayout layout : kTensorLayouts) {
    for (int channels = 1; channels <= 9; ++channels) {
      INFO(to_string(layout) << ", " << channels << " channels");
      const std::vector<float> nchw = numbered(std::int64_t{kImages} * channels * kRows * kCols);
      const std::vector<float> packed = from_nchw(layout, nchw, channels, kRows, kCols);
      CHECK(static_cast<std::int64_t>(packed.size()) == tensor_elements(layout, kImages, channels, kRows, kCols));
      CHECK(to_nchw(layout, packed, channels, kRows, kCols, kImages) == nchw);
      if (layout == TensorLayout::nchw) CHECK(packed == nchw);
    }
  }
}

TEST_CASE("tensor layout: nchw4 has four channels of a pixel side by side") {
  // One image, 5 channels, 1 x 2 pixels: channel c has the values 10 c and 10 c + 1.
  const std::vector<float> nchw = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
  const std::vector<float> packed = {0, 10, 20, 30, 1, 11, 21, 31, 40, 0, 0, 0, 41, 0, 0, 0};
  CHECK(from_nchw(TensorLayout::nchw4, nchw, 5, 1, 2) == packed);
}

TEST_CASE("tensor layout: n2chw has an element of two images side by side") {
  // Three images of 2 channels and 1 x 2 pixels: image n has the values 10 n to 10 n + 3.
  const std::vector<float> nchw = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
  const std::vector<float> packed = {0, 10, 1, 11, 2, 12, 3, 13, 20, -1, 21, -1, 22, -1, 23, -1};
  CHECK(from_nchw(TensorLayout::n2chw, nchw, 2, 1, 2, -1) == packed);
  CHECK(to_nchw(TensorLayout::n2chw, packed, 2, 1, 2, 3) == nchw);
  CHECK(to_nchw(TensorLayout::n2chw, packed, 2, 1, 2).size() == 16);
  CHECK(place_of(TensorLayout::n2chw, 2, 1, 2, 11) == TensorPlace{3, 0, 0, 1});
  CHECK(place_of(TensorLayout::n2chw, 2, 1, 2, 12) == TensorPlace{2, 1, 0, 0});
}

TEST_CASE("tensor layout: n8c8hw has an element of eight images side by side, and eight channels of it") {
  // Nine images of 2 channels and 1 x 1 pixels: image n has the values 10 n + 1 and 10 n + 2.
  std::vector<float> nchw;
  for (int image = 0; image < 9; ++image) nchw.insert(nchw.end(), {10.0F * image + 1, 10.0F * image + 2});
  std::vector<float> packed(128);
  for (std::size_t image = 0; image < 16; ++image) {
    for (std::size_t channel = 0; channel < 2; ++channel) {
      packed[image / 8 * 64 + channel * 8 + image % 8] = image < 9 ? nchw[image * 2 + channel] : -1;
    }
  }
  CHECK(from_nchw(TensorLayout::n8c8hw, nchw, 2, 1, 1, -1) == packed);
  CHECK(to_nchw(TensorLayout::n8c8hw, packed, 2, 1, 1, 9) == nchw);
  CHECK(to_nchw(TensorLayout::n8c8hw, packed, 2, 1, 1).size() == 32);
  CHECK(place_of(TensorLayout::n8c8hw, 2, 1, 1, 13) == TensorPlace{5, 1, 0, 0});
  CHECK(place_of(TensorLayout::n8c8hw, 2, 1, 1, 16) == TensorPlace{0, 2, 0, 0});
  CHECK(place_of(TensorLayout::n8c8hw, 2, 1, 1, 64) == TensorPlace{8, 0, 0, 0});
}

TEST_CASE("tensor layout: n4c8hw has a float of four images side by side, and eight channels of it") {
  // Five images of two channels of two pixels.
  std::vector<float> nchw(20);
  std::iota(nchw.begin(), nchw.end(), 1.0F);
  const std::vector<float> packed = from_nchw(TensorLayout::n4c8hw, nchw, 2, 1, 2, -1);
  REQUIRE(packed.size() == 2 * 8 * 2 * 4);
  CHECK(std::vector(packed.begin(), packed.begin() + 9) == std::vector<float>{1, 5, 9, 13, 3, 7, 11, 15, 0});
  CHECK(std::vector(packed.begin() + 32, packed.begin() + 36) == std::vector<float>{2, 6, 10, 14});
  CHECK(std::vector(packed.begin() + 64, packed.begin() + 68) == std::vector<float>{17, -1, -1, -1});
  CHECK(to_nchw(TensorLayout::n4c8hw, packed, 2, 1, 2, 5) == nchw);
  CHECK(place_of(TensorLayout::n4c8hw, 2, 1, 2, 64 + 32 + 5) == TensorPlace{5, 1, 0, 1});
  for (const TensorLayout layout : {TensorLayout::n4c8hw, TensorLayout::n8c8hw}) {
    CHECK(burin::has_lines(layout));
    CHECK(burin::fills_with_zeros(layout));
  }
  CHECK_FALSE(burin::has_lines(TensorLayout::n2chw));
  CHECK(burin::can_lie_in(ElementType::f32, TensorLayout::n4c8hw));
  CHECK_FALSE(burin::can_lie_in(ElementType::f16, TensorLayout::n4c8hw));
  CHECK(burin::can_ask_for(TensorLayout::n4c8hw, Precision::tf32));
  CHECK_FALSE(burin::can_ask_for(TensorLayout::n4c8hw, Precision::fp32));
}

TEST_CASE("tensor layout: nchw8 has eight channels of a pixel side by side, in halves") {
  constexpr TensorLayout kPlaces = TensorLayout::nchw8;
  // Two images of nine channels of two pixels: channel c of image n has the values 100 n + 10 c + 1 and + 2.
  std::vector<float> nchw;
  for (int image = 0; image < 2; ++image) {
    for (int channel = 0; channel < 9; ++channel) {
      nchw.insert(nchw.end(), {100.0F * image + 10 * channel + 1, 100.0F * image + 10 * channel + 2});
    }
  }
  const std::vector<float> packed = from_nchw(kPlaces, nchw, 9, 1, 2, -1);
  REQUIRE(packed.size() == 2 * 16 * 2);
  CHECK(std::vector(packed.begin() + 6, packed.begin() + 10) == std::vector<float>{61, 71, 2, 12});
  CHECK(std::vector(packed.begin() + 16, packed.begin() + 18) == std::vector<float>{81, 0});
  CHECK(packed[32] == 101);
  CHECK(to_nchw(kPlaces, packed, 9, 1, 2) == nchw);
  CHECK(place_of(kPlaces, 9, 1, 2, 32 + 16 + 8) == TensorPlace{1, 8, 0, 1});
  CHECK(place_of(kPlaces, 9, 1, 2, 17) == TensorPlace{0, 9, 0, 0});
  for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
    CHECK(burin::can_compute_in(element, kPlaces));
    CHECK(image_words({element, kPlaces}, {9, 1, 2}) == 16);
    CHECK(image_elements({element, kPlaces}, {9, 1, 2}) == 32);
    CHECK(element_bytes({element, kPlaces}) == 2);
  }
  CHECK_FALSE(burin::can_lie_in(ElementType::f32, kPlaces));
  CHECK(burin::fills_with_zeros(kPlaces));
  CHECK(words_together(kPlaces) == 4);
  CHECK(burin::can_be_parts(kPlaces, std::vector<std::int64_t>{8, 16, 3}));
  CHECK_FALSE(burin::can_be_parts(kPlaces, std::vector<std::int64_t>{8, 3, 16}));
}

TEST_CASE("tensor layout: nhwc8 and nhwc4 have all channels of a pixel side by side, filled up with zeros") {
  // Two images of nine channels of two pixels: channel c of image n has the values 100 n + 10 c + 1 and + 2.
  std::vector<float> nchw;
  for (int image = 0; image < 2; ++image) {
    for (int channel = 0; channel < 9; ++channel) {
      nchw.insert(nchw.end(), {100.0F * image + 10 * channel + 1, 100.0F * image + 10 * channel + 2});
    }
  }
  for (const auto& [layout, filled] : {std::pair(TensorLayout::nhwc8, 16), {TensorLayout::nhwc4, 12}}) {
    INFO(to_string(layout));
    const std::vector<float> packed = from_nchw(layout, nchw, 9, 1, 2, -1);
    REQUIRE(packed.size() == static_cast<std::size_t>(2 * filled * 2));
    const auto pixel = packed.begin() + filled;  // the second one
    CHECK(std::vector(pixel, pixel + 10) == std::vector<float>{2, 12, 22, 32, 42, 52, 62, 72, 82, 0});
    CHECK(packed[static_cast<std::size_t>(2 * filled)] == 101);
    CHECK(to_nchw(layout, packed, 9, 1, 2) == nchw);
    CHECK(place_of(layout, 9, 1, 2, 3 * filled + 8) == TensorPlace{1, 8, 0, 1});
    CHECK(place_of(layout, 9, 1, 2, filled + 9) == TensorPlace{0, 9, 0, 1});
    CHECK(burin::channels_side_by_side(layout, 9) == filled);
    CHECK(burin::has_places(layout));
    CHECK(burin::fills_with_zeros(layout));
    CHECK_FALSE(burin::can_be_slices(layout));
    CHECK_FALSE(burin::can_be_parts(layout, std::vector<std::int64_t>{8, 8}));
    CHECK(words_together(layout) == 4);
    std::vector<float> faulty = packed;
    faulty[static_cast<std::size_t>(3 * filled - 1)] = 5;
    CHECK(nonzero_filling(layout, faulty, 9, 1, 2, 2) == std::optional<std::int64_t>(3 * filled - 1));
    CHECK_FALSE(nonzero_filling(layout, packed, 9, 1, 2, 2));
  }
  CHECK(burin::can_compute_in(ElementType::bf16, TensorLayout::nhwc8));
  CHECK_FALSE(burin::can_lie_in(ElementType::f32, TensorLayout::nhwc8));
  CHECK(burin::can_compute_in(ElementType::f32, TensorLayout::nhwc4));
  CHECK_FALSE(burin::can_lie_in(ElementType::f16, TensorLayout::nhwc4));
  CHECK(burin::can_ask_for(TensorLayout::nhwc4, Precision::tf32));
  CHECK_FALSE(burin::can_ask_for(TensorLayout::nhwc4, Precision::fp32));
  CHECK(burin::can_ask_for(TensorLayout::nhwc8, Precision::fp16));
}

TEST_CASE("tensor layout: an element of n8c8hw lies where its formula says") {
  for (const int images : {1, 7, 8, 9}) {
    for (const int channels : {1, 7, 8, 9, 12}) {
      INFO(images << " images of " << channels << " channels");
      const std::vector<float> nchw = numbered(std::int64_t{images} * channels * kRows * kCols);
      const std::vector<float> packed = from_nchw(TensorLayout::n8c8hw, nchw, channels, kRows, kCols, -1);
      const int octets = (channels + 7) / 8;
      REQUIRE(packed.size() == static_cast<std::size_t>((images + 7) / 8 * octets * kRows * kCols * 64));
      std::size_t i = 0, used = 0;
      for (int n = 0; n < images; ++n) {
        for (int c = 0; c < channels; ++c) {
          for (int y = 0; y < kRows; ++y) {
            for (int x = 0; x < kCols; ++x) {
              const int at = ((((n / 8) * octets + c / 8) * kRows + y) * kCols + x) * 64 + c % 8 * 8 + n % 8;
              used += packed[static_cast<std::size_t>(at)] == nchw[i++] ? 1 : 0;
            }
          }
        }
      }
      CHECK(used == nchw.size());
    }
  }
}

TEST_CASE("tensor layout: filling channels of n8c8hw are zeros, and what else they hold is found") {
  for (const int images : {1, 8, 9}) {
    for (const int channels : {1, 7, 8, 9, 12}) {
      INFO(images << " images of " << channels << " channels");
      const std::vector<float> nchw = numbered(std::int64_t{images} * channels * kRows * kCols);
      std::vector<float> packed =
          from_nchw(TensorLayout::n8c8hw, nchw, channels, kRows, kCols, std::numeric_limits<float>::quiet_NaN());
      const auto found = [&] { return nonzero_filling(TensorLayout::n8c8hw, packed, channels, kRows, kCols, images); };
      CHECK_FALSE(found());
      for (std::size_t i = 0; i < packed.size(); ++i) {
        const TensorPlace at = place_of(TensorLayout::n8c8hw, channels, kRows, kCols, static_cast<std::int64_t>(i));
        const bool filling = at.channel >= channels;
        if (filling) CHECK(packed[i] == 0);
        const float before = packed[i];
        for (const float value : {std::numeric_limits<float>::quiet_NaN(), 1.0F}) {
          packed[i] = value;
          // Of images that fill up, nothing is asked.
          CHECK(found().has_value() == (filling && at.image < images));
          if (found()) CHECK(*found() == static_cast<std::int64_t>(i));
        }
        packed[i] = before;
      }
    }
  }
  const std::vector<float> fours(8, 1.0F);
  CHECK_FALSE(nonzero_filling(TensorLayout::nchw4, fours, 3, 1, 2, 1));  // means nothing
}

TEST_CASE("tensor layout: which tensors can be parts of one") {
  const auto can = [](TensorLayout layout, std::vector<std::int64_t> channels) {
    return can_be_parts(layout, channels);
  };
  CHECK(can(TensorLayout::nchw, {1, 3, 5}));
  CHECK(can(TensorLayout::n2chw, {1, 3, 5}));
  CHECK_FALSE(can(TensorLayout::nchw4, {4, 4}));
  CHECK(can(TensorLayout::n8c8hw, {8, 16, 5}));
  CHECK(can(TensorLayout::n8c8hw, {5}));
  CHECK_FALSE(can(TensorLayout::n8c8hw, {8, 5, 8}));
  CHECK_FALSE(can(TensorLayout::n8c8hw, {12, 8}));
}

TEST_CASE("tensor layout: which values lie in which layout, and how many words are an element") {
  for (const TensorLayout layout : {TensorLayout::nchw, TensorLayout::nchw4}) {
    CHECK(can_lie_in(ElementType::f32, layout));
    CHECK_FALSE(can_compute_in(ElementType::f16, layout));
  }
  CHECK_FALSE(can_lie_in(ElementType::f16, TensorLayout::nchw4));
  for (const TensorLayout layout : {TensorLayout::n2chw, TensorLayout::n8c8hw}) {
    CHECK_FALSE(can_lie_in(ElementType::f32, layout));
    CHECK(can_lie_in(ElementType::f16, layout));
    CHECK(can_lie_in(ElementType::bf16, layout));
  }
  CHECK(element_words(TensorLayout::nchw4) == 1);
  CHECK(element_words(TensorLayout::n2chw) == 1);
  CHECK(element_words(TensorLayout::n8c8hw) == 4);
  CHECK(words_together(TensorLayout::n2chw) == 1);
  CHECK(words_together(TensorLayout::nchw4) == 4);
  CHECK(words_together(TensorLayout::n8c8hw) == 4);
  CHECK(image_words({ElementType::f16, TensorLayout::n2chw}, {5, 3, 7}) == 5 * 3 * 7);
  CHECK(image_words({ElementType::f16, TensorLayout::n8c8hw}, {5, 3, 7}) == 4 * 8 * 3 * 7);
  CHECK(image_words({ElementType::f16, TensorLayout::n8c8hw}, {9, 3, 7}) == 4 * 16 * 3 * 7);
  CHECK(format_of(Precision::fp16, TensorLayout::n8c8hw) == TensorFormat{ElementType::f16, TensorLayout::n8c8hw});
  CHECK(format_of(Precision::bf16, TensorLayout::nchw4) == TensorFormat{ElementType::bf16, TensorLayout::n2chw});
  CHECK(format_of(Precision::fp32, TensorLayout::n8c8hw) == TensorFormat());
}

TEST_CASE("tensor layout: loose halves are words of two bytes, and nothing computes in them") {
  for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
    const TensorFormat loose = {element, TensorLayout::nchw};
    CHECK(can_lie_in(element, TensorLayout::nchw));
    CHECK(loose.is_loose());
    CHECK_FALSE(loose.is_plain());
    CHECK(loose.word_bytes() == 2);
    CHECK(elements_per_word(element, TensorLayout::nchw) == 1);
    CHECK(elements_per_word(element, TensorLayout::n2chw) == 2);
    CHECK(loose.images_together() == 1);
    CHECK(image_words(loose, {5, 3, 7}) == 5 * 3 * 7);
    CHECK(image_words(loose, {10}) == 10);
    CHECK_FALSE(TensorFormat{element, TensorLayout::n2chw}.is_loose());
  }
  CHECK_FALSE(TensorFormat().is_loose());
  CHECK(TensorFormat().word_bytes() == 4);
  CHECK(format_of(Precision::fp16) == TensorFormat{ElementType::f16, TensorLayout::n2chw});
  CHECK(format_of(Precision::bf16, TensorLayout::nchw) == TensorFormat{ElementType::bf16, TensorLayout::n2chw});
  CHECK(can_ask_for(TensorLayout::nchw, Precision::fp16));  // FP32, whose factors may be rounded
  CHECK_FALSE(can_ask_for(TensorLayout::nchw, Precision::fp16x2));
}

TEST_CASE("tensor layout: what may be accessed at once follows from where images begin") {
  const TensorFormat plain, loose = {ElementType::f16, TensorLayout::nchw};
  CHECK(access_bytes(plain, 64) == 16);
  CHECK(access_bytes(plain, 20) == 4);
  CHECK(access_bytes(loose, 64) == 16);
  CHECK(access_bytes(loose, 20) == 4);
  CHECK(access_bytes(loose, 14) == 2);
}

TEST_CASE("tensor layout: filling channels get what is asked for, and nothing else does") {
  for (int channels = 1; channels <= 9; ++channels) {
    const std::vector<float> nchw = numbered(std::int64_t{kImages} * channels * kRows * kCols);
    const std::vector<float> packed =
        from_nchw(TensorLayout::nchw4, nchw, channels, kRows, kCols, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < packed.size(); ++i) {
      const TensorPlace place = place_of(TensorLayout::nchw4, channels, kRows, kCols, static_cast<std::int64_t>(i));
      INFO(channels << " channels, element " << i);
      CHECK(std::isnan(packed[i]) == (place.channel >= channels));
    }
    CHECK(to_nchw(TensorLayout::nchw4, packed, channels, kRows, kCols) == nchw);
  }
}

TEST_CASE("tensor layout: the place of an element is where from_nchw puts it") {
  for (const TensorLayout layout : kTensorLayouts) {
    for (const int channels : {1, 4, 6, 9}) {
      const std::vector<float> nchw = numbered(std::int64_t{kImages} * channels * kRows * kCols);
      const std::vector<float> packed = from_nchw(layout, nchw, channels, kRows, kCols);
      for (std::size_t i = 0; i < packed.size(); ++i) {
        const TensorPlace at = place_of(layout, channels, kRows, kCols, static_cast<std::int64_t>(i));
        if (at.channel >= channels || at.image >= kImages) continue;
        INFO(to_string(layout) << ", " << channels << " channels, element " << i);
        CHECK(packed[i] ==
              nchw[static_cast<std::size_t>(((at.image * channels + at.channel) * kRows + at.row) * kCols + at.col)]);
      }
    }
  }
}

TEST_CASE("tensor layout: sizes count the filling and do not overflow") {
  CHECK(image_elements(TensorLayout::nchw, 5, 3, 7) == 5 * 3 * 7);
  CHECK(image_elements(TensorLayout::nchw4, 5, 3, 7) == 8 * 3 * 7);
  CHECK(image_elements(TensorLayout::nchw4, 8, 3, 7) == 8 * 3 * 7);
  CHECK(image_elements(TensorLayout::nchw4, 1, 3, 7) == 4 * 3 * 7);
  CHECK(image_elements(TensorLayout::n2chw, 5, 3, 7) == 5 * 3 * 7);
  CHECK(image_elements(TensorLayout::n8c8hw, 5, 3, 7) == 8 * 3 * 7);
  CHECK(tensor_elements(TensorLayout::nchw4, 3, 5, 3, 7) == 3 * 8 * 3 * 7);
  CHECK(tensor_elements(TensorLayout::n2chw, 3, 5, 3, 7) == 4 * 5 * 3 * 7);
  CHECK(tensor_elements(TensorLayout::n8c8hw, 8, 5, 3, 7) == 8 * 8 * 3 * 7);
  CHECK(tensor_elements(TensorLayout::n8c8hw, 9, 8, 3, 7) == 16 * 8 * 3 * 7);
  CHECK(tensor_elements(TensorLayout::n8c8hw, 1, 9, 3, 7) == 8 * 16 * 3 * 7);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  CHECK(image_elements(TensorLayout::nchw4, 1 << 30, kHuge, 1 << 30) == kHuge);
}

TEST_CASE("tensor layout: a tensor that is no whole number of images is refused") {
  CHECK(burin_test::error_of([] { from_nchw(TensorLayout::nchw4, numbered(9), 5, 1, 2); }, ErrorKind::internal)
            .find("9 values are no whole images of 10") != std::string::npos);
  CHECK(burin_test::error_of([] { to_nchw(TensorLayout::nchw4, numbered(10), 5, 1, 2); }, ErrorKind::internal)
            .find("10 values are no whole images of 16") != std::string::npos);
  CHECK(burin_test::error_of([] { to_nchw(TensorLayout::n2chw, numbered(10), 5, 1, 1, 3); }, ErrorKind::internal)
            .find("3 images of 5 in 10 values") != std::string::npos);
}

TEST_CASE("tensor layout: names") {
  for (const TensorLayout layout : kTensorLayouts) CHECK(parse_enum<TensorLayout>(to_string(layout)) == layout);
  for (const char* other : {"", "nhwc", "NCHW", "nchw5", "nchw ", "nchw44", "n8chw"})
    CHECK_FALSE(parse_enum<TensorLayout>(other));
  CHECK(known_names<TensorLayout>() == "nchw, nchw4, n2chw, n8c8hw, nchw8, n4c8hw, nhwc8, nhwc4");
}
