// SPDX-License-Identifier: MIT
// Private heaps behind the C++ library's interfaces: allocator, memory resource, operator new and delete of a class,
// unique_ptr.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <queue>
#include <scoped_allocator>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "freehold/heap/heap_allocator.hpp"
#include "freehold/heap/heap_resource.hpp"
#include "freehold/heap/in_heap.hpp"
#include "freehold/heap/owner_locked_heap.hpp"
#include "freehold/heap/private_heap.hpp"

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
    heap_.check_invariants();
  }
  template <class T>
  using Allocator = HeapAllocator<T, H>;
  using String = std::basic_string<char, std::char_traits<char>, HeapAllocator<char, H>>;

  static constexpr const char* kLong = "a string that is too long to lie within the string itself";
  H heap_, other_;
};
struct KindName {
  template <class H>
  static std::string GetName(int) {
    return std::is_same_v<H, PrivateHeap> ? "PrivateHeap" : "OwnerLockedHeap";
  }
};
using Kinds = testing::Types<OwnerLockedHeap, PrivateHeap>;
TYPED_TEST_SUITE(HeapAllocators, Kinds, KindName);

// Fills and empties a sequence; what it says must be what it was told.
template <class C>
void exercise_sequence(C& all) {
  for (int i = 0; i < 3000; ++i) all.insert(all.end(), i);
  C copy(all);
  EXPECT_EQ(copy, all);
  EXPECT_EQ(copy.get_allocator(), all.get_allocator());
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0), 3000 * 2999 / 2);
  all.erase(all.begin(), std::next(all.begin(), 1000));
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0), 3000 * 2999 / 2 - 1000 * 999 / 2);
}

TYPED_TEST(HeapAllocators, Sequences_Work) {
  using A = typename TestFixture::template Allocator<int>;
  const A allocator(this->heap_);
  std::vector<int, A> vector(allocator);
  std::deque<int, A> deque(allocator);
  std::list<int, A> list(allocator);
  exercise_sequence(vector);
  exercise_sequence(deque);
  exercise_sequence(list);
  list.sort(std::greater<>());
  EXPECT_EQ(list.front(), 2999);
  std::forward_list<int, A> forward(allocator);
  for (int i = 0; i < 1000; ++i) forward.push_front(i);
  forward.remove_if([](int i) { return i % 2 == 0; });
  EXPECT_EQ(std::distance(forward.begin(), forward.end()), 500);
  std::vector<bool, typename TestFixture::template Allocator<bool>> bits(10'000, true, allocator);
  EXPECT_TRUE(bits[9999]);
  std::priority_queue<int, std::vector<int, A>> queue(std::less<int>(), allocator);
  for (int i = 0; i < 100; ++i) queue.push(i * 37 % 100);
  EXPECT_EQ(queue.top(), 99);
  EXPECT_GT(live(this->heap_), 2000U);
}

TYPED_TEST(HeapAllocators, Associative_Work) {
  using A = typename TestFixture::template Allocator<std::pair<const int, int>>;
  using K = typename TestFixture::template Allocator<int>;
  const A allocator(this->heap_);
  std::map<int, int, std::less<>, A> map(allocator);
  std::multimap<int, int, std::less<>, A> multimap(allocator);
  std::set<int, std::less<>, K> set(allocator);
  std::multiset<int, std::less<>, K> multiset(allocator);
  std::unordered_map<int, int, std::hash<int>, std::equal_to<>, A> hashed(allocator);
  std::unordered_multimap<int, int, std::hash<int>, std::equal_to<>, A> multihashed(allocator);
  std::unordered_set<int, std::hash<int>, std::equal_to<>, K> hashed_set(allocator);
  for (int i = 0; i < 2000; ++i) {
    const int key = i * 7919 % 2000;
    map[key] = i;
    multimap.emplace(key / 2, i);
    set.insert(key);
    multiset.insert(key / 4);
    hashed[key] = i;
    multihashed.emplace(key / 2, i);
    hashed_set.insert(key);
  }
  EXPECT_EQ(live(this->heap_), 2000U * 7 + 3) << "a node each, and three tables";
  EXPECT_EQ(map.size(), 2000U);
  EXPECT_EQ(multimap.count(10), 2U);
  EXPECT_EQ(multiset.count(10), 4U);
  EXPECT_EQ(hashed.at(7919 % 2000), 1);
  EXPECT_EQ(multihashed.count(999), 2U);
  // A node goes to another container of the same heap.
  std::map<int, int, std::less<>, A> second(allocator);
  second.insert(map.extract(5));
  EXPECT_EQ(second.size() + map.size(), 2000U);
  const auto copy = map;
  EXPECT_EQ(copy, map);
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

TYPED_TEST(HeapAllocators, ScopedAllocator_ElementsAreInTheHeapToo) {
  using String = typename TestFixture::String;
  using A = std::scoped_allocator_adaptor<typename TestFixture::template Allocator<String>>;
  std::vector<String, A> words(A(typename TestFixture::template Allocator<String>(this->heap_)));
  words.reserve(10);
  for (int i = 0; i < 10; ++i) words.emplace_back(this->kLong);
  EXPECT_EQ(live(this->heap_), 11U);
  EXPECT_EQ(words[9], this->kLong);
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

TYPED_TEST(HeapAllocators, DroppedAtOnce_NothingIsDestroyedOneByOne) {
  using A = typename TestFixture::template Allocator<std::pair<const int, int>>;
  using Map = std::map<int, int, std::less<>, A>;
  alignas(Map) std::byte room[sizeof(Map)];
  auto* const map = ::new (static_cast<void*>(room)) Map(A(this->heap_));  // never ends
  for (int i = 0; i < 10'000; ++i) map->emplace(i, i);
  this->heap_.release_all();
  EXPECT_EQ(live(this->heap_), 0U);
  Map next{A(this->heap_)};
  for (int i = 0; i < 10'000; ++i) next.emplace(i, i);
  EXPECT_EQ(next.size(), 10'000U);
}

// ---- memory resource ----

TYPED_TEST(HeapAllocators, PmrContainers_AllOfItIsInTheHeap) {
  HeapResource resource(this->heap_);
  {
    std::pmr::vector<std::pmr::string> words(&resource);
    words.reserve(100);
    for (int i = 0; i < 100; ++i) words.emplace_back(this->kLong);
    EXPECT_EQ(live(this->heap_), 101U);
    std::pmr::unordered_map<int, std::pmr::string> map(&resource);
    for (int i = 0; i < 100; ++i) map.emplace(i, this->kLong);
    EXPECT_EQ(map.at(99), this->kLong);
    std::pmr::polymorphic_allocator<> allocator(&resource);
    auto* const text = allocator.new_object<std::pmr::string>(this->kLong);
    EXPECT_EQ(text->get_allocator().resource(), &resource);
    allocator.delete_object(text);
    const auto copy = words;
    EXPECT_EQ(copy.get_allocator().resource(), std::pmr::get_default_resource());
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

// ---- across threads ----

TEST(PrivateHeapFaces, ReleasedByAnotherThread_Works) {
  PrivateHeap heap;
  const HeapAllocator<std::string> allocator(heap);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::shared_ptr<std::string>> shared;
    std::vector<UniquePtr<std::string>> unique;
    for (int i = 0; i < 100; ++i) {
      shared.push_back(std::allocate_shared<std::string>(allocator, 50, 'x'));
      unique.push_back(make_unique<std::string>(heap, 50, 'y'));
    }
    std::thread([shared = std::move(shared), unique = std::move(unique)]() mutable {
      shared.clear();
      unique.clear();
    }).join();
    EXPECT_EQ(live(heap), 0U);
  }
}

}  // namespace
}  // namespace freehold::heap
