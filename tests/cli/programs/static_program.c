// SPDX-License-Identifier: MIT
/* Linked with -static: LD_PRELOAD means nothing to it. */
int main(void) { return 0; }
