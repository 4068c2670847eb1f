// SPDX-License-Identifier: MIT
#ifndef FREEHOLD_FOREIGN_TEST_DRIVER_H
#define FREEHOLD_FOREIGN_TEST_DRIVER_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "tests/foreign/glibc/support/check.h"

#define DEFAULT_TIMEOUT 20

#endif
