// SPDX-License-Identifier: MIT
// Marks a function as exported; all others are hidden. libfreehold.map lists the same names.
#pragma once

#define FREEHOLD_EXPORT __attribute__((visibility("default")))
