// Runs a test program that was built for wasm32-unknown-unknown: node .ci/wasm.mjs PROGRAM.
//
// The program has no output. Its `main` returns 0 if all tests pass, and traps at the first that
// fails. That it compares the golden vectors is shown by changing them: with another last digit in
// any of the files that it contains it must fail.
import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";

const program = process.argv[2];
const name = basename(program, ".wasm").replace(/-[0-9a-f]+$/, "");
const folder = new URL("../vectors", import.meta.url).pathname;

function passes(module) {
    const instance = new WebAssembly.Instance(new WebAssembly.Module(module));
    return instance.exports.main(0, 0) === 0;
}

const module = readFileSync(program);
if (!passes(module)) {
    throw new Error(`${name} did not pass`);
}

let changed = 0;
for (const file of readdirSync(folder, { recursive: true })) {
    if (!file.endsWith(".txt")) {
        continue;
    }
    const text = readFileSync(join(folder, file));
    const at = module.indexOf(text);
    if (at < 0) {
        continue;
    }
    const wrong = Buffer.from(module);
    const digit = at + text.toString("latin1").trimEnd().length - 1;
    wrong[digit] = wrong[digit] === 0x30 ? 0x31 : 0x30;
    let failed = false;
    try {
        failed = !passes(wrong);
    } catch (error) {
        failed = error instanceof WebAssembly.RuntimeError;
    }
    if (!failed) {
        throw new Error(`${name} passes with a wrong digit in ${file}`);
    }
    changed += 1;
}
if (changed === 0) {
    throw new Error(`${name} contains no golden vectors`);
}
console.log(`wasm32: ${name}: ${changed} files of golden vectors hold`);
