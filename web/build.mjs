// Bundles what Tabella serves to browsers, and writes it as C++: node build.mjs FILE.cpp
// With --npm DIR it makes the package @tabella/inbox there, ready for `npm publish`.
//
// The packages are those beside it, or in the folder that NODE_MODULES names.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const modules = resolve(process.env.NODE_MODULES ?? join(here, 'node_modules'));
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

const common = {
  entryPoints: [join(here, 'inbox/index.ts')],
  bundle: true,
  minify: true,
  target: 'es2022',
  legalComments: 'none',
  nodePaths: [modules],
  tsconfigRaw: readFileSync(join(here, 'tsconfig.json'), 'utf8'),
  logLevel: 'warning',
};

// Octal digits, since a digit may follow; lines of a length that a compiler likes.
function asCpp(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 64)
    lines.push(`    "${[...bytes.subarray(at, at + 64)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')}"`);
  return lines.join('\n');
}

async function forBinary(file) {
  const { outputFiles } = await esbuild.build({ ...common, format: 'iife', globalName: 'Tabella', write: false });
  const script = gzipSync(outputFiles[0].contents, { level: constants.Z_BEST_COMPRESSION });
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `// Made by web/build.mjs.
#include "inbox/script.h"

namespace tabella::inbox {

std::string_view packed_script() {
  static constexpr char kBytes[] =
${asCpp(script)};
  return {kBytes, sizeof(kBytes) - 1};
}

}  // namespace tabella::inbox
`);
}

async function forNpm(folder) {
  mkdirSync(folder, { recursive: true });
  await esbuild.build({ ...common, format: 'esm', external: ['lit', 'lit/*'], outfile: join(folder, 'inbox.js') });
  const types = { extends: join(here, 'tsconfig.json'), compilerOptions: { noEmit: false, emitDeclarationOnly: true, outDir: folder, rootDir: join(here, 'inbox'), paths: { lit: [join(modules, 'lit')], 'lit/*': [join(modules, 'lit/*')] } }, include: [join(here, 'inbox/*.ts')] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(types));
  execFileSync(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', folder], { stdio: 'inherit' });
  unlinkSync(join(folder, 'tsconfig.json'));
  copyFileSync(join(here, 'inbox/package.json'), join(folder, 'package.json'));
  copyFileSync(join(here, 'inbox/README.md'), join(folder, 'README.md'));
}

if (process.argv[2] === '--npm') await forNpm(process.argv[3]);
else await forBinary(process.argv[2]);
