// SPDX-License-Identifier: MIT
#include "tests/suites/onetbb/common/utils.h"
