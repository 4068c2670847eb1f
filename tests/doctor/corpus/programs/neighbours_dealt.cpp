// SPDX-License-Identifier: MIT
// The main thread allocates 400 small objects and deals them out in turn; each thread updates its own again and again. An
// object of 40 bytes takes 48, so that most lines hold parts of two threads' objects. `apart` asks malloc for 128 bytes
// more for each, and scales.
#include "tests/doctor/corpus/programs/common.h"

namespace {

struct Account {
  volatile long balance, deposits, withdrawals, fees, interest;
};

void book(const std::vector<Account*>& accounts, long rounds) {
  for (long i = 0; i < rounds; ++i)
    for (Account* account : accounts) {
      account->balance = account->balance + i;
      account->deposits = account->deposits + 1;
      account->interest = account->interest + account->fees;
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = std::atoi(argv[1]);
  const std::size_t more = std::strcmp(argv[2], "apart") ? 0 : 128;
  const long rounds = std::atol(argv[3]) * 2;
  std::vector<std::vector<Account*>> dealt(threads);
  for (int i = 0; i < 400; ++i) dealt[i % threads].push_back(static_cast<Account*>(std::calloc(1, sizeof(Account) + more)));
  in_threads(threads, [&](int i) { book(dealt[i], rounds); });
  std::printf("balance %ld\n", dealt[0][0]->balance);
}
