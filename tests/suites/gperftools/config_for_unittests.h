// SPDX-License-Identifier: MIT
/* The system has all of it. */
#ifndef FREEHOLD_SUITES_GPERFTOOLS_CONFIG_H
#define FREEHOLD_SUITES_GPERFTOOLS_CONFIG_H

#define HAVE_MALLOC_H 1
#define HAVE_MMAP 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_UNISTD_H 1

#endif
