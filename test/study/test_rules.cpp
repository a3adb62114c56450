#include "compiler/study/rules.h"
#include "test/catch.h"
#include "test/study/made_up.h"

using namespace burin;
using burin_test::made_up;
using burin_test::MadeUpTimes;

namespace {

const std::vector<double> kBatches = {1, 8, 16, 32};

std::vector<std::string> texts(const Study& study, RuleSubject subject = RuleSubject::algorithm) {
  std::vector<std::string> found;
  for (const StudyRule& rule : read_off(study)) {
    if (rule.subject == subject) found.push_back(rule_text(study, rule));
  }
  return found;
}

std::vector<std::string> batch_rules(const MadeUpTimes& times, RuleSubject subject = RuleSubject::algorithm) {
  return texts(made_up("c=64 h=14 r=3", StudyAxis::batch, kBatches, times), subject);
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("rules: from where on which algorithm wins, and by how much") {
  CHECK(batch_rules({{"conv_baked", {2, 4, 9, 20}}, {"conv_gathered", {3, 5, 6, 8}}, {"conv_dense", {9, 9, 9, 9}}}) ==
        Texts{"up to 8 images conv_baked is the fastest, 1.25 to 1.50 times as fast as the next",
              "from 16 images on conv_gathered is the fastest, 1.12 to 1.50 times as fast as the next"});
}

TEST_CASE("rules: one that wins in the middle") {
  CHECK(batch_rules({{"conv_baked", {1, 8, 9, 10}}, {"conv_dense", {2, 4, 3, 20}}}) ==
        Texts{"with 1 image conv_baked is the fastest, 2.00 times as fast as the next",
              "from 8 images to 16 images conv_dense is the fastest, 2.00 to 3.00 times as fast as the next",
              "with 32 images conv_baked is the fastest, 2.00 times as fast as the next"});
}

TEST_CASE("rules: one that wins everywhere") {
  CHECK(batch_rules({{"conv_baked", {1, 2, 3, 4}}, {"conv_dense", {2, 4, 6, 8}}}) ==
        Texts{"from 1 image to 32 images, everywhere, conv_baked is the fastest, 2.00 times as fast as the next"});
}

TEST_CASE("rules: who is within 2 % of the fastest keeps winning") {
  CHECK(
      batch_rules({{"conv_baked", {1, 10.1, 10.1, 4}}, {"conv_dense", {2, 10, 10, 8}}}) ==
      Texts{
          "from 1 image to 32 images, everywhere, conv_baked is the fastest, up to 2.00 times as fast as the next, or "
          "within 2 % of it"});
  CHECK(batch_rules({{"conv_baked", {1, 10.3, 1, 1}}, {"conv_dense", {2, 10, 2, 2}}}).size() == 3);
  CHECK(batch_rules({{"conv_baked", {1, 1, 1, 1}}, {"conv_dense", {1.01, 1.01, 1.01, 1.01}}}) ==
        Texts{"from 1 image to 32 images, everywhere, conv_baked is the fastest, and the next is within 2 %"});
}

TEST_CASE("rules: where there is one algorithm it wins against nobody") {
  CHECK(batch_rules({{"conv_baked", {1, 1, 1, 1}}}) ==
        Texts{"from 1 image to 32 images, everywhere, conv_baked is the fastest, and the only one"});
  const Study study = made_up("c=64 h=14 r=3", StudyAxis::batch, kBatches, {{"conv_baked", {1, 1, 1, 1}}});
  CHECK(read_off(study).size() == 1);  // nothing is said of zeros and libraries
}

TEST_CASE("rules: points that were not measured are no part of them") {
  const Study study = made_up("c=64 h=14 r=3", StudyAxis::batch, kBatches,
                              {{"conv_baked", {1, {}, 9, {}}}, {"conv_dense", {2, {}, 3, {}}}});
  CHECK(study.done() == 2);
  CHECK(texts(study) == Texts{"with 1 image conv_baked is the fastest, 2.00 times as fast as the next",
                              "with 16 images conv_dense is the fastest, 3.00 times as fast as the next"});
  CHECK(read_off(made_up("c=64 h=14 r=3", StudyAxis::batch, kBatches, {})).empty());
}

TEST_CASE("rules: from which share on zeros pay, and where a library is faster") {
  const Study study = made_up(
      "c=64 h=14 r=3", StudyAxis::zeros, {0, 0.5, 0.8, 0.9},
      {{"conv_baked", {20, 11, 4, 2}}, {"conv_dense", {12, 12, 12, 12}}, {"conv_cudnn winograd", {8, 8, 8, 8}}});
  CHECK(texts(study, RuleSubject::zeros) ==
        Texts{"up to 50 % zeros dense kernels are the fastest, 1.38 to 2.50 times as fast as the next",
              "from 80 % zeros on kernels that skip zeros are the fastest, 2.00 to 4.00 times as fast as the next"});
  CHECK(texts(study, RuleSubject::library) ==
        Texts{"up to 50 % zeros calls of a library are the fastest, 1.38 to 1.50 times as fast as the next",
              "from 80 % zeros on kernels of burin's own are the fastest, 2.00 to 4.00 times as fast as the next"});
  CHECK(texts(study).front() ==
        "up to 50 % zeros conv_cudnn winograd is the fastest, 1.38 to 1.50 times as fast as the next");
}

TEST_CASE("rules: predictions are called so") {
  Study study = made_up("c=64 h=14 r=3", StudyAxis::batch, kBatches,
                        {{"conv_baked", {1, 2, 3, 4}}, {"conv_dense", {2, 4, 6, 8}}});
  study.source = Estimate::Source::model;
  CHECK(texts(study).front() ==
        "from 1 image to 32 images, everywhere, conv_baked is predicted to be the fastest, 2.00 times as fast as the "
        "next");
}

TEST_CASE("rules: of several candidates of an algorithm the fastest counts, and none with a fault") {
  Study study = made_up("c=64 h=14 r=3", StudyAxis::batch, {1}, {{"conv_baked", {5}}, {"conv_dense", {4}}});
  std::vector<StudyCandidate>& candidates = study.points[0].candidates;
  candidates.push_back(candidates[0]);
  candidates.back().us = 2;
  candidates.push_back(candidates[0]);
  candidates.back().us = 1;
  candidates.back().fault = "wrong: image 0";
  const std::vector<Ranked> ranked = ranking(study.points[0], study.source);
  REQUIRE(ranked.size() == 2);
  CHECK(ranked[0].candidate == 2);
  CHECK(ranked[1].candidate == 1);
  CHECK(texts(study) == Texts{"with 1 image conv_baked is the fastest, 2.00 times as fast as the next"});
}
