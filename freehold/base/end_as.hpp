// A deleter for a pointer to a base, made of the deleter of the object's own type: it ends the object, and gives its memory
// back, as that would, wherever the base lies within the object. The base's destructor need not be virtual.
//
// D, the deleter of a T: `object_type` is T, `owner()` where the memory goes to, `end(owner, object)` what it does. T must
// not have the base as a virtual one. Three words with the pointer.
#pragma once
#include <concepts>

namespace freehold::base {

template <class Base>
class EndAs {
 public:
  EndAs() noexcept = default;  // for a pointer without an object
  template <class D>
    requires std::derived_from<typename D::object_type, Base>
  EndAs(const D& deleter) noexcept  // implicit, so that a unique_ptr converts
      : owner_(deleter.owner()),
        end_([](void* owner, Base* object) noexcept { D::end(owner, static_cast<typename D::object_type*>(object)); }) {}
  void operator()(Base* object) const noexcept { end_(owner_, object); }

 private:
  void* owner_ = nullptr;
  void (*end_)(void* owner, Base* object) noexcept = nullptr;
};

}  // namespace freehold::base
