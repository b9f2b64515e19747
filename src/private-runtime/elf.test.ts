import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ELF_HEAD_BYTES, parseElf } from "./elf.ts";

test("Node.js is a dynamic program for this machine", async () => {
  const program = parseElf((await readFile(process.execPath)).subarray(0, ELF_HEAD_BYTES));
  const architecture = { x64: "amd64", arm64: "arm64" }[process.arch as "x64" | "arm64"];
  assert.deepEqual(program, { architecture, static: false });
});

test("a program without an interpreter header is static", () => {
  const head = new Uint8Array(64 + 56);
  const view = new DataView(head.buffer);
  view.setUint32(0, 0x7f454c46);
  view.setUint8(4, 2);
  view.setUint8(5, 1);
  view.setUint16(18, 183, true);
  view.setBigUint64(32, 64n, true);
  view.setUint16(54, 56, true);
  view.setUint16(56, 1, true);
  view.setUint32(64, 1, true);
  assert.deepEqual(parseElf(head), { architecture: "arm64", static: true });
});

test("a script, an empty file and a truncated program cannot be put into an image", () => {
  assert.equal(parseElf(Buffer.from("#!/bin/sh\nexec true\n".repeat(10))), undefined);
  assert.equal(parseElf(new Uint8Array()), undefined);
  assert.equal(parseElf(Uint8Array.from([0x7f, 0x45, 0x4c, 0x46])), undefined);
});
