// SPDX-License-Identifier: MIT
#include <stddef.h>

#define array_length(array) (sizeof(array) / sizeof((array)[0]))
