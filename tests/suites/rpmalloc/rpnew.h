// SPDX-License-Identifier: MIT
/* It would define operator new and delete, which come from the malloc under test. */
