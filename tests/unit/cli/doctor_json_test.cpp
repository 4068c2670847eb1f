// The JSON of a diagnosis against docs/doctor-schema.md: what is written is described, what is described is written.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/doctor/results_json.hpp"
#include "tests/unit/cli/doctor_support.hpp"

namespace freehold::cli::doctor {
namespace {
using nlohmann::ordered_json;

// Objects by name; of each, its fields' types.
using Schema = std::map<std::string, std::map<std::string, std::string>>;

Schema schema_of(const std::string& file) {
  Schema schema;
  std::ifstream in(file);
  std::string object;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) object = line.substr(3);
    if (!line.starts_with("| `")) continue;
    const std::size_t end = line.find('`', 3), type = line.find("| ", end) + 2;
    schema[object][line.substr(3, end - 3)] = line.substr(type, line.find(" |", type) - type);
  }
  return schema;
}

class Check {
 public:
  explicit Check(Schema schema) : schema_(std::move(schema)) {}

  void value(const std::string& path, const ordered_json& json, const std::string& type) {
    if (type.ends_with(" or null")) {
      if (!json.is_null()) value(path, json, type.substr(0, type.size() - 8));
    } else if (type.starts_with("list of ")) {
      ASSERT_TRUE(json.is_array()) << path;
      for (std::size_t i = 0; i < json.size(); ++i) value(path + '[' + std::to_string(i) + ']', json[i], type.substr(8));
    } else if (type.starts_with("map of ")) {
      ASSERT_TRUE(json.is_object()) << path;
      for (const auto& [name, one] : json.items()) value(path + '.' + name, one, type.substr(7));
    } else if (type == "text") {
      EXPECT_TRUE(json.is_string()) << path;
    } else if (type == "number") {
      EXPECT_TRUE(json.is_number()) << path;
    } else if (type == "integer") {
      EXPECT_TRUE(json.is_number_integer()) << path;
    } else if (type == "boolean") {
      EXPECT_TRUE(json.is_boolean()) << path;
    } else {
      object(path, json, type);
    }
  }

  // Objects of the description that no value was of.
  [[nodiscard]] std::set<std::string> unseen() const {
    std::set<std::string> names;
    for (const auto& [name, fields] : schema_) {
      if (!seen_.contains(name)) names.insert(name);
    }
    return names;
  }

 private:
  void object(const std::string& path, const ordered_json& json, const std::string& type) {
    ASSERT_TRUE(schema_.contains(type)) << path << ": no " << type << " is described";
    ASSERT_TRUE(json.is_object()) << path;
    seen_.insert(type);
    const auto& fields = schema_.at(type);
    for (const auto& [name, one] : json.items()) {
      EXPECT_TRUE(fields.contains(name)) << path << '.' << name << " is not described";
      if (fields.contains(name)) value(path + '.' + name, one, fields.at(name));
    }
    for (const auto& [name, field_type] : fields)
      EXPECT_TRUE(json.contains(name)) << path << '.' << name << " is not written";
  }

  Schema schema_;
  std::set<std::string> seen_;
};

TEST(DoctorJson, OfADiagnosis_IsAsDescribed) {
  Diagnosis d = diagnosis_with(Cause::kRemoteFrees);
  d.settings.server.load = "ab -n 1000";
  d.recorded_alone = d.recorded;
  Check check(schema_of(FREEHOLD_DOCTOR_SCHEMA));
  check.value("report", results_json(d), "report");
  EXPECT_EQ(check.unseen(), std::set<std::string>{});
  EXPECT_EQ(results_json(d)["schema"], kSchema);
}

TEST(DoctorJson, WithNothingMeasured_IsAsDescribed) {
  Check check(schema_of(FREEHOLD_DOCTOR_SCHEMA));
  check.value("report", results_json(Diagnosis{}), "report");
  Diagnosis d = diagnosis_with(Cause::kUndecided);
  for (auto& cell : d.experiment.cells) cell.trials.clear();
  d.verdict.fixes[0].gain = {};
  d.verdict.fixes[0].memory = {};
  d.verdict.fixes[0].failed = true;
  check.value("report", results_json(d), "report");
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
}  // namespace freehold::cli::doctor
