// SPDX-License-Identifier: MIT
// A function to call later that needs no memory beside itself: a callable of at most the size of a pointer. That is a lambda
// that captures one reference, or std::ref(f) for any other f, which has to live as long as it may be called. It takes the
// arguments or none of them, and must not throw. Two words; a copy calls the same. Cost: an indirect call.
//
//   Callback<void(int)> f = [&sum](int n) { sum += n; };
//   if (f) f(3);
#pragma once
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

namespace freehold::base {

template <class Signature>
class Callback;
template <class R, class... Args>
class Callback<R(Args...)> {
 public:
  Callback() noexcept = default;
  template <class F>
    requires(std::is_invocable_r_v<R, F&, Args...> || std::is_invocable_r_v<R, F&>)
  Callback(F f) noexcept : call_(call<F>) {
    static_assert(sizeof(F) <= sizeof(void*) && std::is_trivially_copyable_v<F>,
                  "capture one reference, or give std::ref(f)");
    std::memcpy(&context_, &f, sizeof f);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }
  R operator()(Args... args) const noexcept { return call_(context_, args...); }

 private:
  template <class F>
  static R call(void* context, Args... args) noexcept {
    alignas(void*) std::byte bytes[sizeof context];
    std::memcpy(bytes, &context, sizeof context);
    F& f = *std::launder(reinterpret_cast<F*>(bytes));
    if constexpr (std::is_invocable_r_v<R, F&, Args...>)
      return f(args...);
    else
      return f();
  }

  R (*call_)(void* context, Args... args) noexcept = nullptr;
  void* context_ = nullptr;
};

}  // namespace freehold::base
