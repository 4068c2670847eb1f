// SPDX-License-Identifier: MIT
// Correct programs of C++ that a malloc which looks for misuse might mind: the deletes that the compiler chooses, and what
// ends after main. Every form of new with every delete that may follow it is tests/conformance's.
#include <map>
#include <memory>
#include <new>
#include <string>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

struct Shape {
  virtual ~Shape() = default;
  int a = 1;
};
struct Circle : Shape {
  int more[300] = {};
};
struct alignas(128) Wide : Shape {
  int more[50] = {};
};
struct WithDestructor {
  WithDestructor() : text("a string that is too long to stand in the object itself") {}
  std::string text;
};

void objects_and_arrays() {
  std::unique_ptr<Shape> circle = std::make_unique<Circle>();  // a virtual destructor passes the right size
  std::unique_ptr<Shape> wide = std::make_unique<Wide>();
  const auto array = std::make_unique<WithDestructor[]>(33);  // with a count before it
  const auto none = std::make_unique<WithDestructor[]>(0);
  const auto plain = std::make_unique<int[]>(33);
  const auto wides = std::make_unique<Wide[]>(3);
  delete opaque(static_cast<int*>(nullptr));
  delete[] opaque(static_cast<WithDestructor*>(nullptr));
  ::operator delete(nullptr, std::size_t{100});
  ::operator delete(nullptr, std::align_val_t{64});
}

void a_constructor_that_throws() {
  struct Throws {
    Throws() { throw 1; }
    char bytes[500];
  };
  for (int i = 0; i < 10; ++i) {
    try {
      opaque(new Throws);
    } catch (int) {
    }
    try {
      opaque(new Throws[3]);
    } catch (int) {
    }
  }
}

// Ends after main, with its blocks.
std::map<int, std::string>& statics() {
  static std::map<int, std::string> map;
  return map;
}

void thread_locals_and_statics() {
  for (int i = 0; i < 100; ++i) statics()[i] = "a string that is too long to stand in the object itself";
  std::thread([] {
    static thread_local std::vector<std::string> texts;
    for (int i = 0; i < 100; ++i) texts.emplace_back(static_cast<std::size_t>(i), 'x');
  }).join();
}

constexpr Kind kKinds[] = {
    {"legal_objects_and_arrays", objects_and_arrays},
    {"legal_constructor_that_throws", a_constructor_that_throws},
    {"legal_thread_locals_and_statics", thread_locals_and_statics},
};

}  // namespace

Kinds legal_cxx() { return kKinds; }

}  // namespace freehold::test
