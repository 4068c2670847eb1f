// SPDX-License-Identifier: MIT
// Correct programs of C++ that a malloc which looks for misuse might mind: every form of new with every delete that may
// follow it, and what the C++ runtime allocates itself.
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

using std::align_val_t;

void* filled(void* p, std::size_t n) {
  std::memset(p, 1, n);
  return opaque(p);
}

// Sizes that are no size of a class: the padding is not part of the size.
void every_sized_delete() {
  for (std::size_t n = 0; n < 3000; ++n) {
    ::operator delete(filled(::operator new(n), n), n);
    ::operator delete[](filled(::operator new[](n), n), n);
    ::operator delete(filled(::operator new(n, align_val_t{64}), n), n, align_val_t{64});
  }
  for (const std::size_t n : {kMiddle, 32 * kKiB, 32 * kKiB + 1, kLarge, 5 * kMiB + 1}) {
    ::operator delete(filled(::operator new(n), n), n);
    ::operator delete[](filled(::operator new[](n), n), n);
    ::operator delete(filled(::operator new(n, align_val_t{4096}), n), n, align_val_t{4096});
  }
}

// Every delete that the standard allows for a new. The nothrow forms of delete may end what the throwing new made.
void every_pair_of_forms() {
  for (const std::size_t n : {1UL, 100UL, kMiddle, kLarge}) {
    ::operator delete(filled(::operator new(n), n));
    ::operator delete(filled(::operator new(n), n), std::nothrow);
    ::operator delete(filled(::operator new(n, std::nothrow), n));
    ::operator delete(filled(::operator new(n, std::nothrow), n), n);
    ::operator delete[](filled(::operator new[](n), n));
    ::operator delete[](filled(::operator new[](n), n), std::nothrow);
    ::operator delete[](filled(::operator new[](n, std::nothrow), n));
    ::operator delete(filled(::operator new(n, align_val_t{32}), n), align_val_t{32});
    ::operator delete(filled(::operator new(n, align_val_t{32}, std::nothrow), n), align_val_t{32});
    ::operator delete(filled(::operator new(n, align_val_t{32}), n), align_val_t{32}, std::nothrow);
    ::operator delete[](filled(::operator new[](n, align_val_t{32}), n), align_val_t{32});
    ::operator delete[](filled(::operator new[](n, align_val_t{32}), n), n, align_val_t{32});
  }
}

// Alignments that every block has anyway are an alignment of the block all the same.
void small_alignments() {
  for (const std::size_t alignment : {1UL, 2UL, 4UL, 8UL, 16UL}) {
    ::operator delete(filled(::operator new(100, align_val_t{alignment}), 100), align_val_t{alignment});
    ::operator delete(filled(::operator new(100, align_val_t{alignment}), 100), 100, align_val_t{alignment});
  }
}

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
  ::operator delete(nullptr, align_val_t{64});
}

void containers() {
  std::map<int, std::string> map;
  std::unordered_map<std::string, std::deque<int>> table;
  for (int i = 0; i < 3000; ++i) {
    map[i * 7919 % 3001] = std::string(static_cast<std::size_t>(i) % 100, 'x');
    table[std::to_string(i % 100)].push_back(i);
    if (i % 3 == 0) map.erase(map.begin());
  }
  std::vector<std::string> words;
  for (int i = 0; i < 3000; ++i) words.push_back(std::to_string(i) + " is a number that is written out here");
  words.shrink_to_fit();
}

void exceptions_and_streams() {
  for (int i = 0; i < 100; ++i) {
    try {
      throw std::runtime_error("a message that is copied into a block of the exception's own");
    } catch (const std::exception& error) {
      std::ostringstream text;
      text << error.what() << i;
    }
  }
  try {
    opaque(::operator new(opaque(SIZE_MAX / 2)));
  } catch (const std::bad_alloc&) {
  }
  static_cast<void>(opaque(::operator new(opaque(SIZE_MAX / 2), std::nothrow)));
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
    {"legal_every_sized_delete", every_sized_delete},
    {"legal_every_pair_of_forms", every_pair_of_forms},
    {"legal_small_alignments", small_alignments},
    {"legal_objects_and_arrays", objects_and_arrays},
    {"legal_containers", containers},
    {"legal_exceptions_and_streams", exceptions_and_streams},
    {"legal_constructor_that_throws", a_constructor_that_throws},
    {"legal_thread_locals_and_statics", thread_locals_and_statics},
};

}  // namespace

Kinds legal_cxx() { return kKinds; }

}  // namespace freehold::test
