// SPDX-License-Identifier: MIT
// The few names of glibc that Debian's libc++.a needs and musl lacks, so that tests can be built for musl
// (cmake/musl.cmake).
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int __vfprintf_chk(FILE* file, int flag, const char* format, va_list arguments) {
  (void)flag;
  return vfprintf(file, format, arguments);
}

int __fprintf_chk(FILE* file, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = __vfprintf_chk(file, flag, format, arguments);
  va_end(arguments);
  return written;
}

int __vasprintf_chk(char** out, int flag, const char* format, va_list arguments) {
  (void)flag;
  return vasprintf(out, format, arguments);
}

int __vsnprintf_chk(char* out, size_t room, int flag, size_t whole, const char* format, va_list arguments) {
  (void)flag;
  (void)whole;
  return vsnprintf(out, room, format, arguments);
}

// musl has one locale.
long long strtoll_l(const char* text, char** end, int base, void* locale) {
  (void)locale;
  return strtoll(text, end, base);
}

unsigned long long strtoull_l(const char* text, char** end, int base, void* locale) {
  (void)locale;
  return strtoull(text, end, base);
}
