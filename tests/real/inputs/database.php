<?php
// Extensions call each other: PDO and its driver, which PHP opens with RTLD_DEEPBIND, share blocks with the interpreter.
// SPDX-License-Identifier: MIT
$database = new PDO('sqlite::memory:', null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$database->exec('create table words (id integer primary key, word text, length integer)');
$insert = $database->prepare('insert into words (word, length) values (?, ?)');
$database->beginTransaction();
for ($i = 0; $i < 20000; ++$i) {
    $word = substr(str_repeat(md5((string)$i), 40), 0, $i % 1200);
    $insert->execute([$word, strlen($word)]);
}
$database->commit();
$database->sqliteCreateFunction('backwards', 'strrev', 1);
foreach ($database->query('select length % 7 as rest, count(*) as many, max(backwards(word)) as last from words group by rest') as $row) {
    echo $row['rest'], ' ', $row['many'], ' ', md5($row['last']), "\n";
}
try {
    $database->query('select nothing from nowhere');
} catch (PDOException $refused) {
    echo $refused->getMessage(), "\n";
}
