// SPDX-License-Identifier: MIT
/* A library that can be preloaded and does nothing: what `freehold run` refuses or passes on does not depend on malloc. */
int freehold_test_preloaded(void) { return 1; }
