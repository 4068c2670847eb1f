// SPDX-License-Identifier: MIT
// malloc_program KIND: misuses malloc in one way (kinds.hpp). Kinds whose name begins with "legal" are correct programs: no
// malloc may mind them.
#include "tests/misuse/blocks.hpp"
#include "tests/support/active_malloc.hpp"

int main(int argc, char** argv) {
  using namespace freehold::test;
  if (freehold_is_expected() && !freehold_answers()) return 3;
  return run_kind(argc, argv,
                  {double_frees(), bad_pointers(), wrong_sizes(), mixed_families(), overflows(), underflows(),
                   uses_after_free(), leaks_and_contents(), legal_calls(), legal_cxx()});
}
