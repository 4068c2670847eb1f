// SPDX-License-Identifier: MIT
#include "freehold/pool/memory.hpp"

#include <cstring>
#include <new>

#include "freehold/os/pages.hpp"

namespace freehold::pool {
namespace {
constexpr std::size_t kPageWorth = 4096;
}  // namespace

bool Memory::take(std::size_t bytes, std::size_t alignment, Huge huge) noexcept {
  if (bytes >= kPageWorth || alignment >= kPageWorth) {
    if (!reserve(bytes, alignment, huge)) return false;
    if (os::Pages::commit(start_, bytes_)) return true;
    give_back();
    return false;
  }
  alignment_ = alignment < base::kCacheLine ? base::kCacheLine : alignment;
  bytes_ = base::align_up(bytes == 0 ? 1 : bytes, alignment_);
  start_ = ::operator new(bytes_, std::align_val_t{alignment_}, std::nothrow);
  if (start_ == nullptr) return false;
  std::memset(start_, 0, bytes_);
  return true;
}

bool Memory::reserve(std::size_t bytes, std::size_t alignment, Huge huge) noexcept {
  const std::size_t page = os::page_bytes();
  if (bytes > ~std::size_t{0} - 2 * kHugePage) return false;
  bytes_ = base::align_up(bytes, page);
  alignment_ = alignment < page ? page : alignment;
  if (bytes_ >= kHugePage && alignment_ < kHugePage) alignment_ = kHugePage;
  start_ = os::Pages::reserve(bytes_, alignment_);
  if (start_ == nullptr) return false;
  mapped_ = true;
  if (bytes_ >= kHugePage && huge == Huge::kAtOnce) advise_huge(0);
  return true;
}

void Memory::give_back() noexcept {
  if (mapped_)
    os::Pages::release(start_, bytes_);
  else
    ::operator delete(start_, bytes_, std::align_val_t{alignment_});
  start_ = nullptr;
}

bool Memory::commit(std::size_t from, std::size_t end) const noexcept {
  const std::size_t page = os::page_bytes();
  from = base::align_down(from, page);
  end = end < bytes_ ? base::align_up(end, page) : bytes_;
  return os::Pages::commit(static_cast<std::byte*>(start_) + from, end - from);
}

void Memory::advise_huge(std::size_t from) const noexcept {
  from = base::align_up(from, kHugePage);
  const std::size_t end = base::align_down(bytes_, kHugePage);
  if (mapped_ && from < end) os::Pages::advise_huge(static_cast<std::byte*>(start_) + from, end - from);
}

}  // namespace freehold::pool
