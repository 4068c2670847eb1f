// SPDX-License-Identifier: MIT
// Private heaps behind the C++ library's interfaces: allocator, memory resource, operator new and delete of a class,
// unique_ptr.
#include <list>
#include <memory_resource>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "freehold/heap/adapters.hpp"
#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_resource.hpp"
#include "freehold/heap/in_heap.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"
#include "tests/support/heaps.hpp"
#include "tests/support/inside.hpp"
#include "tests/support/test.hpp"

namespace freehold::heap {
namespace {

template <class H>
std::uint64_t live(H& heap) {
  return heap.stats().live_objects;
}

template <class H>
class HeapAllocators : public testing::Test {
 protected:
  ~HeapAllocators() override {
    EXPECT_EQ(live(heap_), 0U) << "not everything was given back";
    EXPECT_EQ(live(other_), 0U);
    heap::Inside::check_invariants(heap_);
  }
  template <class T>
  using Allocator = HeapAllocator<T, H>;

  static constexpr const char* kLong = "a string that is too long to lie within the string itself";
  H heap_, other_;
};
using Kinds = testing::Types<OwnerLockedHeap, PrivateHeap>;
TYPED_TEST_SUITE(HeapAllocators, Kinds, test::HeapName);

TYPED_TEST(HeapAllocators, Containers_EveryElementIsInTheHeap) {
  using A = typename TestFixture::template Allocator<std::pair<const int, int>>;
  using K = typename TestFixture::template Allocator<int>;
  const A allocator(this->heap_);
  std::vector<int, K> vector{K(allocator)};
  std::list<int, K> list{K(allocator)};
  std::map<int, int, std::less<>, A> map(allocator), second(allocator);
  std::unordered_map<int, int, std::hash<int>, std::equal_to<>, A> hashed(allocator);
  for (int i = 0; i < 2000; ++i) {
    const int key = i * 7919 % 2000;
    vector.push_back(key);
    list.push_front(key);
    map[key] = hashed[key] = i;
  }
  EXPECT_EQ(live(this->heap_), 2000U * 3 + 2) << "a node each, an array and a table";
  EXPECT_EQ(std::accumulate(vector.begin(), vector.end(), 0), std::accumulate(list.begin(), list.end(), 0));
  EXPECT_EQ(hashed.at(7919 % 2000), 1);
  second.insert(map.extract(5));  // a node goes to another container of the same heap
  EXPECT_EQ(second.size() + map.size(), 2000U);
  const auto copy = map;
  EXPECT_EQ(copy, map);
  EXPECT_EQ(copy.get_allocator(), map.get_allocator());
}

// As std::execution's query asks an environment: get_allocator(env) is env.query(get_allocator).
struct GetAllocator {
  template <class Environment>
  auto operator()(const Environment& environment) const noexcept {
    return environment.query(*this);
  }
};
template <class Allocator>
struct Environment {
  [[nodiscard]] Allocator query(GetAllocator) const noexcept { return allocator; }
  Allocator allocator;
};
TYPED_TEST(HeapAllocators, GetAllocator_IsTheHeapsAndAnEnvironmentAnswersWithIt) {
  using Bytes = typename TestFixture::template Allocator<std::byte>;
  const auto allocator = GetAllocator()(Environment<Bytes>{this->heap_.get_allocator()});
  EXPECT_EQ(&allocator.heap(), &this->heap_);
  const std::vector<int, typename TestFixture::template Allocator<int>> vector(100, 1, allocator),
      same(100, 1, this->heap_.template get_allocator<int>());
  EXPECT_EQ(live(this->heap_), 2U);
}
TEST(FallbackHeapAllocator, GetAllocator_TakesFromBoth) {
  PrivateHeap first({.limit_bytes = 64 << 10}), second;
  FallbackHeap both(first, second);
  const std::vector<int, HeapAllocator<int, FallbackHeap<>>> vector(100'000, 1, both.get_allocator());
  EXPECT_EQ(live(second), 1U);
}

TYPED_TEST(HeapAllocators, MoveAndSwap_TheHeapGoesAlong) {
  using A = typename TestFixture::template Allocator<int>;
  using Vector = std::vector<int, A>;
  Vector first(100, 1, A(this->heap_)), second(200, 2, A(this->other_));
  const int* const data = second.data();
  swap(first, second);
  EXPECT_EQ(&first.get_allocator().heap(), &this->other_);
  EXPECT_EQ(first.data(), data);
  first = std::move(second);
  EXPECT_EQ(&first.get_allocator().heap(), &this->heap_);
  EXPECT_EQ(first, Vector(100, 1, A(this->other_)));
  EXPECT_EQ(live(this->other_), 0U) << "what was assigned to is given back to its own heap";
  const Vector moved(std::move(first));
  EXPECT_EQ(moved.size(), 100U);
  EXPECT_EQ(live(this->heap_), 1U);
}

TYPED_TEST(HeapAllocators, AllocateShared_OneBlockForObjectAndCounts) {
  const typename TestFixture::template Allocator<std::string> allocator(this->heap_);
  std::weak_ptr<std::string> weak;
  {
    const auto text = std::allocate_shared<std::string>(allocator, 100, 'x');
    weak = text;
    EXPECT_EQ(live(this->heap_), 1U);
    EXPECT_EQ(text->size(), 100U);
  }
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(live(this->heap_), 1U) << "its counts";
  weak.reset();
  const std::shared_ptr<int> deleter(new int(1), std::default_delete<int>(), allocator);
  EXPECT_EQ(live(this->heap_), 1U);
}

TYPED_TEST(HeapAllocators, NoMemory_BadAlloc) {
  TypeParam little({.limit_bytes = 64 * 1024});
  using A = typename TestFixture::template Allocator<int>;
  std::vector<int, A> vector{A(little)};
  EXPECT_THROW(vector.resize(100'000), std::bad_alloc);
  EXPECT_EQ(vector.size(), 0U);
  EXPECT_THROW(static_cast<void>(A(little).allocate(~std::size_t{0} / 4)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(A(little).allocate(~std::size_t{0} / 4 + 1)), std::bad_array_new_length);
  HeapResource resource(little);
  EXPECT_THROW(static_cast<void>(resource.allocate(100'000)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(make_unique<std::array<char, 100'000>>(little)), std::bad_alloc);
  EXPECT_EQ(live(little), 0U);
}

// ---- memory resource ----

TYPED_TEST(HeapAllocators, PmrContainers_AllOfItIsInTheHeap) {
  HeapResource resource(this->heap_);
  {
    std::pmr::vector<std::pmr::string> words(&resource);
    words.reserve(100);
    for (int i = 0; i < 100; ++i) words.emplace_back(this->kLong);
    EXPECT_EQ(live(this->heap_), 101U);
  }
  for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
    void* const block = resource.allocate(40, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    resource.deallocate(block, 40, alignment);
  }
}

// ---- operator new and delete ----

template <class H>
struct Shape : InHeap<H> {
  explicit Shape(int sides) : sides(sides) {
    if (sides < 0) throw std::invalid_argument("sides");
    ++alive;
  }
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;
  virtual ~Shape() { --alive; }
  int sides;
  static inline int alive = 0;
};
struct Tag {
  virtual ~Tag() = default;
  int tag = 0;
};
// Larger than its base, which is not at its beginning.
template <class H>
struct Polygon : Tag, Shape<H> {
  explicit Polygon(int sides) : Shape<H>(sides) {
    if (sides == 0) throw std::runtime_error("none");
  }
  char points[500] = {};
};
template <class H>
struct alignas(128) Wide : InHeap<H> {
  explicit Wide(bool good) {
    if (!good) throw std::invalid_argument("bad");
  }
  char bytes[300] = {};
};

TYPED_TEST(HeapAllocators, ClassInHeap_NewAndDelete) {
  auto* const shape = new (this->heap_) Shape<TypeParam>(3);
  EXPECT_EQ(live(this->heap_), 1U);
  EXPECT_EQ(&TypeParam::heap_of(shape), &this->heap_);
  delete shape;
  Shape<TypeParam>* none = nullptr;
  asm volatile("" : "+r"(none));  // the compiler would warn
  delete none;
  Shape<TypeParam>* const polygon = new (this->other_) Polygon<TypeParam>(5);
  EXPECT_NE(static_cast<void*>(polygon), dynamic_cast<void*>(polygon));
  EXPECT_EQ(live(this->other_), 1U);
  delete polygon;
  EXPECT_EQ(Shape<TypeParam>::alive, 0);
  const std::unique_ptr<Shape<TypeParam>> owned(new (this->heap_) Shape<TypeParam>(4));
  EXPECT_EQ(live(this->heap_), 1U);
}

template <class T>
concept NewWithoutHeap = requires { new T(1); };
static_assert(!NewWithoutHeap<Shape<PrivateHeap>>, "in which heap?");

// ---- unique_ptr ----

TYPED_TEST(HeapAllocators, MakeUnique_EndsWithItsObject) {
  {
    UniquePtr<std::string, TypeParam> text = make_unique<std::string>(this->heap_, 100, 'x');
    EXPECT_EQ(text->size(), 100U);
    EXPECT_EQ(live(this->heap_), 1U);
    auto moved = std::move(text);
    EXPECT_EQ(text, nullptr);
    moved = make_unique<std::string>(this->other_, "other");
    EXPECT_EQ(live(this->heap_), 0U);
    EXPECT_EQ(live(this->other_), 1U);
  }
  EXPECT_EQ(live(this->other_), 0U);
  const auto wide = make_unique<Wide<TypeParam>>(this->heap_, true);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.get()) % 128, 0U);
}

}  // namespace
}  // namespace freehold::heap
