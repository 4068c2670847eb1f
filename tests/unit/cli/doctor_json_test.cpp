// SPDX-License-Identifier: MIT
// The JSON of a diagnosis against docs/doctor-schema.md.
#include <nlohmann/json.hpp>

#include "tests/support/test.hpp"
#include "tests/unit/cli/doctor_schema.hpp"
#include "tests/unit/cli/doctor_support.hpp"
#include "tools/doctor/report/results_json.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

TEST(DoctorJson, OfADiagnosis_IsAsDescribed) {
  Diagnosis d = diagnosis_with(Cause::kRemoteFrees);
  d.settings.server.load = "ab -n 1000";
  d.recorded_alone = d.recorded;
  d.experiment.code = {.known = true, .work_known = true, .same = 0.5, .spinning = 0.3, .contended = 0.1};
  d.spins_at = place_at("Spin::lock()", "src/spin.hpp", 12).frame();
  tests::DoctorSchema check({FREEHOLD_DOCTOR_SCHEMA});
  check.value("report", results_json(d), "report");
  EXPECT_EQ(check.unseen(), std::set<std::string>{});
  EXPECT_EQ(results_json(d)["schema"], kSchema);
}

TEST(DoctorJson, WithinLimits_SaysWhatIsLeftOut) {
  const ordered_json json =
      results_json(diagnosis_with(Cause::kRemoteFrees, 12), {.sites = 5, .stacks_of_a_site = 1, .frames_of_a_stack = 2});
  const ordered_json& recording = json["recording"];
  EXPECT_EQ(recording["sites"].size(), 5u);
  EXPECT_EQ(recording["sites_left_out"], 7);
  const ordered_json& place = recording["sites"][0]["place"];
  EXPECT_EQ(place["stacks"].size(), 1u);
  EXPECT_EQ(place["all_stacks"], 2);
  EXPECT_EQ(place["stacks"][0]["frames"].size(), 2u);
  EXPECT_EQ(place["stacks"][0]["all_frames"], 3);
  // A frame that many stacks have is written once.
  std::set<std::string> frames;
  for (const ordered_json& frame : recording["frames"]) EXPECT_TRUE(frames.insert(frame.dump()).second) << frame;
}

}  // namespace
}  // namespace freehold::doctor::report
