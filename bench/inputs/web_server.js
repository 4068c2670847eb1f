// SPDX-License-Identifier: MIT
// A web server that answers with documents it builds and keeps the 5,000 that were asked for last, as buffers outside V8's heap.
const cache = new Map();
function build(key) {
  const rows = [];
  for (let i = 0; i < key % 60; ++i) rows.push({id: i, name: `name ${key} ${i}`, tags: Array(4).fill('x'.repeat((i * key) % 40))});
  return Buffer.from(JSON.stringify({key, rows}));
}
require('http').createServer((request, response) => {
  const key = Number(request.url.slice(1));
  const found = cache.get(key) || build(key);
  cache.delete(key);
  cache.set(key, found);
  if (cache.size > 5000) cache.delete(cache.keys().next().value);
  response.setHeader('Content-Length', found.length);
  response.end(found);
}).listen(Number(process.argv[2]), '127.0.0.1');
