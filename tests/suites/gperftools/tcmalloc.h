// SPDX-License-Identifier: MIT
/* The malloc family, which tcmalloc's header declares again. */
#ifndef FREEHOLD_SUITES_GPERFTOOLS_TCMALLOC_H
#define FREEHOLD_SUITES_GPERFTOOLS_TCMALLOC_H

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <new>

#endif
