// SPDX-License-Identifier: MIT
#ifndef FREEHOLD_SUITES_GLIBC_TEST_DRIVER_H
#define FREEHOLD_SUITES_GLIBC_TEST_DRIVER_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "tests/suites/glibc/support/check.h"

#define DEFAULT_TIMEOUT 20

#endif
