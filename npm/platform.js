'use strict';

// Which archive of a release is for this machine, and where its binary goes.

const path = require('node:path');

const SYSTEMS = { darwin: 'apple-darwin', linux: 'unknown-linux-musl' };
const MACHINES = { arm64: 'aarch64', x64: 'x86_64' };

function target() {
  const system = SYSTEMS[process.platform];
  const machine = MACHINES[process.arch];
  return system && machine ? `${machine}-${system}` : null;
}

const binary = path.join(__dirname, 'vendor', 'codespar');

module.exports = { binary, target };
