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
  check.value("report", report_of(d), "report");
  EXPECT_EQ(check.unseen(), std::set<std::string>{});
  EXPECT_EQ(report_of(d)["schema"], kSchema);
}

ordered_json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return ordered_json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(DoctorJson, OfAPage_SaysWhatIsLeftOut) {
  Diagnosis d = diagnosis_with(Cause::kRemoteFrees);
  Attribution recorded = attribution_with(307);
  recorded.sites[0].place = place_at("parse()", "src/parse.cpp", 210, 5);
  recorded.sites[0].place.stacks[0].frames.resize(20, {"main", "src/main.cpp", 12, "/opt/parser/bin/parser", false});
  d.recorded_alone = d.recorded = std::make_shared<const Attribution>(recorded);
  const ordered_json json = data_of(page_of(report_of(d)));
  const ordered_json& recording = json["recording"];
  EXPECT_EQ(recording["sites"].size(), 300u);
  EXPECT_EQ(recording["sites_left_out"], 7);
  const ordered_json& place = recording["sites"][0]["place"];
  EXPECT_EQ(place["stacks"].size(), 3u);
  EXPECT_EQ(place["all_stacks"], 5);
  EXPECT_EQ(place["stacks"][0]["frames"].size(), 16u);
  EXPECT_EQ(place["stacks"][0]["all_frames"], 20);
  EXPECT_EQ(recording["frames"][place["stacks"][2]["frames"][1].get<std::size_t>()]["line"], 73);
  EXPECT_TRUE(json["recording_alone"].is_null());
  // A frame that many stacks have is written once.
  std::set<std::string> frames;
  for (const ordered_json& frame : recording["frames"]) EXPECT_TRUE(frames.insert(frame.dump()).second) << frame;
}

}  // namespace
}  // namespace freehold::doctor::report
