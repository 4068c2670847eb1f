// SPDX-License-Identifier: MIT
// One of two libraries of the same layout, whose function has frames of different sizes.
extern "C" [[gnu::visibility("default")]] void frame_rules_plugin(void (*function)(void*), void* argument) {
  volatile char room[FRAME_BYTES];
  room[0] = 1;
  function(argument);
  room[FRAME_BYTES - 1] = room[0];
}
