// SPDX-License-Identifier: MIT
#include "freehold/process/client/future.hpp"

#include "freehold/process/client/client.hpp"

namespace freehold::process {

Result::~Result() {
  if (entry_.client != nullptr) entry_.client->release(entry_.ticket);
}

bool Future::wait_for(std::optional<Nanoseconds> timeout) noexcept {
  return !valid() || entry_.client->wait_for(entry_.ticket, timeout);
}

Result Future::get() noexcept {
  if (!valid()) return error_.kind == FailureKind::kNone ? Result() : Result(error_);
  Client& client = *entry_.client;
  return client.get(std::move(entry_));
}

void Future::then(std::function<void(Result)> function) {
  if (!valid()) return function(get());
  Client& client = *entry_.client;
  client.then(std::move(entry_), std::move(function));  // which may destroy this future
}

void Future::cancel() noexcept {
  if (valid()) std::exchange(entry_.client, nullptr)->cancel(entry_.ticket);
}
void Future::kill() noexcept {
  if (valid()) std::exchange(entry_.client, nullptr)->kill(entry_.ticket);
}

}  // namespace freehold::process
