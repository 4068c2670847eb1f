// SPDX-License-Identifier: MIT
#include "tests/suites/gperftools/base/basictypes.h"
