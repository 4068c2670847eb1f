// SPDX-License-Identifier: MIT
#include "freehold/os/libc.hpp"

#include <link.h>
#include <sched.h>
#include <sys/auxv.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

// The dynamic linker's list of what is loaded, which debuggers read. Absent in a static program.
#if defined(__GLIBC__)
#pragma weak _r_debug
#else
extern "C" [[gnu::weak]] struct r_debug* _dl_debug_addr;
#endif
extern "C" {
// Static programs have it: a wrapper by the linker's --wrap has the public name.
[[gnu::weak]] int __pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __hwasan_init();
[[gnu::weak]] void __msan_init();
[[gnu::weak]] void __tsan_init();
}

namespace freehold::os {

constinit decltype(Libc::clock_gettime) Libc::clock_gettime{&::clock_gettime};
constinit decltype(Libc::getauxval) Libc::getauxval{&::getauxval};
constinit decltype(Libc::pthread_attr_init) Libc::pthread_attr_init{&::pthread_attr_init};
constinit decltype(Libc::pthread_attr_setstack) Libc::pthread_attr_setstack{&::pthread_attr_setstack};
constinit decltype(Libc::pthread_create) Libc::pthread_create{&::pthread_create};
constinit decltype(Libc::pthread_getspecific) Libc::pthread_getspecific{&::pthread_getspecific};
constinit decltype(Libc::pthread_join) Libc::pthread_join{&::pthread_join};
constinit decltype(Libc::pthread_key_create) Libc::pthread_key_create{&::pthread_key_create};
constinit decltype(Libc::pthread_setcancelstate) Libc::pthread_setcancelstate{&::pthread_setcancelstate};
constinit decltype(Libc::pthread_setspecific) Libc::pthread_setspecific{&::pthread_setspecific};
constinit decltype(Libc::sched_getcpu) Libc::sched_getcpu{&::sched_getcpu};

namespace {

[[nodiscard]] const link_map* loaded_objects() noexcept {
#if defined(__GLIBC__)
  return &_r_debug == nullptr ? nullptr : _r_debug.r_map;
#else
  return &_dl_debug_addr == nullptr || _dl_debug_addr == nullptr ? nullptr : _dl_debug_addr->r_map;
#endif
}

// Goes by the file's name. Before glibc 2.34 the threads were a library apart; musl's is the dynamic linker, too.
[[nodiscard]] bool is_of_libc(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  for (const char* const begin : {"libc.so", "libpthread.so.", "libc.musl-", "ld-musl-"})
    if (std::strncmp(name, begin, std::strlen(begin)) == 0) return true;
  return false;
}

// An object's dynamic symbols, by the hash table that the linkers of all systems write (DT_GNU_HASH).
class Symbols {
 public:
  explicit Symbols(const link_map& object) noexcept : base_(object.l_addr) {
    for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
      // glibc has made addresses of these, musl has not.
      const std::uintptr_t at = entry->d_un.d_ptr < base_ ? entry->d_un.d_ptr + base_ : entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) names_ = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_VERSYM) versions_ = reinterpret_cast<const ElfW(Half)*>(at);
      if (entry->d_tag == DT_GNU_HASH) hash_ = reinterpret_cast<const std::uint32_t*>(at);
    }
  }

  // The function's default version; null: none.
  [[nodiscard]] void* function(const char* name) const noexcept {
    if (symbols_ == nullptr || names_ == nullptr || hash_ == nullptr) return nullptr;
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    // The head: buckets, first symbol, words of a filter that is skipped here.
    const std::uint32_t buckets = hash_[0], first = hash_[1];
    const std::uint32_t* const bucket = hash_ + 4 + hash_[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
    const std::uint32_t* const chains = bucket + buckets;
    constexpr ElfW(Half) kHidden = 0x8000;
    for (std::uint32_t i = bucket[hash % buckets]; i >= first; ++i) {
      const std::uint32_t of_this = chains[i - first];
      const ElfW(Sym)& symbol = symbols_[i];
      if ((of_this | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          (versions_ == nullptr || (versions_[i] & kHidden) == 0) && std::strcmp(names_ + symbol.st_name, name) == 0)
        return reinterpret_cast<void*>(base_ + symbol.st_value);
      if ((of_this & 1) != 0) break;  // the chain's last
    }
    return nullptr;
  }

 private:
  std::uintptr_t base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
};

}  // namespace

void find_libc() noexcept {
  if (&__asan_init != nullptr || &__hwasan_init != nullptr || &__msan_init != nullptr || &__tsan_init != nullptr) return;
  if (&__pthread_create != nullptr) Libc::pthread_create.set(reinterpret_cast<void*>(&__pthread_create));
  for (const link_map* object = loaded_objects(); object != nullptr; object = object->l_next) {
    if (!is_of_libc(object->l_name)) continue;
    const Symbols symbols(*object);
    const auto find = [&symbols](auto& function, const char* name) {
      if (void* const found = symbols.function(name); found != nullptr) function.set(found);
    };
    find(Libc::clock_gettime, "clock_gettime");
    find(Libc::getauxval, "getauxval");
    find(Libc::pthread_attr_init, "pthread_attr_init");
    find(Libc::pthread_attr_setstack, "pthread_attr_setstack");
    find(Libc::pthread_create, "pthread_create");
    find(Libc::pthread_getspecific, "pthread_getspecific");
    find(Libc::pthread_join, "pthread_join");
    find(Libc::pthread_key_create, "pthread_key_create");
    find(Libc::pthread_setcancelstate, "pthread_setcancelstate");
    find(Libc::pthread_setspecific, "pthread_setspecific");
    find(Libc::sched_getcpu, "sched_getcpu");
  }
}

}  // namespace freehold::os
