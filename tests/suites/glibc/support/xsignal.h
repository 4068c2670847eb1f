// SPDX-License-Identifier: MIT
#ifndef FREEHOLD_SUITES_GLIBC_XSIGNAL_H
#define FREEHOLD_SUITES_GLIBC_XSIGNAL_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <signal.h>

#include "tests/suites/glibc/support/check.h"

static inline void xsigaction(int signal, const struct sigaction* action, struct sigaction* former) {
  TEST_VERIFY_EXIT(sigaction(signal, action, former) == 0);
}
static inline void xsignal(int signal_number, void (*handler)(int)) {
  TEST_VERIFY_EXIT(signal(signal_number, handler) != SIG_ERR);
}

#endif
