'use strict';

// Fetches the archive of this very version and puts its binary beside this file. The sum is part of
// this package, so what arrives is what was released, wherever it is fetched from. Nothing else is
// fetched, and nothing that was fetched is run here.

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const zlib = require('node:zlib');

const { binary, target } = require('./platform.js');
const { version } = require('./package.json');
const sums = require('./sums.json');

const RELEASES = 'https://github.com/codespar/codespar/releases';
const LARGEST = 200 * 1024 * 1024;

function place() {
  const releases = process.env.CODESPAR_RELEASES || RELEASES;
  const { protocol, hostname } = new URL(releases);
  const isHere = protocol === 'http:' && ['localhost', '127.0.0.1'].includes(hostname);
  if (protocol !== 'https:' && !isHere) {
    throw new Error('CODESPAR_RELEASES must begin with https://');
  }
  return releases.replace(/\/+$/, '');
}

async function download(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(300_000) });
  if (!response.ok) {
    throw new Error(`cannot fetch ${url}: ${response.status} ${response.statusText}`);
  }
  const chunks = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > LARGEST) throw new Error(`${url} is larger than any release`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

// The content of one regular file of a tar archive.
function entry(tar, name) {
  const text = (from, length) => tar.toString('utf8', from, from + length).replace(/\0.*$/s, '');
  for (let at = 0; at + 512 <= tar.length; ) {
    const found = text(at, 100);
    if (found === '') break;
    const size = parseInt(text(at + 124, 12), 8) || 0;
    const isFile = ['0', ''].includes(text(at + 156, 1));
    if (isFile && found === name) return tar.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error(`the archive has no ${name}`);
}

async function main() {
  const wanted = target();
  if (!wanted) {
    throw new Error(`there is no archive for ${process.platform} on ${process.arch}`);
  }
  const expected = sums[wanted];
  if (!/^[0-9a-f]{64}$/.test(expected || '')) {
    throw new Error(`this package has no sum for ${wanted}; it was not made by a release`);
  }
  const name = `codespar-${version}-${wanted}`;
  const archive = await download(`${place()}/download/v${version}/${name}.tar.gz`);
  const found = crypto.createHash('sha256').update(archive).digest('hex');
  if (found !== expected) {
    throw new Error(`${name}.tar.gz is not what was released: its sum is ${found}, expected ${expected}`);
  }
  const content = entry(zlib.gunzipSync(archive), `${name}/codespar`);
  fs.mkdirSync(path.dirname(binary), { recursive: true });
  const fresh = `${binary}.${process.pid}`;
  fs.writeFileSync(fresh, content, { mode: 0o755 });
  fs.renameSync(fresh, binary);
}

main().catch((error) => {
  console.error(`codespar: ${error.message}`);
  process.exitCode = 1;
});
