-- SPDX-License-Identifier: MIT
PRAGMA cache_size = 2000;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, amount INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
INSERT INTO item SELECT i, 'name' || (i * 7919 % 10007), i * 31 % 1000, substr('the quick brown fox jumps over the lazy dog', i % 20, i % 30) FROM n;
CREATE INDEX by_name ON item(name);
CREATE INDEX by_amount ON item(amount, name);
SELECT count(*), sum(amount), min(name), max(name) FROM item;
SELECT a.amount, count(*), group_concat(DISTINCT b.amount % 7) FROM item a JOIN item b ON a.name = b.name WHERE a.id < b.id GROUP BY a.amount ORDER BY 2 DESC, 1 LIMIT 20;
UPDATE item SET note = note || upper(name) WHERE amount % 3 = 0;
DELETE FROM item WHERE amount BETWEEN 100 AND 300;
SELECT length(group_concat(note, '|')), count(*) FROM item;
SELECT amount / 100, avg(length(note)) FROM item GROUP BY 1 ORDER BY 1;
VACUUM;
SELECT total(id) FROM item;
