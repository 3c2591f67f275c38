#!/usr/bin/env node
'use strict';

// Runs the binary that was fetched when this package was installed.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');

const { binary } = require('../platform.js');

if (!fs.existsSync(binary)) {
  console.error('codespar: the binary is not here; fetch it with `npm rebuild codespar` (scripts must be allowed)');
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
// A signal from the keyboard reaches the child by itself; others are passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => signal === 'SIGINT' || child.kill(signal));
}
child.on('error', (error) => {
  console.error(`codespar: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  process.exit(signal ? 128 + os.constants.signals[signal] : code);
});
