// SPDX-License-Identifier: MIT
// pool_program KIND: misuses an object pool in one way (kinds.hpp).
#include <cstdlib>
#include <memory>

#include "freehold/pool.hpp"
#include "tests/misuse/blocks.hpp"

namespace freehold::test {
namespace {

// An object that fills its slot.
struct Order {
  char bytes[48] = {};
};
using Orders = ObjectPool<Order>;
using BareSlots = pool::NativePool<pool::Best>;

constexpr std::size_t kObjects = 1000;

Order* made(Orders& orders) { return opaque(orders.construct()); }

// So many objects that a batch of slots goes back.
void make_and_end_others(Orders& orders) {
  std::vector<Order*> others(kObjects / 2);
  for (Order*& order : others) order = made(orders);
  for (Order* order : others) orders.destroy(order);
}

void end_twice() {
  Orders orders(kObjects);
  Order* const order = made(orders);
  orders.destroy(opaque(order));
  orders.destroy(opaque(order));
}

void end_twice_then_others() {
  Orders orders(kObjects);
  Order* const order = made(orders);
  orders.destroy(opaque(order));
  orders.destroy(opaque(order));
  make_and_end_others(orders);
}

void end_twice_with_others_between() {
  Orders orders(kObjects);
  std::vector<Order*> others(kObjects / 2);
  for (Order*& other : others) other = made(orders);
  Order* const order = made(orders);
  orders.destroy(opaque(order));
  for (Order* other : others) orders.destroy(other);
  orders.destroy(opaque(order));
}

void end_twice_by_another_thread() {
  Orders orders(kObjects);
  Order* const order = made(orders);
  orders.destroy(opaque(order));
  std::thread([&] { orders.destroy(opaque(order)); }).join();
}

void end_by_the_handle_too() {
  Orders orders(kObjects);
  auto handle = orders.make();
  orders.destroy(opaque(handle.get()));
}

void release_a_bare_slot_twice() {
  BareSlots slots({.slots = kObjects, .slot_bytes = 48});
  void* const slot = slots.acquire();
  slots.release(opaque(slot));
  slots.release(opaque(slot));
}

void release_of(void* foreign) {
  BareSlots slots({.slots = kObjects, .slot_bytes = 48});
  void* const slot = slots.acquire();
  slots.release(opaque(foreign));
  slots.release(slot);
}

void end_in_another_pool() {
  Orders orders(kObjects), others(kObjects);
  others.destroy(made(orders));
}

template <std::size_t kAt>
void release_inside() {
  BareSlots slots({.slots = kObjects, .slot_bytes = 48});
  slots.release(another(slots.acquire()) + kAt);
}

template <long kAt, std::size_t kBytes>
void write_beside() {
  Orders orders(kObjects);
  make_and_end_others(orders);
  Order* const order = made(orders);
  for (std::size_t i = 0; i < kBytes; ++i) write(another(order) + kAt + static_cast<long>(i));
  orders.destroy(order);
}

void write_after_end() {
  Orders orders(kObjects);
  Order* const order = made(orders);
  orders.destroy(opaque(order));
  write(another(order));
  make_and_end_others(orders);
}

void read_after_end() {
  Orders orders(kObjects);
  Order* const order = made(orders);
  orders.destroy(opaque(order));
  opaque(read(another(order)));
}

void pool_before_its_object() {
  auto orders = std::make_unique<Orders>(kObjects);
  auto handle = orders->make();
  orders.reset();
  handle.reset();
}

void pool_with_a_lost_object() {
  Orders orders(kObjects);
  opaque(made(orders));
}

int g_static[100];

constexpr Kind kKinds[] = {
    {"pool_double_destroy", end_twice},
    {"pool_double_destroy_then_others", end_twice_then_others},
    {"pool_double_destroy_with_others_between", end_twice_with_others_between},
    {"pool_double_destroy_by_another_thread", end_twice_by_another_thread},
    {"pool_destroy_beside_a_handle", end_by_the_handle_too},
    {"pool_double_release_of_a_slot", release_a_bare_slot_twice},
    {"pool_release_of_the_stack",
     [] {
       int local[100];
       release_of(&local[0]);
     }},
    {"pool_release_of_static_data", [] { release_of(&g_static[0]); }},
    {"pool_release_of_a_block_of_malloc", [] { release_of(block_of(48)); }},
    {"pool_destroy_in_another_pool", end_in_another_pool},
    {"pool_release_inside_a_slot", release_inside<16>},
    {"pool_release_of_an_odd_address", release_inside<1>},
    {"pool_overflow_by_1", write_beside<sizeof(Order), 1>},
    {"pool_overflow_by_16", write_beside<sizeof(Order), 16>},
    {"pool_underflow_by_1", write_beside<-1, 1>},
    {"pool_underflow_by_16", write_beside<-16, 16>},
    {"pool_write_after_destroy", write_after_end},
    {"pool_read_after_destroy", read_after_end},
    {"pool_ends_before_its_object", pool_before_its_object},
    {"pool_with_a_lost_object", pool_with_a_lost_object},
};

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) { return freehold::test::run_kind(argc, argv, {freehold::test::kKinds}); }
