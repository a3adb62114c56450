#include <algorithm>

#include "compiler/study/point_task.h"
#include "compiler/study/study_layer.h"
#include "ir/error.h"
#include "test/catch.h"
#include "test/thrown.h"

using namespace burin;
using burin_test::Contains;

namespace {

std::string refusal(const std::string& text) { return BURIN_THROWN(usage, parse_study_layer(text)).text; }

std::string refusal(const std::string& base, StudyAxis axis, double value) {
  return BURIN_THROWN(usage, varied(parse_study_layer(base), axis, value)).text;
}

std::int64_t nonzeros(const ConvLayer& layer) {
  return std::ranges::count_if(layer.weights, [](float weight) { return weight != 0; });
}

}  // namespace

TEST_CASE("study layer: what is not said goes without saying") {
  const StudyLayer layer = parse_study_layer("c=64 h=14 r=3");
  CHECK(print(layer) == "n=1 c=64 h=14 w=14 k=64 r=3 s=3 zeros=0");
  CHECK(layer.shape.pad == Padding{1, 1, 1, 1});
  CHECK(layer.shape.out_h() == 14);
  CHECK(verify(layer).empty());
}

TEST_CASE("study layer: the text goes in as it comes out") {
  for (const std::string text :
       {"n=1 c=64 h=14 w=14 k=64 r=3 s=3 zeros=0", "n=32 c=64 h=14 w=7 k=128 r=1 s=5 zeros=0.95",
        "n=2 c=64 h=28 w=28 k=64 r=3 s=3 stride=2 pad=0 dilation=2 groups=64 zeros=0.5"}) {
    CHECK(print(parse_study_layer(text)) == text);
  }
  CHECK(parse_study_layer(" zeros=0.5  r=3 h=9 c=4 ") == parse_study_layer("c=4 h=9 r=3 zeros=0.5"));
}

TEST_CASE("study layer: each fault is one error that names it") {
  CHECK_THAT(refusal("c=64 h=14"), Contains("layer 'c=64 h=14': r= is missing, such as 'c=256"));
  CHECK_THAT(refusal("c=64 h=14 r=3 x"), Contains("'x' is no NAME=VALUE"));
  CHECK_THAT(refusal("c=64 h=14 r=3 q=1"), Contains("there is no 'q'; there are n, c, h"));
  CHECK_THAT(refusal("c=64 h=14 r=3 c=32"), Contains("c stands twice"));
  CHECK_THAT(refusal("c=64 h=14x r=3"), Contains("h=14x is not a whole number"));
  CHECK_THAT(refusal("c=64 h=14 r=3 zeros=much"), Contains("zeros=much is not a number"));
  CHECK_THAT(refusal("c=64 h=14 r=3 zeros=1"), Contains("zeros=1 is not a share from 0 to below 1"));
  CHECK_THAT(refusal("c=64 h=14 r=3 zeros=nan"), Contains("zeros=nan is not a share"));
  CHECK_THAT(refusal("c=64 h=14 r=3 n=0"), Contains("n=0 is not from 1 to"));
  CHECK_THAT(refusal("c=64 h=14 r=3 groups=3"), Contains("groups"));
  CHECK_THAT(refusal("c=64 h=14 r=999999999"), Contains("999999999"));
  CHECK_THAT(refusal("c=64 h=1024 r=3 n=4096"), Contains("its input and output take") && Contains("up to 8589934592"));
  CHECK_THAT(refusal("c=64 h=14 r=\x1b"), Contains("\\x1b"));
}

TEST_CASE("study layer: an axis moves what belongs to it, and the rest stays") {
  const StudyLayer base = parse_study_layer("n=4 c=64 h=14 w=7 k=256 r=3 zeros=0.9");
  CHECK(print(varied(base, StudyAxis::batch, 32)) == "n=32 c=64 h=14 w=7 k=256 r=3 s=3 zeros=0.9");
  CHECK(print(varied(base, StudyAxis::channels, 128)) == "n=4 c=128 h=14 w=7 k=512 r=3 s=3 zeros=0.9");
  CHECK(print(varied(base, StudyAxis::image, 28)) == "n=4 c=64 h=28 w=14 k=256 r=3 s=3 zeros=0.9");
  CHECK(print(varied(base, StudyAxis::zeros, 0.5)) == "n=4 c=64 h=14 w=7 k=256 r=3 s=3 zeros=0.5");
  const StudyLayer wide = varied(base, StudyAxis::filter, 5);
  CHECK(wide.shape.kernel_w == 5);
  CHECK(wide.shape.pad == Padding{2, 2, 2, 2});
  CHECK(wide.shape.out_h() == 14);
  CHECK(varied(parse_study_layer("c=8 h=14 r=3 pad=0"), StudyAxis::filter, 5).shape.out_h() == 10);
  for (const StudyAxis axis :
       {StudyAxis::batch, StudyAxis::channels, StudyAxis::filter, StudyAxis::image, StudyAxis::zeros})
    CHECK(varied(base, axis, value_of(base, axis)) == base);
}

TEST_CASE("study layer: a value that cannot be names its axis") {
  CHECK(refusal("c=64 h=14 k=96 r=3", StudyAxis::channels, 3) ==
        "--channels 3: k would be 96 * 3 / 64, which is no whole number");
  CHECK_THAT(refusal("c=64 h=14 r=3", StudyAxis::filter, 99), Contains("--filter 99: "));
  CHECK_THAT(refusal("c=64 h=14 r=5 pad=0", StudyAxis::image, 3), Contains("--image 3: "));
  CHECK_THAT(refusal("c=64 h=14 r=3", StudyAxis::batch, 1 << 20), Contains("--batch 1048576: its input and output"));
  CHECK_THAT(refusal("c=1 k=60000 h=1 r=1", StudyAxis::channels, 1 << 16), Contains("--channels 65536: "));
}

TEST_CASE("study layer: one that has weights is spelled in the same way") {
  const auto spelled = [](const std::string& text) {
    return print(study_layer_of(with_weights(parse_study_layer(text), 1)));
  };
  for (const std::string text :
       {"n=1 c=64 h=14 w=14 k=64 r=3 s=3 zeros=0.9", "n=1 c=64 h=28 w=14 k=32 r=1 s=3 stride=2 zeros=0",
        "n=1 c=8 h=28 w=28 k=8 r=3 s=3 pad=0 dilation=2 groups=8 zeros=0.5"}) {
    CHECK(spelled(text) == text);
  }
  ConvLayer layer = with_weights(parse_study_layer("c=4 h=8 r=3"), 1);
  layer.shape.epilogue.bias = true;
  layer.bias.assign(4, 1);
  CHECK(study_layer_of(layer).shape.epilogue == Epilogue{});
  layer.shape.pad = {0, 1, 0, 1};
  CHECK_THAT(BURIN_THROWN(unsupported, study_layer_of(layer)).text,
             Contains("layer 'conv': cannot be the base of a study: its padding 0,1,0,1 is not the same on all sides"));
  layer.shape.stride_h = 2;
  CHECK_THAT(BURIN_THROWN(unsupported, study_layer_of(layer)).text,
             Contains("stride and dilation of rows and columns"));
  layer = with_weights(parse_study_layer("c=4 h=8 r=3"), 1);
  layer.weights.assign(layer.weights.size(), 0);
  CHECK_THAT(BURIN_THROWN(unsupported, study_layer_of(layer)).text, Contains("zeros=1 is not a share"));
}

TEST_CASE("study layer: values are named as a person counts them") {
  const StudyLayer layer = parse_study_layer("c=64 h=14 k=128 r=3 zeros=0.985");
  CHECK(value_text(layer, StudyAxis::batch) == "1 image");
  CHECK(value_text(varied(layer, StudyAxis::batch, 2), StudyAxis::batch) == "2 images");
  CHECK(value_text(layer, StudyAxis::channels) == "64 to 128 channels");
  CHECK(value_text(layer, StudyAxis::filter) == "3x3 filters");
  CHECK(value_text(layer, StudyAxis::image) == "14x14 images");
  CHECK(value_text(layer, StudyAxis::zeros) == "98.5 % zeros");
}

TEST_CASE("study layer: weights are pruned by magnitude, to the weight, and the same for a seed") {
  const auto made = [](double zeros, std::uint64_t seed) {
    StudyLayer layer = parse_study_layer("c=16 h=8 k=8 r=3");  // 1152 weights
    layer.zeros = zeros;
    return with_weights(layer, seed);
  };
  CHECK(nonzeros(made(0, 1)) == 1152);
  CHECK(nonzeros(made(0.9, 1)) == 115);
  CHECK(nonzeros(made(0.95, 1)) == 58);
  CHECK(nonzeros(made(0.9999, 1)) == 1);
  CHECK(made(0.9, 1).weights == made(0.9, 1).weights);
  CHECK(made(0.9, 1).weights != made(0.9, 2).weights);
  CHECK(verify(made(0.9, 1)).empty());
  const ConvLayer dense = made(0, 1), some = made(0.9, 1), few = made(0.98, 1);
  float least = 2, most_pruned = 0;
  for (std::size_t i = 0; i < dense.weights.size(); ++i) {
    if (some.weights[i] != 0) {
      CHECK(some.weights[i] == dense.weights[i]);
      least = std::min(least, std::abs(some.weights[i]));
    } else {
      most_pruned = std::max(most_pruned, std::abs(dense.weights[i]));
      CHECK(few.weights[i] == 0);
    }
  }
  CHECK(least >= most_pruned);
}

TEST_CASE("study layer: zeros of the input are a share of their own") {
  const StudyLayer layer = parse_study_layer("c=8 h=6 r=3 zeros=0.5 input-zeros=0.75");
  CHECK(layer.zeros == 0.5);
  CHECK(layer.input_zeros == 0.75);
  CHECK(print(layer).ends_with("zeros=0.5 input-zeros=0.75"));
  CHECK(parse_study_layer(print(layer)) == layer);
  CHECK_FALSE(parse_study_layer("c=8 h=6 r=3").input_zeros.has_value());
  CHECK(value_of(layer, StudyAxis::input_zeros) == 0.75);
  CHECK(varied(layer, StudyAxis::input_zeros, 1).input_zeros == 1.0);
  CHECK(value_text(layer, StudyAxis::input_zeros) == "75 % zeros of the input");
  CHECK_THAT(BURIN_THROWN(usage, parse_study_layer("c=8 h=6 r=3 input-zeros=1.5")).text,
             Contains("input-zeros=1.5 is not a share from 0 to 1"));
  // The task knows them, and only then a kernel that skips them is a candidate.
  CHECK(PointTask(layer, 1, {}).task().zeros->share() == Approx(0.75).margin(0.01));
  CHECK_FALSE(PointTask(parse_study_layer("c=8 h=6 r=3"), 1, {}).task().zeros.has_value());
}
