// SPDX-License-Identifier: MIT
// docs/doctor-schema.md as a test: what is written is described, what is described is written. The tables of the page are
// read: a heading names an object, a row has a field, its type and its meaning.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/test.hpp"

namespace freehold::tests {

// Expects of a report that it has the fields that are described, each of its type, and no others.
class DoctorSchema {
 public:
  // `pages`: those that describe it.
  explicit DoctorSchema(std::initializer_list<const char*> pages) {
    for (const char* const page : pages) read(page);
  }

  void value(const std::string& path, const nlohmann::json& json, const std::string& type) {
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
  void read(const char* page) {
    std::ifstream in(page);
    std::string object;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("## ")) object = line.substr(3);
      if (!line.starts_with("| `")) continue;
      const std::size_t end = line.find('`', 3), type = line.find("| ", end) + 2;
      schema_[object][line.substr(3, end - 3)] = line.substr(type, line.find(" |", type) - type);
    }
  }

  void object(const std::string& path, const nlohmann::json& json, const std::string& type) {
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

  std::map<std::string, std::map<std::string, std::string>> schema_;  // objects by name; of each, its fields' types
  std::set<std::string> seen_;
};

}  // namespace freehold::tests
