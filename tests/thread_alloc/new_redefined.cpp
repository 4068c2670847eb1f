// SPDX-License-Identifier: MIT
// The source file that redefines new and delete; in the build where every file does, a second one. The header is included
// twice, as when another header has included it already.
#include "freehold/thread_alloc.h"
#ifndef REDEFINE_DEFAULT_NEW_OPERATOR  // the article's macro, which that build defines instead
#define FREEHOLD_REDEFINE_NEW
#endif
#include "freehold/thread_alloc.h"
