// SPDX-License-Identifier: MIT
/* A heap for each connection of SQLite, which knows nothing of it: each connection's memory is counted, and has a limit
   that it meets alone. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#include "freehold/heap_scope.h"

typedef struct {
  freehold_heap_t* heap;
  sqlite3* database;
} connection_t;

static connection_t open_connection(const char* name, size_t limit_bytes) {
  const freehold_heap_options_t options = {.size = sizeof options, .name = name, .limit_bytes = limit_bytes};
  connection_t made = {freehold_heap_create(&options), NULL};
  freehold_heap_enter(made.heap); /* from here on malloc is the heap's, for this thread */
  sqlite3_open(":memory:", &made.database);
  freehold_heap_leave();
  return made;
}

static const char* execute(connection_t connection, const char* sql) {
  freehold_heap_enter(connection.heap);
  const int code = sqlite3_exec(connection.database, sql, NULL, NULL, NULL);
  freehold_heap_leave();
  return sqlite3_errstr(code);
}

/* Returns the blocks that the connection has left behind. */
static uint64_t close_connection(connection_t connection) {
  freehold_heap_stats_t stats;
  sqlite3_close(connection.database); /* free finds a block's heap by itself */
  freehold_heap_stats(connection.heap, &stats, sizeof stats);
  freehold_heap_destroy(connection.heap);
  return stats.live_objects;
}

int main(void) {
  static const char kFill[] =
      "CREATE TABLE numbers(n);"
      "WITH RECURSIVE all_of(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM all_of WHERE n < 200000)"
      "INSERT INTO numbers SELECT n FROM all_of";
  sqlite3_initialize(); /* what all connections share comes from no heap */
  const connection_t small = open_connection("small", 1 << 20), large = open_connection("large", FREEHOLD_NO_LIMIT);
  printf("small: %s; ", execute(small, kFill));
  printf("large: %s; ", execute(large, kFill));
  const uint64_t left = close_connection(small) + close_connection(large);
  printf("%llu blocks left\n", (unsigned long long)left);
}
