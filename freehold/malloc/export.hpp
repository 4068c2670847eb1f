// Everything is hidden but what this marks.
#pragma once

#define FREEHOLD_EXPORT __attribute__((visibility("default")))
