// SPDX-License-Identifier: MIT
// Prints by streams that have a locale with a name, which the C++ runtime holds until the end. With an argument it loses the
// string that the runtime allocates for the caller.
#include <cxxabi.h>

#include <iostream>
#include <locale>

int main(int count, char**) {
  std::locale::global(std::locale("C.UTF-8"));
  std::cout.imbue(std::locale());
  std::cout << "clean" << std::endl;
  std::wclog.imbue(std::locale());
  if (count > 1) (void)abi::__cxa_demangle("_ZSt4cout", nullptr, nullptr, nullptr);
}
