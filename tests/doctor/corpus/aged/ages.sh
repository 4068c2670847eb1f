#!/bin/sh
# SPDX-License-Identifier: MIT
# A load that leaves holes, and work beside it, in SQLite: ages.sh load|work|both. The load fills two databases by turns and gives one up.
fill="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO"
load() {
  echo "ATTACH ':memory:' AS kept; ATTACH ':memory:' AS gone; CREATE TABLE kept.t(a, b); CREATE TABLE gone.t(a, b);"
  for turn in $(seq 60); do
    for name in kept gone; do echo "$fill $name.t SELECT i + $turn, hex(zeroblob(100 + i % 300)) FROM n;"; done
  done
  echo "DETACH gone;"
}
work() {
  echo ".timer on"
  echo "CREATE TABLE w(a INTEGER, b TEXT);"
  echo "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700000) INSERT INTO w SELECT i * 7919 % 200003, 'word ' || i * 104729 % 99991 FROM n;"
  echo "CREATE INDEX x ON w(b);"
  echo "SELECT count(*), max(length(c)) FROM (SELECT b, group_concat(a) AS c FROM w GROUP BY b);"
  echo "SELECT count(*) FROM (SELECT * FROM w ORDER BY a % 1000, b);"
}
{
  [ "$1" = work ] || load
  [ "$1" = load ] || work
  [ "$1" = load ] && echo ".exit 3" # at which nothing is freed
} | exec sqlite3 -batch :memory:
