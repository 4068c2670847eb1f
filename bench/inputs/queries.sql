-- SPDX-License-Identifier: MIT
-- Input of the "sqlite" row.
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO item SELECT i, printf('item-%d', i * 7919 % 60000), i * 0.25, hex(zeroblob(i % 200)) FROM n;
CREATE INDEX by_name ON item(name);
CREATE TABLE sale AS SELECT id * 3 % 60000 AS item, id % 50 AS shop FROM item;
SELECT shop, count(*), sum(price), group_concat(substr(name, 1, 6)) FROM sale JOIN item ON item.id = sale.item GROUP BY shop;
SELECT count(DISTINCT substr(note, 1, length(note) / 2) || name) FROM item;
UPDATE item SET note = note || name WHERE id % 3 = 0;
DELETE FROM item WHERE id % 2 = 0;
SELECT count(*), sum(length(note)) FROM item;
