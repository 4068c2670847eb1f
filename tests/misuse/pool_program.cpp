// SPDX-License-Identifier: MIT
// pool_program KIND: misuses an object pool in one way (kinds.hpp).
#include <memory>

#include "freehold/pool.hpp"
#include "tests/misuse/block_kinds.hpp"

namespace freehold::test {
namespace {

constexpr std::size_t kObjects = 1000;

// An object that fills its slot.
struct Order {
  char bytes[48] = {};
};
using Orders = ObjectPool<Order>;

struct Objects {
  static constexpr std::size_t kMany = kObjects / 2;
  char* make(std::size_t) { return another(orders.construct()); }
  void end(void* order) { orders.destroy(static_cast<Order*>(opaque(order))); }

  Orders orders{kObjects};
};
struct BareSlots {
  char* make(std::size_t) { return another(slots.acquire()); }
  void end(void* slot) { slots.release(opaque(slot)); }

  pool::NativePool<pool::Best> slots{{.slots = kObjects, .slot_bytes = sizeof(Order)}};
};
using Object = BlockKinds<Objects>;
using Slot = BlockKinds<BareSlots>;

void end_by_the_handle_too() {
  Orders orders(kObjects);
  auto handle = orders.make();
  orders.destroy(opaque(handle.get()));
}

void pool_before_its_object() {
  auto orders = std::make_unique<Orders>(kObjects);
  auto handle = orders->make();
  orders.reset();
  handle.reset();
}

void pool_with_a_lost_object() { opaque(Objects().make(0)); }

constexpr Kind kKinds[] = {
    {"pool_double_destroy", Object::free_twice<sizeof(Order)>},
    {"pool_double_destroy_then_others", Object::free_twice_then_others},
    {"pool_double_destroy_with_others_between", Object::free_twice_with_others_between},
    {"pool_double_destroy_by_another_thread", Object::free_twice_by_another_thread},
    {"pool_destroy_beside_a_handle", end_by_the_handle_too},
    {"pool_double_release_of_a_slot", Slot::free_twice<sizeof(Order)>},
    {"pool_release_of_the_stack", Slot::free_of_the_stack},
    {"pool_release_of_static_data", Slot::free_of_static_data},
    {"pool_release_of_a_block_of_malloc", Slot::free_of_a_block_of_malloc},
    {"pool_destroy_in_another_pool", Object::free_into_another<sizeof(Order)>},
    {"pool_release_inside_a_slot", Slot::free_inside<sizeof(Order), 16>},
    {"pool_release_of_an_odd_address", Slot::free_inside<sizeof(Order), 1>},
    {"pool_overflow_by_1", Object::write_beside<sizeof(Order), sizeof(Order), 1>},
    {"pool_overflow_by_16", Object::write_beside<sizeof(Order), sizeof(Order), 16>},
    {"pool_underflow_by_1", Object::write_beside<sizeof(Order), -1, 1>},
    {"pool_underflow_by_16", Object::write_beside<sizeof(Order), -16, 16>},
    {"pool_write_after_destroy", Object::write_after_free<sizeof(Order)>},
    {"pool_read_after_destroy", Object::read_after_free<sizeof(Order)>},
    {"pool_ends_before_its_object", pool_before_its_object},
    {"pool_with_a_lost_object", pool_with_a_lost_object},
};

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) { return freehold::test::run_kind(argc, argv, {freehold::test::kKinds}); }
