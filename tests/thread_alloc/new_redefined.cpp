// The one source file that moves new and delete; where it is every one, a second. The header comes twice, as when another
// header has included it already.
#include "freehold/thread_alloc.h"
#define REDEFINE_DEFAULT_NEW_OPERATOR
#include "freehold/thread_alloc.h"
