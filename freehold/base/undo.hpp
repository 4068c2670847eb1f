// SPDX-License-Identifier: MIT
// Ways to end an object.
//
//   Undo         a scope guard: calls `f()` at the end of the scope, unless dismissed. It takes the place of
//                catch (...) { f(); throw; } and also works in programs without exceptions.
//   EndAs<Base>  a deleter for std::unique_ptr<Base>, converted from the deleter of a derived type. It destroys the object
//                as its own type and frees its memory as the original deleter would, wherever the base lies within the
//                object. The base needs no virtual destructor, and is no virtual base. Size: three words with the pointer.
#pragma once
#include <concepts>
#include <utility>

namespace freehold::base {

template <class F>
class [[nodiscard]] Undo {
 public:
  explicit Undo(F f) noexcept : f_(std::move(f)) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (!dismissed_) f_();
  }
  void dismiss() noexcept { dismissed_ = true; }

 private:
  F f_;
  bool dismissed_ = false;
};

// The original deleter D has `object_type`, `owner()` (which gets the memory back) and the static `end(owner, object)`.
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
