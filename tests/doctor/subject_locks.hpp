// SPDX-License-Identifier: MIT
// Roles of the subject: each waits for locks or for work, as subject_locks.cpp says.
#pragma once

void locks();
void other_locks();
void lock_results();
void stream();
